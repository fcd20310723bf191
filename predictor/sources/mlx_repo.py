"""MLX models and plain checkpoints in a repository: config.json and safetensors headers."""

import json
from collections.abc import Callable, Mapping
from functools import partial

from tokcast.predictor.errors import InputError
from tokcast.predictor.header import Header
from tokcast.predictor.mlx_files import CONFIG, weight_files
from tokcast.predictor.sources.choose import at_root
from tokcast.predictor.sources.http_errors import shown
from tokcast.predictor.sources.parts import at_once
from tokcast.predictor.sources.web import SAFETENSORS, Web
from tokcast.predictor.text import printable

MAX_CONFIG_BYTES = 4 << 20


def read_repo(files: Mapping[str, str], url: Callable[[str], str], source: str, web: Web) -> Header:
    """Return the header of the model that `files` make up, {name: what identifies its content}.

    One request for config.json and one or two for each of the weights' files.
    """
    from tokcast.predictor.mlx import read_mlx

    config = _config(web.body(url(CONFIG), MAX_CONFIG_BYTES, files[CONFIG]), url(CONFIG))
    # The index is not fetched: each file's own header lists its tensors.
    names = weight_files(at_root(files), None, source)

    def read(name: str) -> dict[str, tuple[str, tuple[int, ...]]]:
        address = url(name)
        parse = partial(_read_listing, shown(address))
        return web.parsed(address, SAFETENSORS, parse, files[name])

    tensors: dict[str, tuple[str, tuple[int, ...]]] = {}
    for listing in at_once(read, names, source):
        tensors |= listing
    return read_mlx(config, tensors, source, len(names))


def _read_listing(
    source: str, read: Callable[[int], bytes], _size: int | None
) -> dict[str, tuple[str, tuple[int, ...]]]:
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
