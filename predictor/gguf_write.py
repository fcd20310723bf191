"""Writing GGUF version 3 headers, and files of full size that hold no weights.

Such a file takes no disk space where the file system has sparse files, and llama.cpp loads it:
what a runtime needs to run a model's shapes without its weights.
"""

import math
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from tokcast.predictor.errors import InputError
from tokcast.predictor.gguf_format import (
    ALIGNMENT_KEY,
    ARRAY,
    DEFAULT_ALIGNMENT,
    NUMBERS,
    STRING,
    align,
)
from tokcast.predictor.header import Scalar, SkippedArray, Tensor, Value
from tokcast.predictor.quants import TYPES_BY_NAME

_IDS = {name: id for id, (name, _) in NUMBERS.items()} | {"string": STRING}
_LETTERS = dict(NUMBERS.values())
# llama.cpp accepts these keys in these types only.
_FIXED_TYPES = {"split.no": "u16", "split.count": "u16", "split.tensors.count": "i32"}
_MAX_F32 = 3.4028234663852886e38


def write_gguf(
    path: Path,
    metadata: Mapping[str, Value],
    tensors: Sequence[Tensor],
    *,
    alignment: int = DEFAULT_ALIGNMENT,
    sparse_data: bool = True,
) -> None:
    """Write a file with this header and zeros for weights; without `sparse_data` the header only.

    To add weights, write them to the header's end plus `data_offsets`. Raises as `header_bytes`.
    """
    header, n_data = header_bytes(metadata, tensors, alignment=alignment)
    with path.open("wb") as file:
        file.write(header)
        if sparse_data:
            file.truncate(len(header) + n_data)


def header_bytes(
    metadata: Mapping[str, Value],
    tensors: Sequence[Tensor],
    *,
    alignment: int = DEFAULT_ALIGNMENT,
) -> tuple[bytes, int]:
    """Return a header up to where the data starts, and how many bytes of data follow.

    Integers are stored as u32 unless they need a sign or 64 bits, floats as f32. Raises InputError
    for an array that was skipped on reading, a mixed one, and a tensor type that has no id.
    """
    if alignment != DEFAULT_ALIGNMENT or ALIGNMENT_KEY in metadata:
        metadata = {**metadata, ALIGNMENT_KEY: alignment}
    offsets = data_offsets(tensors, alignment)
    parts = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(metadata))]
    for key, value in metadata.items():
        parts += (_text(key), _typed(key, value))
    for tensor, offset in zip(tensors, offsets, strict=False):
        layout = f"<I{len(tensor.shape)}QIQ"
        row = struct.pack(layout, len(tensor.shape), *tensor.shape, _type_id(tensor), offset)
        parts += (_text(tensor.name), row)
    header = b"".join(parts)
    return header.ljust(align(len(header), alignment), b"\0"), offsets[-1]


def data_offsets(tensors: Sequence[Tensor], alignment: int = DEFAULT_ALIGNMENT) -> list[int]:
    """Return where each tensor's bytes start, counted from the header's end, and where all end."""
    offsets = [0]
    for tensor in tensors:
        offsets.append(align(offsets[-1] + tensor.n_bytes, alignment))
    return offsets


def _text(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _typed(key: str, value: Value) -> bytes:
    """Return a value with its type in front."""
    if isinstance(value, SkippedArray):
        raise InputError(f"{key}: expected values to write, found an array skipped on reading")
    elements = value if isinstance(value, tuple) else (value,)
    name = _FIXED_TYPES.get(key) or _type(key, elements)
    if name == "string":
        data = b"".join(_text(str(element)) for element in elements)
    else:
        data = struct.pack(f"<{len(elements)}{_LETTERS[name]}", *elements)
    if isinstance(value, tuple):
        return struct.pack("<IIQ", ARRAY, _IDS[name], len(elements)) + data
    return struct.pack("<I", _IDS[name]) + data


def _type(key: str, elements: Sequence[Scalar]) -> str:
    """Return the narrowest of the usual types that holds all elements."""
    kinds = {type(element) for element in elements}
    if kinds == {str}:
        return "string"
    if kinds == {bool}:
        return "bool"
    if kinds == {float}:
        return "f32" if all(_fits_f32(float(n)) for n in elements) else "f64"
    if kinds <= {int}:
        return _integer_type([int(n) for n in elements])
    raise InputError(f"{key}: expected values of one type, found {elements}")


def _fits_f32(number: float) -> bool:
    return abs(number) <= _MAX_F32 or not math.isfinite(number)


def _integer_type(numbers: Sequence[int]) -> str:
    low, high = min(numbers, default=0), max(numbers, default=0)
    if low >= 0:
        return "u32" if high < 1 << 32 else "u64"
    return "i32" if low >= -(1 << 31) and high < 1 << 31 else "i64"


def _type_id(tensor: Tensor) -> int:
    known = TYPES_BY_NAME.get(tensor.type)
    if known is not None:
        return known.id
    if (number := tensor.type.removeprefix("TYPE_")).isdecimal():
        return int(number)
    raise InputError(f"{tensor.name}: expected a ggml type, found {tensor.type}")
