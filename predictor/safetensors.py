"""Header of a safetensors file: the name, element type and shape of every tensor.

Layout (the format's own description, github.com/huggingface/safetensors): eight bytes with the
little-endian length of a JSON object, that object, then the data. The object maps a name to
`dtype`, `shape` and `data_offsets`; the key `__metadata__` holds free text.
"""

import json
from collections.abc import Callable, Mapping
from math import prod

from tokcast.predictor.errors import InputError
from tokcast.predictor.identify import identify

# The reference implementation refuses longer headers.
MAX_HEADER_BYTES = 100_000_000
MAX_DIMENSIONS = 8
_CHUNK_BYTES = 1 << 20
_IDENTIFYING_BYTES = 504
# A tensor has two lists and takes 50 bytes; empty lists alone would need 20 times their text.
_SHORTEST_PER_LIST = 20

DTYPE_BITS: Mapping[str, int] = {
    "BOOL": 8,
    "U8": 8,
    "I8": 8,
    "U16": 16,
    "I16": 16,
    "U32": 32,
    "I32": 32,
    "U64": 64,
    "I64": 64,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "F8_E4M3": 8,
    "F8_E5M2": 8,
    "F8_E8M0": 8,
    "F16": 16,
    "BF16": 16,
    "F32": 32,
    "F64": 64,
    "C64": 64,
}

Listing = Mapping[str, tuple[str, tuple[int, ...]]]


def read_safetensors_header(
    read: Callable[[int], bytes], source: str
) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Return {tensor name: (dtype as written, shape in row-major order)}.

    `read(n)` gives at most n bytes and b"" at the end; no more than the header is asked for.
    Raises InputError where the bytes are not such a header.
    """
    prefix = _take(read, 8, source, 0)
    length = int.from_bytes(prefix, "little")
    if length > MAX_HEADER_BYTES or length < 2:
        raise InputError(_what_else(read, prefix, length, source))
    text = _take(read, length, source, 8)
    if text.count(b"[") > length // _SHORTEST_PER_LIST + 1:
        raise InputError(f"{source}: the header at byte 8 has more lists than tensors can have")
    entries = _parse(text, source)
    return {
        name: _entry(name, value, source)
        for name, value in entries.items()
        if name != "__metadata__"
    }


def tensor_bytes(dtype: str, shape: tuple[int, ...]) -> int:
    """Return the stored bytes of a tensor; raises KeyError for a dtype not in DTYPE_BITS."""
    return -(-prod(shape) * DTYPE_BITS[dtype] // 8)


def _take(read: Callable[[int], bytes], size: int, source: str, offset: int) -> bytes:
    """Read exactly `size` bytes in pieces, so that a lying length allocates nothing."""
    pieces: list[bytes] = []
    missing = size
    while missing:
        piece = read(min(missing, _CHUNK_BYTES))
        if not piece:
            raise InputError(
                f"{source}: the safetensors header ends at byte {offset + size - missing}, "
                f"expected {size} bytes from byte {offset}; download the file again"
            )
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)


def _what_else(read: Callable[[int], bytes], prefix: bytes, length: int, source: str) -> str:
    """Return what is wrong with a file whose first bytes are no header length."""
    expected = f"expected a safetensors header of 2 to {MAX_HEADER_BYTES} bytes"
    if prefix.startswith(b"GGUF"):
        return f"{source}: a GGUF file, {expected}"
    named = identify(prefix + read(_IDENTIFYING_BYTES)) if length > MAX_HEADER_BYTES else None
    return f"{source}: {named or f'the first 8 bytes give {length}'}, {expected}"


def _parse(text: bytes, source: str) -> dict[str, object]:
    try:
        entries = json.loads(text.decode(), object_pairs_hook=_no_duplicates)
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, _DuplicateKeyError) else type(error).__name__
        raise InputError(
            f"{source}: the safetensors header at byte 8 is not readable JSON ({reason})"
        ) from None
    if not isinstance(entries, dict):
        raise InputError(
            f"{source}: the safetensors header at byte 8 is a {type(entries).__name__}, "
            "expected an object of tensors"
        )
    return entries


class _DuplicateKeyError(ValueError):
    pass


def _no_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise _DuplicateKeyError("a name occurs twice")
    return result


def _entry(name: str, value: object, source: str) -> tuple[str, tuple[int, ...]]:
    where = f"{source}: tensor {name[:80]!a}"
    if not name or not name.isprintable():
        raise InputError(f"{where}: expected a printable name")
    if not isinstance(value, dict):
        raise InputError(f"{where} is not an object with dtype, shape and data_offsets")
    dtype, shape = value.get("dtype"), _sizes(value.get("shape"), where, "shape")
    if not isinstance(dtype, str) or dtype not in DTYPE_BITS:
        raise InputError(f"{where} has dtype {str(dtype)[:40]!a}, expected one of {_known()}")
    offsets = _sizes(value.get("data_offsets"), where, "data_offsets")
    if len(offsets) != 2 or offsets[1] - offsets[0] != tensor_bytes(dtype, shape):
        raise InputError(
            f"{where} has data_offsets {list(offsets)[:4]}, expected a span of "
            f"{tensor_bytes(dtype, shape)} bytes"
        )
    return dtype, shape


def _known() -> str:
    return ", ".join(DTYPE_BITS)


def _sizes(value: object, where: str, key: str) -> tuple[int, ...]:
    if isinstance(value, list) and len(value) <= MAX_DIMENSIONS:
        sizes = tuple(v for v in value if type(v) is int and 0 <= v < 2**63)
        if len(sizes) == len(value):
            return sizes
    raise InputError(
        f"{where}: {key} is {str(value)[:40]!a}, "
        f"expected at most {MAX_DIMENSIONS} whole numbers from 0 to 2^63"
    )
