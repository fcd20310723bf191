"""Models in several GGUF files, as `llama-gguf-split` cuts them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tokcast.predictor.errors import InputError
from tokcast.predictor.header import Header, Tensor
from tokcast.predictor.text import listing, printable

_SHARD = re.compile(r"(.*-)(\d{5})-of-(\d{5})(\.gguf)", re.DOTALL)
_SHOWN_WARNINGS = 8
MAX_PARTS = (1 << 16) - 1


def split_names(name: str) -> list[str] | None:
    """Return the names of all parts of the model that part `name` belongs to.

    `name` may have a folder or an address in front. None if it is not a part's name.
    """
    match = _SHARD.fullmatch(name)
    if match is None:
        return None
    start, number, count, end = match.groups()
    if not 1 <= int(number) <= int(count):
        return None
    return [f"{start}{part:05d}-of-{count}{end}" for part in range(1, int(count) + 1)]


def join_splits(headers: Sequence[Header], source: str) -> Header:
    """Return one header for the parts of a model, in any order; a whole file comes back as is.

    Metadata is the first part's, as in llama.cpp; tensors follow in the parts' order,
    `n_header_bytes` is the sum. Raises InputError for a missing part, and for parts that do
    not belong together.
    """
    if len(headers) == 1 and headers[0].metadata.get("split.count", 1) in (0, 1):
        return headers[0]
    count = _integer(headers[0], "split.count", range(1, MAX_PARTS + 1))
    parts: dict[int, Header] = {}
    for header in headers:
        _integer(header, "split.count", range(count, count + 1))
        number = _integer(header, "split.no", range(count))
        if number in parts:
            raise _error(header, f"parts 1 to {count} once each", f"part {number + 1} again")
        parts[number] = header
    missing = [f"part {number + 1}" for number in range(count) if number not in parts]
    if missing:
        raise _error(headers[0], f"all {count} parts of a split model", f"no {listing(missing)}")
    ordered = [parts[number] for number in range(count)]
    return replace(
        ordered[0],
        tensors=_joined_tensors(ordered),
        source=source,
        n_header_bytes=sum(header.n_header_bytes for header in ordered),
        n_parts=count,
        warnings=tuple(_joined_warnings(ordered)),
    )


def _integer(header: Header, key: str, allowed: range) -> int:
    value = header.metadata.get(key)
    if type(value) is not int or value not in allowed:
        wanted = f"{allowed[0]}" if len(allowed) == 1 else f"{allowed[0]} to {allowed[-1]}"
        found = "none" if value is None else printable(str(value))
        raise _error(header, f"{key} = {wanted} in this part of a split model", found)
    return value


def _error(header: Header, expected: str, found: str) -> InputError:
    return InputError(f"{printable(header.source, 1000)}: expected {expected}, found {found}")


def _joined_tensors(parts: Sequence[Header]) -> tuple[Tensor, ...]:
    tensors: dict[str, Tensor] = {}
    for header in parts:
        for tensor in header.tensors:
            if tensor.name in tensors:
                found = f"{printable(tensor.name)} in another part too: parts of two models?"
                raise _error(header, "each tensor in one part", found)
            tensors[tensor.name] = tensor
    total = parts[0].metadata.get("split.tensors.count", len(tensors))
    if total != len(tensors):
        found = f"{len(tensors)}: parts of two models?"
        raise _error(parts[0], f"{printable(str(total))} tensors in all parts together", found)
    return tuple(tensors.values())


def _joined_warnings(parts: Sequence[Header]) -> Iterator[str]:
    warnings = [
        f"part {number}: {warning}"
        for number, header in enumerate(parts, 1)
        for warning in header.warnings
    ]
    yield from warnings[:_SHOWN_WARNINGS]
    if len(warnings) > _SHOWN_WARNINGS:
        yield f"{len(warnings) - _SHOWN_WARNINGS} more warnings of this kind in other parts"
