"""Models that are known without their file: `name@FILETYPE`.

The data, `data/catalogue.json`, holds a few dozen figures a model; tensors, types and bytes
follow from them by `shapes` and `quantize`. What each entry was checked against is in
`docs/catalogue.md`.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tokcast.predictor.architecture import Architecture, Shape, from_mapping
from tokcast.predictor.errors import InputError
from tokcast.predictor.header import Header, Tensor
from tokcast.predictor.metadata import metadata
from tokcast.predictor.quantize import assign
from tokcast.predictor.quantize_rules import FILE_TYPES
from tokcast.predictor.quants import TYPES_BY_NAME
from tokcast.predictor.shapes import shapes
from tokcast.predictor.text import printable

_DATA = Path(__file__).with_name("data") / "catalogue.json"
MLX_FILE_TYPES = ("mlx-bf16", "mlx-8bit", "mlx-6bit", "mlx-5bit", "mlx-4bit", "mlx-3bit")
# llama-quantize takes these short forms too
_SHORT = {"Q3_K": "Q3_K_M", "Q4_K": "Q4_K_M", "Q5_K": "Q5_K_M", "MXFP4": "MXFP4_MOE"}
_WORD = re.compile(r"\d+(?:\.\d+)*[a-z]*|[a-z]+")
# words of a name that change neither shape nor size, and release dates such as 2507
_NOISE = re.compile(r"instruct|it|chat|base|hf|gguf|thinking|preview|meta|nvidia|2[3-7]\d\d|0414")
_SCALE = {"M": 1e6, "B": 1e9, "T": 1e12}

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One model of the catalogue.

    `published_total` and `published_active` are the figures of the model card, such as
    "30.5B"; `printed_params` is what llama-bench prints for the file, `printed_params_seen`
    whether it was found in a public log; `hub_params` what the model hub counts in the
    repository `hub_repository`, which is all tensors but the rope tables of the converter.
    `checked` names what the shapes were held against.
    """

    name: str
    title: str
    aliases: tuple[str, ...]
    architecture: Architecture
    published_total: str
    published_active: str
    published_note: str
    printed_params: str | None
    printed_params_seen: bool
    hub_params: int | None
    hub_repository: str
    checked: tuple[str, ...]
    sources: tuple[str, ...]
    note: str
    experts_as: str | None

    @property
    def published_active_params(self) -> float:
        """Return the published number of active parameters."""
        return _number(self.published_active)

    @property
    def published_total_params(self) -> float:
        """Return the published number of parameters."""
        return _number(self.published_total)


def _number(text: str) -> float:
    return float(text[:-1]) * _SCALE[text[-1]]


@cache
def _data() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(_DATA.read_bytes())
    return data


def names() -> tuple[str, ...]:
    """Return the names of all models, sorted."""
    return tuple(sorted(_data()["entries"]))


def file_types() -> tuple[str, ...]:
    """Return the file types that `header` takes; MLX ones also with `-g32` or `-g128`."""
    return (*FILE_TYPES, *MLX_FILE_TYPES)


def entry(name: str) -> Entry:
    """Return a model by its name or an alias, whatever its case and punctuation.

    Words that do not change a model's shape (instruct, chat, release dates) may be added.
    Raises InputError naming the three nearest models where there is none.
    """
    found = _find(name)
    plain = _data()["entries"][found]
    published = plain["published"]
    return Entry(
        name=found,
        title=plain["title"],
        aliases=tuple(plain.get("aliases", ())),
        architecture=from_mapping(plain["architecture"]),
        published_total=published["total"],
        published_active=published["active"],
        published_note=published.get("note", ""),
        printed_params=plain.get("printed_params"),
        printed_params_seen=plain.get("printed_params_seen", False),
        hub_params=plain.get("hub_params"),
        hub_repository=plain.get("hub_repository", ""),
        checked=tuple(plain["checked"]),
        sources=tuple(_source(text) for text in plain["sources"]),
        note=plain.get("note", ""),
        experts_as=plain.get("experts_as"),
    )


def header(name: str, file_type: str) -> Header:
    """Return the header that a stock conversion of the model to `file_type` would have.

    Raises InputError for an unknown model or file type.
    """
    model = entry(name)
    if file_type.lower().startswith("mlx-"):
        found = _mlx_header(model, file_type)
        if found is not None:
            return found
    known = gguf_file_type(file_type)
    types = assign(model.architecture, known, experts_as=model.experts_as)
    return Header(
        format="gguf",
        metadata=metadata(model.architecture, FILE_TYPES[known][0], model.title),
        tensors=tuple(_tensors(shapes(model.architecture), types)),
        source=f"{model.name}@{known}",
    )


def _mlx_header(model: Entry, file_type: str) -> Header | None:
    """Return the header of an MLX conversion; None for a file type that is none of mlx-lm's."""
    from tokcast.predictor import mlx_quantize

    mlx = mlx_quantize.parse(file_type)
    if mlx is None:
        return None
    arch = mlx_quantize.without_mtp(model.architecture)
    types = mlx_quantize.assign(arch, mlx, experts_as=model.experts_as)
    return Header(
        format="mlx",
        metadata=metadata(arch, None, model.title),
        tensors=tuple(_tensors(shapes(arch), types)),
        source=f"{model.name}@{mlx.name}",
    )


def _tensors(named: Iterable[tuple[str, Shape]], types: dict[str, str]) -> Iterator[Tensor]:
    for name, shape in named:
        count = 1
        for size in shape:
            count *= size
        yield Tensor(
            name,
            shape,
            types[name],
            count // type_block(types[name])[0] * type_block(types[name])[1],
        )


@cache
def type_block(name: str) -> tuple[int, int]:
    """Return elements and bytes of the smallest unit a type is stored in."""
    known = TYPES_BY_NAME.get(name)
    if known is not None:
        return known.block, known.n_bytes
    bits, _, group = name.removeprefix("MLX").partition("G")
    return int(group), int(group) * int(bits) // 8 + 4


def _source(text: str) -> str:
    key, _, detail = text.partition(": ")
    known = _data()["sources"][key]
    version = " ".join(part for part in (detail, known["version"], known["licence"]) if part)
    return f"{known['title']} ({version})"


def _words(name: str) -> Key:
    return tuple(_WORD.findall(name.lower()))


def _plain_words(words: Key) -> Key:
    return tuple(word for word in words if not _NOISE.fullmatch(word))


@cache
def _index() -> tuple[dict[Key, str], dict[Key, str]]:
    exact: dict[Key, str] = {}
    for name, plain in _data()["entries"].items():
        for spelling in (name, *plain.get("aliases", ())):
            exact[_words(spelling)] = name
    return exact, {_plain_words(words): name for words, name in exact.items()}


def known_name(name: str) -> str | None:
    """Return the catalogue's name for a model, as `entry` would read it; None without one."""
    exact, plain = _index()
    words = _words(name)
    return exact.get(words) or plain.get(_plain_words(words))


def own_file_type(name: str) -> str | None:
    """Return the file type that a model is published in where that is a quantized one."""
    return "MXFP4_MOE" if entry(name).experts_as == "MXFP4" else None


def namesake(name: str) -> str | None:
    """Return the model whose shape stands for another one's: `llama-3.1-70b` for Llama 3.3 70B."""
    found = known_name(name)
    is_itself = found is None or _plain_words(_words(name)) == _plain_words(_words(found))
    return None if is_itself else found


def _find(name: str) -> str:
    found = known_name(name)
    if found is None:
        nearest = ", ".join(_nearest(name, names()))
        raise InputError(
            f"no model '{printable(name)}' in the catalogue; nearest are {nearest}; "
            "give one of these, a path or an address"
        )
    return found


def gguf_file_type(text: str) -> str:
    """Return a GGUF file type by any spelling; raises InputError naming the nearest."""
    spelled = text.upper().replace("-", "_")
    known = _SHORT.get(spelled, spelled)
    if known not in FILE_TYPES:
        nearest = ", ".join(_nearest(text, file_types()))
        raise InputError(f"no file type {text!r}; nearest are {nearest}; give one of these")
    return known


def _nearest(given: str, known: Iterable[str]) -> list[str]:
    """Return the three most similar spellings, best first."""
    from difflib import SequenceMatcher

    def likeness(candidate: str) -> float:
        return SequenceMatcher(None, given.lower(), candidate.lower()).ratio()

    return sorted(known, key=likeness, reverse=True)[:3]
