"""Which files of a folder or repository make up a safetensors checkpoint."""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePath

from tokcast.predictor.errors import InputError
from tokcast.predictor.text import listing, printable

CONFIG = "config.json"
INDEX = "model.safetensors.index.json"
# As mlx-lm looks for them: older conversions have weights.NN.safetensors.
_STARTS = ("model", "weight", "")
_SHARD = re.compile(r"(.+)-(\d{5})-of-(\d{5})\.safetensors")
_OTHER_WEIGHTS = {".gguf": "a GGUF file", ".bin": "PyTorch weights", ".npz": "NumPy weights"}


def weight_files(
    present: Iterable[str], index: Mapping[str, object] | None, source: str
) -> tuple[str, ...]:
    """Return which of a folder's files hold the model's weights, sorted.

    Their own numbering (`-00001-of-00003`) and the index, where there is one, tell what is
    missing. Raises InputError for a missing file, or when there are no weights.
    """
    names = sorted(present)
    files = [name for name in names if name.endswith(".safetensors")]
    matching = ([f for f in files if f.startswith(start)] for start in _STARTS)
    found = set(next((m for m in matching if m), []))
    indexed = set() if index is None else indexed_files(index, source)
    if "model.safetensors" in found:
        # A whole file beside the index of a sharded one: the index is another conversion's.
        indexed &= found
    missing = sorted((indexed | _sets_of(found)) - set(files))
    if missing:
        raise InputError(f"{source}: {listing(missing)} missing; download what the model lacks")
    if not found:
        raise InputError(f"{source}: {_instead(names)}, expected model*.safetensors")
    return tuple(sorted(found | indexed))


def indexed_files(index: Mapping[str, object], source: str) -> set[str]:
    """Return the files that an index names; none may be outside the folder."""
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, Mapping):
        raise InputError(f"{source}: {INDEX} has no weight_map, expected {{tensor: file}}")
    names = {str(name) for name in weight_map.values()}
    for name in names:
        if PurePath(name).name != name or not name.endswith(".safetensors") or "\0" in name:
            raise InputError(
                f"{source}: {INDEX} names {printable(name)!r}, expected a safetensors file "
                "of the same folder"
            )
    return names


def read_object(path: Path, limit_bytes: int) -> dict[str, object]:
    """Return the JSON object in a file; raises InputError for anything else."""
    try:
        with path.open("rb") as file:
            text = file.read(limit_bytes + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None
    if len(text) > limit_bytes:
        raise InputError(f"{path}: larger than {limit_bytes} bytes, expected a model's {path.name}")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: expected JSON ({type(error).__name__})") from None
    if not isinstance(value, dict):
        raise InputError(f"{path}: a JSON {type(value).__name__}, expected an object")
    return value


def _sets_of(names: Iterable[str]) -> set[str]:
    """Return all shards of the sets that some are from."""
    shards: set[str] = set()
    for found in filter(None, map(_SHARD.fullmatch, names)):
        stem, count = found[1], int(found[3])
        shards |= {f"{stem}-{i:05}-of-{count:05}.safetensors" for i in range(1, count + 1)}
    return shards


def _instead(names: Iterable[str]) -> str:
    listed = list(names)
    for ending, what in _OTHER_WEIGHTS.items():
        if any(name.endswith(ending) for name in listed):
            return f"{what} but no safetensors"
    return "no weights"
