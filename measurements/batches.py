"""Measured batches: who shared a pass of the model, and how long each repetition took.

A CSV with a line a batch, `docs/batching.md` describes its columns. Conditions stand in every line,
so that files can be put together.
"""

import csv
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from statistics import mean, median
from typing import Any

from tokcast.measurements.schema import open_text
from tokcast.predictor.batch import Request
from tokcast.predictor.errors import InputError

KINDS = ("decode", "prefill", "mixed")
PACKAGED = "batches.csv.gz"
_REQUEST = re.compile(r"(\d{1,9})@(\d{1,9})")


@dataclass(frozen=True, slots=True)
class Conditions:
    """What a batch ran on and how: the model's address, the machine, the runtime."""

    model: str = ""
    host: str = ""
    runtime: str = ""
    version: str = ""
    backend: str = ""
    n_threads: int = 0
    n_ubatch: int = 512
    type_k: str = "F16"
    type_v: str = "F16"
    flash_attention: str = "auto"
    n_slots: int = 0
    n_cells: int = 0


@dataclass(frozen=True, slots=True)
class MeasuredBatch:
    """One batch with all its repetitions, in seconds; `disturbed` marks those that other load hit.

    `n_held` are the cells that all slots' prefixes held, those outside the batch included.
    `line` is where a file has it. No seconds: a batch that was not measured.
    """

    conditions: Conditions
    created: str
    round: str
    batch: str
    kind: str
    requests: tuple[Request, ...]
    n_held: int
    seconds: tuple[float, ...] = ()
    disturbed: tuple[bool, ...] = ()
    line: int = 0

    @property
    def n_new(self) -> int:
        """Return the tokens run through the model together."""
        return sum(r.n_new for r in self.requests)

    @property
    def clean_seconds(self) -> float | None:
        """Return the mean of the faster half of the undisturbed repetitions, None without any.

        Other load only ever slows, so that the fastest are the least wrong.
        """
        clean = sorted(s for s, d in zip(self.seconds, self.disturbed, strict=True) if not d)
        return mean(clean[: (len(clean) + 1) // 2]) if clean else None

    @property
    def used_seconds(self) -> float | None:
        """Return the same, or the median of all repetitions where none was undisturbed."""
        return self.clean_seconds or (median(self.seconds) if self.seconds else None)


_CONDITIONS = tuple(f.name for f in fields(Conditions))
COLUMNS = (
    *_CONDITIONS,
    *("created", "round", "batch", "kind", "requests", "n_held", "seconds", "disturbed"),
)


def to_row(b: MeasuredBatch) -> dict[str, Any]:
    """Return a batch as the cells of its line."""
    cells = {name: getattr(b.conditions, name) for name in _CONDITIONS}
    return {
        **cells,
        "created": b.created,
        "round": b.round,
        "batch": b.batch,
        "kind": b.kind,
        "requests": " ".join(f"{r.n_new}@{r.n_past}" for r in b.requests),
        "n_held": b.n_held,
        "seconds": " ".join(f"{s:.6g}" for s in b.seconds),
        "disturbed": "".join("1" if d else "0" for d in b.disturbed),
    }


def write(path: Path, batches: Iterable[MeasuredBatch]) -> None:
    """Add batches to a CSV, with a header where the file is new; raises InputError."""
    try:
        is_new = not path.exists() or path.stat().st_size == 0
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            if is_new:
                writer.writeheader()
            writer.writerows(to_row(b) for b in batches)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; expected a file to write to") from None


def read(path: Path) -> tuple[MeasuredBatch, ...]:
    """Return the batches of a CSV; raises InputError with its line for one that makes no sense."""
    return _read(csv.DictReader(open_text(path)), str(path))


def packaged() -> tuple[MeasuredBatch, ...]:
    """Return the measured batches that ship with tokcast."""
    found = resources.files("tokcast.measurements").joinpath(f"data/{PACKAGED}")
    with resources.as_file(found) as path:
        return read(path)


def _read(reader: "csv.DictReader[str]", name: str) -> tuple[MeasuredBatch, ...]:
    missing = [c for c in ("requests",) if c not in (reader.fieldnames or ())]
    if missing:
        raise InputError(f"{name}: header lacks requests; expected the columns of docs/batching.md")
    found = []
    try:
        for i, row in enumerate(reader, 1):
            found.append(_batch(row, str(i), reader.line_num))
    except (ValueError, csv.Error) as error:
        raise InputError(f"{name}, line {reader.line_num}: {error}") from None
    if not found:
        raise InputError(f"{name}: holds no batch; expected a line each below the header")
    return tuple(found)


def _batch(row: Mapping[str, str | None], number: str, line: int) -> MeasuredBatch:
    cells = {name: (row.get(name) or "").strip() for name in COLUMNS}
    requests = requests_of(cells["requests"])
    seconds = _seconds(cells["seconds"])
    marks = cells["disturbed"] or "0" * len(seconds)
    if len(marks) != len(seconds) or set(marks) - {"0", "1"}:
        raise InputError(f"disturbed {marks!r}: expected a 0 or 1 for each of {len(seconds)} times")
    past = sum(r.n_past for r in requests)
    return MeasuredBatch(
        conditions=_conditions(cells),
        created=cells["created"],
        round=cells["round"],
        batch=cells["batch"] or number,
        kind=cells["kind"] or kind_of(requests),
        requests=requests,
        n_held=max(_whole(cells["n_held"] or "0", "n_held"), past),
        seconds=seconds,
        disturbed=tuple(mark == "1" for mark in marks),
        line=line,
    )


def requests_of(text: str) -> tuple[Request, ...]:
    """Return requests from `new@cached new@cached …`; raises InputError for none or other text."""
    words = text.split()
    if not words:
        raise InputError("a batch of no request; expected new@cached for each, as 1@512 64@0")
    return tuple(_request(word) for word in words)


def _request(word: str) -> Request:
    match = _REQUEST.fullmatch(word)
    if match is None:
        raise InputError(f"request {word[:30]!r}: expected new@cached in whole tokens, as 1@512")
    return Request(int(match[1]), int(match[2]))


def kind_of(requests: tuple[Request, ...]) -> str:
    """Return what requests do: all generate a token, all read a prompt, or some of both."""
    n_decoding = sum(r.n_new == 1 for r in requests)
    if n_decoding == len(requests):
        return "decode"
    return "mixed" if n_decoding else "prefill"


def _seconds(text: str) -> tuple[float, ...]:
    try:
        found = tuple(float(word) for word in text.split())
    except ValueError:
        found = (-1.0,)
    if any(not 0 < s < 1e6 for s in found):
        raise InputError(f"seconds {text[:40]!r}: expected times above 0, with spaces between")
    return found


def _whole(text: str, name: str) -> int:
    if not text.isdigit() or len(text) > 9:
        raise InputError(f"{name} {text[:30]!r}: expected a whole number from 0 up")
    return int(text)


def _conditions(cells: Mapping[str, str]) -> Conditions:
    given = {
        f.name: _whole(cells[f.name], f.name) if f.type is int else cells[f.name]
        for f in fields(Conditions)
        if cells[f.name]
    }
    return Conditions(**given)  # type: ignore[arg-type]
