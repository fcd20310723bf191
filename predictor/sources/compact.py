"""Headers as read, kept small: without the vocabulary, which is nearly all of their bytes."""

import json

from tokcast.predictor.errors import InputError
from tokcast.predictor.header import Header, SkippedArray, Tensor, Value


def pack(header: Header) -> bytes:
    """Return a header as bytes that `unpack` reads."""
    plain = {
        "format": header.format,
        "metadata": {key: _packed(value) for key, value in header.metadata.items()},
        "tensors": [(t.name, t.shape, t.type, t.n_bytes) for t in header.tensors],
        "source": header.source,
        "n_header_bytes": header.n_header_bytes,
        "n_parts": header.n_parts,
        "warnings": header.warnings,
    }
    return json.dumps(plain, separators=(",", ":")).encode()


def _packed(value: Value) -> object:
    if isinstance(value, SkippedArray):
        return {"type": value.element_type, "length": value.length}
    return value


def unpack(data: bytes) -> Header:
    """Return the header that was packed; raises InputError for other bytes."""
    try:
        plain = json.loads(data)
        return Header(
            format=plain["format"],
            metadata={key: _unpacked(value) for key, value in plain["metadata"].items()},
            tensors=tuple(Tensor(n, tuple(s), t, size) for n, s, t, size in plain["tensors"]),
            source=plain["source"],
            n_header_bytes=plain["n_header_bytes"],
            n_parts=plain["n_parts"],
            warnings=tuple(plain["warnings"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"a kept header cannot be read ({error}); it is fetched again") from None


def _unpacked(value: object) -> Value:
    if isinstance(value, dict):
        return SkippedArray(value["type"], value["length"])
    if isinstance(value, list):
        return tuple(value)
    if isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"{type(value).__name__} in the metadata")
