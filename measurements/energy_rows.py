"""One published measurement of energy or power, as the energy table has it.

The columns are described in `docs/data.md`. A blank cell is unknown, never zero. What a meter
covers is its kind; figures of different kinds are never put together.
"""

import csv
import gzip
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from importlib import resources
from typing import Any, TextIO

from tokcast.measurements.builds import installation_of
from tokcast.measurements.schema import BadRow, Measurement
from tokcast.predictor.errors import InputError

# How sources and the measurements' table spell what a meter covers. "wall" is everything at the
# plug, which these sources print as a peak; the others are means.
KINDS = {
    "gpu_board": "gpu_board",
    "soc": "soc",
    "package": "package",
    "mean package sensor over the process": "package",
    "wall": "wall",
    "wall peak, whole system": "wall",
}
PHASES = ("decode", "prefill", "request", "training")


@dataclass(frozen=True, slots=True)
class EnergyRow:
    """A power or energy figure with everything its source says about it.

    Watts are summed over devices, `power_limit_w` is of each; joules and seconds are of one
    request, or of the run where `notes` says so. `file_bytes` and `size_ratio` (printed over
    stock size) are known of rows that came with a throughput measurement. Figures are as
    printed: a negative one is for the rules to find.
    """

    source: str
    chip: str
    n_devices: float | None
    host_note: str
    runtime: str
    backend: str
    model: str
    model_id: str
    quant: str
    params_b: float | None
    phase: str
    n_prompt: float | None
    n_gen: float | None
    n_depth: float | None
    batch: float | None
    tok_s: float | None
    duration_s: float | None
    energy_j: float | None
    energy_per_token_j: float | None
    power_w: float | None
    power_kind: str
    idle_w: float | None
    power_limit_w: float | None
    training_tokens: float | None
    strategy: str
    date: str
    notes: str
    stack: str = ""
    build: str = ""
    flash_attn: float | None = None
    n_ubatch: float | None = None
    file_bytes: float | None = None
    size_ratio: float = 1.0
    flags: frozenset[str] = frozenset()

    @property
    def installation(self) -> str:
        """Return a name for what ran the row, as far as its source says."""
        return installation_of(self.source, self.date)

    @property
    def kind(self) -> str | None:
        """Return what the meter covers by one of the known names, None for another."""
        return KINDS.get(self.power_kind)


_OWN = frozenset(("stack", "build", "flash_attn", "n_ubatch", "file_bytes", "size_ratio", "flags"))
ENERGY_COLUMNS = tuple(f.name for f in fields(EnergyRow) if f.name not in _OWN)
ENERGY_REQUIRED = ("chip", "phase", "power_kind")
_NUMBERS = frozenset(f.name for f in fields(EnergyRow) if f.type == float | None)


def _number(text: str, column: str) -> float | None:
    if not text.strip():
        return None
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{column} is {text.strip()!r}, expected a finite number")
    return value


def parse_energy_row(row: dict[str, str | None]) -> EnergyRow:
    """Return the typed figures of one CSV row; raises ValueError with the reason."""
    cells = {name: (row.get(name) or "") for name in ENERGY_COLUMNS}
    values: dict[str, Any] = {
        name: _number(text, name) if name in _NUMBERS else text.strip()
        for name, text in cells.items()
    }
    if values["phase"] not in PHASES:
        raise ValueError(f"phase is {values['phase']!r}, expected one of {', '.join(PHASES)}")
    return EnergyRow(**values)


def read_energy_rows(stream: TextIO, name: str) -> Iterator[EnergyRow | BadRow]:
    """Yield each row of an energy table, unreadable ones with their line and reason.

    Columns may come in any order and extra ones are ignored. Raises InputError when the header
    lacks a column without which no row can be used.
    """
    reader = csv.DictReader(stream)
    missing = [c for c in ENERGY_REQUIRED if c not in (reader.fieldnames or ())]
    if missing:
        raise InputError(
            f"{name}: header lacks {', '.join(missing)}; expected the energy columns of"
            " docs/data.md"
        )
    for row in reader:
        try:
            yield parse_energy_row(row)
        except ValueError as error:
            yield BadRow(reader.line_num, str(error))


def packaged_energy() -> tuple[EnergyRow, ...]:
    """Return the energy rows that ship with tokcast, in file order."""
    data = resources.files("tokcast.measurements").joinpath("data/energy.csv.gz")
    with data.open("rb") as raw, gzip.open(raw, "rt", encoding="utf-8", newline="") as text:
        rows = list(read_energy_rows(text, "energy.csv.gz"))
    return tuple(r for r in rows if isinstance(r, EnergyRow))


def _least(n_ubatch: float | None, n_batch: float | None) -> float | None:
    """Return the tokens of a pass: a batch smaller than the micro-batch is what is computed."""
    return min(n_ubatch, n_batch) if n_ubatch and n_batch else n_ubatch


def of_measurement(m: Measurement) -> EnergyRow:
    """Return the power figure that a throughput measurement came with."""
    return EnergyRow(
        source=m.source,
        chip=m.chip,
        n_devices=m.n_devices,
        host_note="",
        runtime=m.runtime,
        backend=m.backend,
        model=m.model_file or m.model,
        model_id=m.model_id,
        quant=m.file_type,
        params_b=m.params_b,
        phase=m.phase,
        n_prompt=m.n_prompt,
        n_gen=m.n_gen,
        n_depth=m.n_depth,
        batch=1.0,
        tok_s=m.tok_s,
        duration_s=None,
        energy_j=None,
        energy_per_token_j=None,
        power_w=m.power_w,
        power_kind=m.power_kind,
        idle_w=None,
        power_limit_w=None,
        training_tokens=None,
        strategy="",
        date=m.date,
        notes="",
        stack=m.backend_raw,
        build=m.build,
        flash_attn=m.flash_attn,
        n_ubatch=_least(m.n_ubatch, m.n_batch),
        file_bytes=m.size_gib * 2.0**30 if m.size_gib else None,
        size_ratio=m.size_gib / m.stock_gib
        if "non-stock-mix" in m.flags and m.size_gib and m.stock_gib
        else 1.0,
        flags=m.flags,
    )
