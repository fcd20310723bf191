"""Which of a repository's files are meant: a GGUF model as llama.cpp chooses, or a checkpoint.

Facts from llama.cpp's `common/download.cpp` (MIT): the quant is looked for in the path, any case;
without one it is Q4_K_M, then Q8_0, then the first file; projectors, importance matrices
and draft models are never meant.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tokcast.predictor.errors import InputError
from tokcast.predictor.gguf_split import split_names
from tokcast.predictor.mlx_files import CONFIG, weight_files
from tokcast.predictor.text import printable

DEFAULT_QUANT = "Q4_K_M"
_NEXT_QUANT = "Q8_0"
_SIDE_FILES = re.compile(r"mmproj|imatrix|mtp-|eagle3-|dflash-|dspark-")
_LABEL = re.compile(r"(?:^|[-._/])((?:UD-)?(?:[IT]?Q|B?F|(?:MX|NV)?FP)\d\w*)(?=[-./])", re.I)
_SHOWN = 24


@dataclass(frozen=True, slots=True)
class Choice:
    """The files of one model, and whether the default quant was missing."""

    files: tuple[str, ...]
    is_default: bool = True


def models(names: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return {a model's first or only file: all its files}, in the order of `names`.

    A model that lacks a part is left out.
    """
    listed = dict.fromkeys(names)
    found: dict[str, tuple[str, ...]] = {}
    for name in listed:
        if not name.endswith(".gguf") or _SIDE_FILES.search(name.rpartition("/")[2]):
            continue
        parts = split_names(name)
        if parts is None:
            found[name] = (name,)
        elif name == parts[0] and all(part in listed for part in parts):
            found[name] = tuple(parts)
    return found


def choose(names: Iterable[str], quant: str | None) -> Choice | None:
    """Return the model of that quant, or llama.cpp's own choice; None where there is none."""
    found = models(names)
    if quant is not None:
        return _of_quant(found, quant)
    choice = _of_quant(found, DEFAULT_QUANT)
    if choice is None and found:
        files = _of_quant(found, _NEXT_QUANT) or Choice(next(iter(found.values())))
        return Choice(files.files, is_default=False)
    return choice


def _of_quant(found: Mapping[str, tuple[str, ...]], quant: str) -> Choice | None:
    text = re.escape(quant)
    # llama.cpp's own pattern, the second, takes BF16 for F16: a whole word goes first.
    for pattern in (rf"(?<![A-Z0-9]){text}(?=[-./])", rf"{text}[-.]"):
        for name, files in found.items():
            if re.search(pattern, name, re.I):
                return Choice(files)
    return None


def quants(names: Iterable[str]) -> str:
    """Return the quants to choose from, for an error's words; file names where none shows."""
    found = models(names)
    labels = {name: _LABEL.findall(name) for name in found}
    words = list(dict.fromkeys(all_of[-1] if all_of else name for name, all_of in labels.items()))
    shown = ", ".join(printable(word) for word in words[:_SHOWN])
    return shown if len(words) <= _SHOWN else f"{shown} and {len(words) - _SHOWN} more"


def label_of(name: str) -> str:
    """Return the quant that a file's name ends with, such as UD-Q4_K_XL; "" where none shows."""
    labels: list[str] = _LABEL.findall(name)
    return labels[-1] if labels else ""


def is_checkpoint(names: Iterable[str]) -> bool:
    """Return whether files look like an MLX model or another safetensors checkpoint."""
    known = at_root(names)
    return CONFIG in known and any(name.endswith(".safetensors") for name in known)


def is_complete(names: Iterable[str]) -> bool:
    """Return whether files are a checkpoint of which none is missing."""
    known = at_root(names)
    try:
        return is_checkpoint(known) and bool(weight_files(known, None, ""))
    except InputError:
        return False


def at_root(names: Iterable[str]) -> list[str]:
    """Return the files that are in no folder."""
    return [name for name in names if "/" not in name]
