"""A model's header packed into text, so that a stored run can be predicted without its file."""

import base64
import json
import zlib

from tokcast.predictor.errors import InputError
from tokcast.predictor.header import Header, SkippedArray, Tensor, Value


def pack(header: Header) -> str:
    """Return a header as short text; tokenizer lists are left out."""
    metadata = {
        k: v
        for k, v in header.metadata.items()
        if not isinstance(v, SkippedArray) and not k.startswith("tokenizer.")
    }
    data = {
        "format": header.format,
        "metadata": metadata,
        "tensors": [[t.name, t.shape, t.type, t.n_bytes] for t in header.tensors],
        "source": header.source,
    }
    return base64.b85encode(zlib.compress(json.dumps(data).encode(), 9)).decode("ascii")


def _value(value: object) -> Value:
    return tuple(value) if isinstance(value, list) else value  # type: ignore[return-value]


def unpack(text: str) -> Header:
    """Return a packed header; raises InputError for other text."""
    try:
        data = json.loads(zlib.decompress(base64.b85decode(text)))
        return Header(
            data["format"],
            {k: _value(v) for k, v in data["metadata"].items()},
            tuple(Tensor(n, tuple(s), t, b) for n, s, t, b in data["tensors"]),
            data["source"],
        )
    except (ValueError, KeyError, zlib.error) as error:
        raise InputError(f"not a packed header: {error}") from error
