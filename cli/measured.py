"""Published measurements of one model on one chip, to show beside a prediction."""

from dataclasses import dataclass
from functools import cache
from statistics import median

from tokcast.fits.observations import facts_of, size_ratio, works_of
from tokcast.measurements.cleaning import check
from tokcast.measurements.schema import Measurement, packaged
from tokcast.predictor.ledger import Phase, Workload

MOST_SHOWN = 16
Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Measured:
    """A published measurement of the same pair: its workload's work and its speed."""

    phase: Phase
    n_prompt: int
    n_depth: int
    tok_per_s: float
    flops: float
    bytes: float
    source: str


@cache
def _by_pair() -> dict[Key, tuple[Measurement, ...]]:
    found: dict[Key, list[Measurement]] = {}
    for m in packaged():
        if m.n_devices == 1 and m.model_id and m.file_type and not m.is_suite:
            found.setdefault((m.model_id, m.file_type, m.chip), []).append(m)
    return {key: tuple(rows) for key, rows in found.items()}


@cache
def measured_of(model_id: str, file_type: str, chip: str, backend: str) -> tuple[Measured, ...]:
    """Return what was published of a model's file type on a chip with a backend.

    Rows that a fit may not use are left out; repeats of a workload become their median.
    """
    loads: dict[Workload, list[Measurement]] = {}
    for m in _by_pair().get((model_id, file_type, chip), ()):
        facts = facts_of(m)
        if m.backend == backend and len(facts.workloads) == 1 and check(m, facts) is None:
            loads.setdefault(facts.workloads[0], []).append(m)
    return tuple(_measured(load, rows) for load, rows in list(loads.items())[:MOST_SHOWN])


def _measured(load: Workload, rows: list[Measurement]) -> Measured:
    first = rows[0]
    works = works_of(first.model_id, first.file_type, size_ratio(first), load) or ()
    return Measured(
        phase=load.phase,
        n_prompt=load.n_prompt,
        n_depth=int(first.n_depth or 0),
        tok_per_s=median(m.tok_s for m in rows),
        flops=sum(w.flops for w in works),
        bytes=sum(w.bytes for w in works),
        source=first.source.split(":")[0],
    )
