"""One published measurement, as the interchange schema has it.

The columns are described in `docs/data.md`. A blank cell is unknown, never zero.
"""

import csv
import gzip
import io
import math
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any, TextIO

from tokcast.predictor.errors import InputError


@dataclass(frozen=True, slots=True)
class Measurement:
    """A throughput figure with everything its source says about it.

    `tok_s` is in tokens/s, the lengths in tokens, sizes in GiB or GB as their names say,
    `params_b` in 1e9 parameters as printed, `power_w` in watts.
    """

    source: str
    chip: str
    n_devices: int
    memory_gb: float | None
    runtime: str
    backend: str
    backend_raw: str
    build: str
    date: str
    model: str
    model_file: str
    quant: str
    model_id: str
    file_type: str
    size_gib: float | None
    stock_gib: float | None
    params_b: float | None
    phase: str
    n_prompt: float | None
    n_gen: float | None
    n_depth: float | None
    n_batch: float | None
    n_ubatch: float | None
    flash_attn: float | None
    type_k: str
    type_v: str
    n_threads: float | None
    ngl: str
    placement: str
    tok_s: float
    tok_s_std: float | None
    power_w: float | None
    power_kind: str
    flags: frozenset[str]

    @property
    def is_suite(self) -> bool:
        """Return whether the figure is a mean over LocalScore's nine prompt and answer lengths."""
        return "suite-average" in self.flags


COLUMNS = tuple(f.name for f in fields(Measurement))
REQUIRED = ("chip", "backend", "model_id", "file_type", "phase", "tok_s")
_MOST_TOKENS = 2**31
_COUNTS = frozenset({"n_prompt", "n_gen", "n_depth", "n_batch", "n_ubatch", "n_threads"})
_NUMBERS = frozenset(f.name for f in fields(Measurement) if f.type in (float, float | None))


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that could not be read: its line in the file and why."""

    line: int
    reason: str


def _number(text: str, column: str) -> float | None:
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{column} is {text.strip()!r}, expected a number as 17.5") from None
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{column} is {text.strip()!r}, expected a finite number >= 0")
    if column in _COUNTS and (value >= _MOST_TOKENS or value != int(value)):
        raise ValueError(f"{column} is {text.strip()!r}, expected a whole number below 2^31")
    return value


def parse_row(row: dict[str, str | None]) -> Measurement:
    """Return the typed measurement of one CSV row; raises ValueError with the reason."""
    cells = {name: (row.get(name) or "") for name in COLUMNS}
    values: dict[str, Any] = {
        name: _number(text, name) if name in _NUMBERS else text.strip()
        for name, text in cells.items()
    }
    n_devices = _number(cells["n_devices"], "n_devices")
    values["n_devices"] = 1 if n_devices is None else int(n_devices)
    values["flags"] = frozenset(f for f in cells["flags"].split(";") if f)
    if values["tok_s"] is None or values["tok_s"] <= 0:
        raise ValueError(f"tok_s is {cells['tok_s'].strip()!r}, expected tokens/s above 0")
    if values["phase"] not in ("prefill", "decode"):
        raise ValueError(f"phase is {values['phase']!r}, expected prefill or decode")
    return Measurement(**values)


def read_rows(stream: TextIO, name: str) -> Iterator[Measurement | BadRow]:
    """Yield each row of a CSV in the interchange schema, bad ones with their reason.

    Columns may come in any order and extra ones are ignored. Raises InputError when the
    header lacks a column without which no row can be scored, or has one twice, and where the
    file is no CSV.
    """
    reader = csv.DictReader(stream)
    try:
        _check_header(list(reader.fieldnames or ()), name)
        for row in reader:
            # A decimal comma or one in a name moves all cells behind it.
            beyond = row.pop(None, None)
            try:
                if beyond:
                    raise ValueError(f"{len(beyond)} cells more than the header has columns")
                yield parse_row(row)
            except ValueError as error:
                yield BadRow(reader.line_num, str(error))
    except csv.Error as error:
        raise InputError(f"{name}:{reader.line_num}: {error}; expected a CSV file") from None


def _check_header(columns: list[str], name: str) -> None:
    missing = [c for c in REQUIRED if c not in columns]
    twice = [c for c in COLUMNS if columns.count(c) > 1]
    if not columns:
        raise InputError(f"{name}: empty; expected a CSV with the columns of docs/data.md")
    if len(columns) == 1 and re.search(r"[;\t|]", columns[0]):
        raise InputError(f"{name}: cells are not separated by commas; export it with commas")
    if missing:
        raise InputError(
            f"{name}: header lacks {', '.join(missing)}; expected the columns of docs/data.md"
        )
    if twice:
        raise InputError(f"{name}: header has {', '.join(twice)} twice; expected it once")


def open_text(path: Path) -> TextIO:
    """Open a CSV, gzipped or not; bytes that are not UTF-8 are read as Latin-1."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; expected a CSV file") from error
    if raw[:2] == b"\x1f\x8b":
        try:
            raw = gzip.decompress(raw)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{path}: damaged gzip ({error}); expected a CSV file") from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")
    return io.StringIO(text, newline="")


def packaged() -> tuple[Measurement, ...]:
    """Return the measurements that ship with tokcast, in file order."""
    data = resources.files("tokcast.measurements").joinpath("data/measurements.csv.gz")
    with data.open("rb") as raw, gzip.open(raw, "rt", encoding="utf-8", newline="") as text:
        rows = list(read_rows(text, "measurements.csv.gz"))
    return tuple(r for r in rows if isinstance(r, Measurement))
