"""Figures from launches, and whether to trust them."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median, stdev

from tokcast.measurements.record import RunRecord, Series, Task
from tokcast.predictor.errors import InputError


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a figure can be trusted, and why not."""

    stable: bool
    reasons: tuple[str, ...]


# Thresholds as in pyperf's checks: spread, outliers and timings too short to time.
MOST_SPREAD = 0.10
FARTHEST = 0.50
SHORTEST_S = 1e-3


def spread(values: Sequence[float]) -> float:
    """Return the standard deviation over the mean; 0 for fewer than two values."""
    return stdev(values) / mean(values) if len(values) > 1 else 0.0


def _within(series: Series) -> list[str]:
    reasons = []
    rates = series.rates
    dirty = len(series.samples) - len(series.clean)
    if not series.clean:
        reasons.append(f"all {dirty} repetitions were disturbed")
    elif dirty > len(series.clean):
        reasons.append(f"{dirty} of {len(series.samples)} repetitions were disturbed")
    if spread(rates) > MOST_SPREAD:
        reasons.append(f"repetitions spread by {100 * spread(rates):.0f} %")
    middle = median(rates)
    if any(abs(r / middle - 1) > FARTHEST for r in rates):
        reasons.append("a repetition lies over 50 % off the median")
    if min(s.seconds for s in series.used) < SHORTEST_S:
        reasons.append("a repetition took under 1 ms")
    return reasons


def judge(launches: Sequence[Series]) -> Verdict:
    """Return the verdict on one test's launches.

    Launches are told apart because the spread within one understates the error.
    """
    reasons = [r for s in launches for r in _within(s)]
    means = [s.tok_per_s for s in launches]
    if spread(means) > MOST_SPREAD:
        reasons.append(f"launches spread by {100 * spread(means):.0f} %")
    return Verdict(not reasons, tuple(dict.fromkeys(reasons)))


@dataclass(frozen=True, slots=True)
class Figure:
    """One test's figure over launches: the mean of their means.

    `deviation` is the standard deviation between launches, or within the only one.
    """

    test: Task
    tok_per_s: float
    deviation: float
    n_launches: int
    n_samples: int
    verdict: Verdict
    joules_per_token: float | None


def figure(launches: Sequence[Series]) -> Figure:
    """Return the figure of one test from its launches; raises InputError without any."""
    if not launches:
        raise InputError("no launches; expected at least one measured series")
    means = [s.tok_per_s for s in launches]
    spread_of = means if len(means) > 1 else list(launches[0].rates)
    energy = [j for s in launches if (j := s.joules_per_token) is not None]
    return Figure(
        test=launches[0].test,
        tok_per_s=mean(means),
        deviation=stdev(spread_of) if len(spread_of) > 1 else 0.0,
        n_launches=len(means),
        n_samples=sum(len(s.used) for s in launches),
        verdict=judge(launches),
        joules_per_token=mean(energy) if len(energy) == len(launches) else None,
    )


def figures(runs: Sequence[RunRecord]) -> tuple[Figure, ...]:
    """Return the figures of launches of one model, tests in the order they were first met.

    Launches without an undisturbed sample of a test don't count where others have some.
    """
    found: dict[Task, list[Series]] = {}
    for run in runs:
        for series in run.series:
            found.setdefault(series.test, []).append(series)
    return tuple(
        figure([s for s in launches if s.clean] or launches) for launches in found.values()
    )
