"""Training steps that were timed: the rows of a sweep, with the conditions they were taken in."""

import csv
import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any, Literal, cast

from tokcast.predictor.errors import InputError
from tokcast.predictor.training.shape import TrainShape
from tokcast.predictor.training.work import Step

Family = Literal["bert", "llama"]
Strategy = Literal["none", "fsdp", "tp"]
# One vocabulary for all, so that the sweep varies width, depth, batch and length alone.
N_VOCAB = 4096
HEAD_WIDTH = 64


@dataclass(frozen=True, slots=True)
class TrainPoint:
    """What is trained for a few steps: a family's shape, and over how many processes."""

    family: Family
    width: int
    n_layers: int
    n_length: int
    n_batch: int
    n_devices: int = 1
    strategy: Strategy = "none"

    @property
    def shape(self) -> TrainShape:
        """Return the model: BERT's or Llama's block at this width."""
        n_heads = max(1, self.width // HEAD_WIDTH)
        gated = self.family == "llama"
        return TrainShape(
            name=f"{self.family}-{self.width}x{self.n_layers}",
            n_layers=self.n_layers,
            width=self.width,
            n_heads=n_heads,
            n_kv_heads=n_heads,
            head_width=self.width // n_heads,
            # Llama's gated feed-forward is 8/3 widths, rounded so that it divides evenly.
            inner=64 * round(self.width * 8 / 3 / 64) if gated else 4 * self.width,
            n_vocab=N_VOCAB,
            n_positions=0 if gated else self.n_length,
            is_gated=gated,
            is_tied=not gated,
            is_causal=gated,
        )

    @property
    def step(self) -> Step:
        """Return one step of all processes together."""
        return Step(self.n_batch, self.n_length, precision="fp32")


@dataclass(frozen=True, slots=True)
class TrainRun:
    """A point's times in seconds a step, and where they were taken.

    `seconds` is the median of `n_repeats` steps after warming up, `fastest` and `slowest` bound
    them. `n_threads` is a process's own. The peaks are of the whole processor, as they were
    detected.
    """

    point: TrainPoint
    seconds: float
    fastest: float
    slowest: float
    n_repeats: int
    n_threads: int
    cpu: str
    n_cores: int
    peak_flops_per_s: float
    peak_bytes_per_s: float
    torch: str
    date: str


_POINT = tuple(f.name for f in fields(TrainPoint))
COLUMNS = _POINT + tuple(f.name for f in fields(TrainRun) if f.name != "point")
_WORDS = frozenset({"family", "strategy", "cpu", "torch", "date"})
_REALS = frozenset({"seconds", "fastest", "slowest", "peak_flops_per_s", "peak_bytes_per_s"})


def _value(name: str, text: str) -> Any:
    if name in _WORDS:
        return text
    value = float(text) if name in _REALS else int(text)
    if not math.isfinite(value) or value <= 0:
        raise ValueError(f"{name} is {text!r}, expected a number above 0")
    return value


def parse_row(row: dict[str, Any]) -> TrainRun:
    """Return a run from a CSV row; raises ValueError with the reason."""
    values = {name: _value(name, str(row.get(name) or "")) for name in COLUMNS}
    if values["family"] not in ("bert", "llama"):
        raise ValueError(f"family is {values['family']!r}, expected bert or llama")
    if values["strategy"] not in ("none", "fsdp", "tp"):
        raise ValueError(f"strategy is {values['strategy']!r}, expected none, fsdp or tp")
    if not values["fastest"] <= values["seconds"] <= values["slowest"]:
        raise ValueError("seconds is not between fastest and slowest")
    point = TrainPoint(**{name: values.pop(name) for name in _POINT})
    return TrainRun(point, **values)


def read(path: Path) -> tuple[TrainRun, ...]:
    """Return the runs of a CSV; raises InputError naming the line that is wrong."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return tuple(_rows(file, str(path)))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}; expected a CSV of tokcast energy sweep") from error


def _rows(lines: Iterable[str], name: str) -> Iterator[TrainRun]:
    reader = csv.DictReader(lines)
    missing = [c for c in COLUMNS if c not in (reader.fieldnames or ())]
    if missing:
        raise InputError(
            f"{name}: header lacks {missing[0]}; expected a CSV of tokcast energy sweep"
        )
    for row in reader:
        try:
            yield parse_row(row)
        except ValueError as error:
            raise InputError(
                f"{name} line {reader.line_num}: {error}; repair the row or leave it out"
            ) from error


def append(path: Path, run: TrainRun) -> None:
    """Add a run to a CSV, which is begun where there is none."""
    values = asdict(run)
    row = cast(dict[str, Any], values.pop("point")) | values
    is_new = not path.exists() or path.stat().st_size == 0
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def packaged() -> tuple[TrainRun, ...]:
    """Return the sweep that ships with tokcast, in file order."""
    data = resources.files("tokcast.measurements").joinpath("data/training_sweep.csv")
    lines = data.read_text(encoding="utf-8").splitlines()
    return tuple(_rows(lines, "training_sweep.csv"))
