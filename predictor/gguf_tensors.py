"""The tensor table of a GGUF file: shapes, types, sizes, and whether the layout is sound."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from tokcast.predictor.errors import InputError
from tokcast.predictor.gguf_cursor import Cursor
from tokcast.predictor.gguf_format import align
from tokcast.predictor.header import Tensor
from tokcast.predictor.quants import REMOVED_IDS, TYPES_BY_ID
from tokcast.predictor.text import listing, printable

MAX_DIMENSIONS = 4
MAX_NAME_BYTES = 63
# No file system has longer files, and llama.cpp counts elements in as many bits.
MAX_FILE_BYTES = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """A row of the tensor table, which is at byte `at`; `offset` counts from the data's start."""

    at: int
    name: str
    shape: tuple[int, ...]
    type_id: int
    offset: int


def read_infos(cursor: Cursor, n_tensors: int, version: int) -> list[TensorInfo]:
    """Return the tensor table; raise InputError for a row that llama.cpp would refuse as well.

    Dimensions of size 0 are refused too (llama.cpp reads them): no model has an empty tensor.
    """
    infos: dict[str, TensorInfo] = {}
    dimension_format = "I" if version == 1 else "Q"
    for index in range(n_tensors):
        start = cursor.position
        info = _read_info(cursor, f"tensor {index + 1} of {n_tensors}", dimension_format)
        if info.name in infos:
            raise cursor.fail("tensor names to differ", f"{printable(info.name)} again", start)
        infos[info.name] = info
    return list(infos.values())


def _read_info(cursor: Cursor, what: str, dimension_format: str) -> TensorInfo:
    at = cursor.position
    n_name = cursor.length(f"{what}: the length of its name")
    if not 1 <= n_name <= MAX_NAME_BYTES:
        expected = f"{what}: a name of 1 to {MAX_NAME_BYTES} bytes"
        raise cursor.fail(expected, f"one of {n_name}", at)
    name = cursor.text(n_name, f"{what}: its name")
    cursor.keep(256)
    what = f"{what} ({printable(name)})"
    start = cursor.position
    (n_dimensions,) = cursor.unpack("I", f"{what}: the number of dimensions")
    if n_dimensions > MAX_DIMENSIONS:
        expected = f"{what}: at most {MAX_DIMENSIONS} dimensions"
        raise cursor.fail(expected, f"{n_dimensions}", start)
    start = cursor.position
    shape = cursor.unpack(dimension_format * n_dimensions, f"{what}: its dimensions")
    n_elements = math.prod(shape)
    if not 1 <= n_elements <= MAX_FILE_BYTES:
        raise cursor.fail(f"{what}: 1 to 2^63 - 1 elements", f"dimensions {shape}", start)
    start = cursor.position
    type_id, offset = cursor.unpack("IQ", f"{what}: its type and offset")
    known = TYPES_BY_ID.get(type_id)
    row = shape[0] if shape else 1
    if known is not None and row % known.block:
        expected = f"{what}: rows of whole {known.name} blocks of {known.block} elements"
        raise cursor.fail(expected, f"rows of {row}", start)
    return TensorInfo(at, name, shape, type_id, offset)


def size_tensors(
    cursor: Cursor, infos: Sequence[TensorInfo]
) -> tuple[tuple[Tensor, ...], tuple[str, ...]]:
    """Return the tensors with their bytes, and sentences that a user should see.

    The cursor stands where the data starts. Bytes follow from type and shape; a type that this
    version does not know takes all up to the next tensor, or to the end of the file, or 0 where
    that is not known. Raises InputError for tensors that overlap, are not aligned, or reach
    further than a file can. Gaps and an order other than the table's only earn a warning:
    llama.cpp refuses them, but the sizes are sound.
    """
    data_start, alignment = cursor.position, cursor.alignment
    by_offset = sorted(infos, key=lambda info: info.offset)
    n_bytes: dict[str, int] = {}
    for info, following in zip_longest(by_offset, by_offset[1:]):
        limit = following.offset if following else MAX_FILE_BYTES - data_start - alignment
        size = _size(info, following, cursor.size and cursor.size - data_start)
        if info.offset % alignment:
            raise _misplaced(cursor, info, f"at a multiple of {alignment}")
        if info.offset + max(size, 1) > limit:
            raise _misplaced(cursor, info, f"({size} bytes) to end by {limit}")
        n_bytes[info.name] = size
    tensors = tuple(
        Tensor(info.name, info.shape, type_name(info.type_id), n_bytes[info.name]) for info in infos
    )
    warnings = (
        *_type_warnings(infos, n_bytes),
        *_layout_warnings(infos, n_bytes, alignment),
        *_length_warnings(infos, n_bytes, data_start, cursor.size),
    )
    return tensors, warnings


def type_name(type_id: int) -> str:
    """Return ggml's name of a type, `TYPE_<id>` where it has none (any more)."""
    known = TYPES_BY_ID.get(type_id)
    return f"TYPE_{type_id}" if known is None else known.name


def _size(info: TensorInfo, following: TensorInfo | None, n_data: int | None) -> int:
    known = TYPES_BY_ID.get(info.type_id)
    if known is not None:
        return known.size(info.shape)
    if following is not None:
        return following.offset - info.offset
    return 0 if n_data is None else max(0, n_data - info.offset)


def _misplaced(cursor: Cursor, info: TensorInfo, expected: str) -> InputError:
    return cursor.fail(f"{printable(info.name)} {expected}", f"offset {info.offset}", info.at)


def _type_warnings(infos: Sequence[TensorInfo], n_bytes: Mapping[str, int]) -> Iterator[str]:
    odd = [info for info in infos if info.type_id not in TYPES_BY_ID]
    for ids, what in ((REMOVED_IDS, "that ggml removed"), (None, "unknown to this version")):
        some = [info for info in odd if (info.type_id in REMOVED_IDS) == (ids is not None)]
        if some:
            names = listing(dict.fromkeys(type_name(info.type_id) for info in some))
            yield f"types {what}, tensors sized by their offsets ({len(some)}): {names}"
    unsized = [info.name for info in odd if not n_bytes[info.name]]
    if unsized:
        yield f"bytes unknown, counted as 0: {listing(unsized)}"


def _layout_warnings(
    infos: Sequence[TensorInfo], n_bytes: Mapping[str, int], alignment: int
) -> Iterator[str]:
    expected = 0
    stray = []
    for info in infos:
        if info.offset != expected:
            stray.append(info.name)
        expected = align(info.offset + n_bytes[info.name], alignment)
    if stray:
        yield f"not right after the tensor before, which llama.cpp refuses: {listing(stray)}"


def _length_warnings(
    infos: Sequence[TensorInfo], n_bytes: Mapping[str, int], data_start: int, size: int | None
) -> Iterator[str]:
    end = data_start + max((info.offset + n_bytes[info.name] for info in infos), default=0)
    if size is not None and size < end:
        yield (
            f"the file ends at byte {size}, its tensors at byte {end}: enough to predict with, "
            "not to run"
        )
