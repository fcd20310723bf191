"""MLX models and plain checkpoints in a repository: config.json and safetensors headers."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from tokcast.predictor.errors import InputError
from tokcast.predictor.header import Header
from tokcast.predictor.sources.http_errors import shown
from tokcast.predictor.sources.parts import at_once
from tokcast.predictor.sources.web import SAFETENSORS, Web
from tokcast.predictor.text import printable

MAX_CONFIG_BYTES = 4 << 20
CONFIG = "config.json"
# As mlx-lm looks for them: it does not read the index either.
_WEIGHTS = tuple(re.compile(rf"{start}[^/]*\.safetensors") for start in ("model", "weight", ""))
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.")

Listing = dict[str, tuple[str, tuple[int, ...]]]


def weight_files(names: Iterable[str]) -> tuple[str, ...]:
    """Return the safetensors files of the model in a folder, none where one is missing."""
    listed = sorted(names)
    if CONFIG not in listed:
        return ()
    for pattern in _WEIGHTS:
        found = tuple(name for name in listed if pattern.fullmatch(name))
        if found:
            return found if _is_complete(found) else ()
    return ()


def _is_complete(files: Iterable[str]) -> bool:
    shards = [match for file in files if (match := _SHARD.search(file))]
    return all(len(shards) == int(match[2]) for match in shards)


def read_repo(files: Mapping[str, str], url: Callable[[str], str], source: str, web: Web) -> Header:
    """Return the header of the model that `files` make up, {name: what identifies its content}.

    One request for config.json and one or two for each of the weights' files.
    """
    from tokcast.predictor.mlx import read_mlx

    config = _config(web.body(url(CONFIG), MAX_CONFIG_BYTES, files[CONFIG]), url(CONFIG))
    names = weight_files(files)

    def read(name: str) -> Listing:
        address = url(name)
        parse = partial(_read_listing, shown(address))
        return web.parsed(address, SAFETENSORS, parse, files[name])

    tensors: Listing = {}
    for listing in at_once(read, names, source):
        tensors |= listing
    return read_mlx(config, tensors, source, len(names))


def _read_listing(source: str, read: Callable[[int], bytes], _size: int | None) -> Listing:
    from tokcast.predictor.safetensors import read_safetensors_header

    return read_safetensors_header(read, source)


def _config(text: bytes, url: str) -> dict[str, object]:
    try:
        config = json.loads(text)
    except (ValueError, RecursionError):
        config = None
    if isinstance(config, dict):
        return config
    found = printable(text[:40].decode("utf-8", "replace"))
    raise InputError(f"{shown(url)}: expected a JSON object, found {found!r}")
