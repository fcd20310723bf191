"""Held-out errors of the training laws, with the ranges that they make."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import stats

from tokcast.fits.scores import Score, host_quantiles, score
from tokcast.fits.training import FitRows, Fitted, fit_boards, fit_sweep, left_out, log_cost
from tokcast.fits.training_observations import TrainObservation
from tokcast.predictor.training.law import Kind, Quantity
from tokcast.predictor.training.work import flops

Floats = npt.NDArray[np.float64]
RangeOf = Callable[[Floats, Sequence[str], float], tuple[float, float]]
LEVEL = 0.8
ALONE, SEVERAL, KNOWN = "- of 1 process", "- of 2 processes", "- tokens known"
# Of a group left out two others must be there to make its range.
FEWEST = 2


@dataclass(frozen=True, slots=True)
class Held:
    """The error on rows that a fit did not see, beside a simpler predictor's on the same rows.

    `coverage` is the percentage of rows, groups alike, within a range that their own group did
    not make; `low` and `high` are the range that all make, as log residuals.
    """

    kind: Kind
    quantity: Quantity
    left_out: str
    score: Score
    baseline: Score
    coverage: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class TrainingFit:
    """The laws fitted on all rows, and what leaving rows out showed."""

    boards: dict[Quantity, Fitted]
    sweep: Fitted
    held: tuple[Held, ...]


def fit_all(
    boards: Sequence[TrainObservation],
    sweep: Sequence[TrainObservation],
    tell: Callable[[str], None] = lambda _: None,
) -> TrainingFit:
    """Return the laws of boards and of the sweep with their held-out errors."""
    held = list(_sweep_held(sweep, tell))
    fitted: dict[Quantity, Fitted] = {}
    quantities: tuple[Quantity, ...] = ("seconds", "joules")
    for quantity in quantities:
        fitted[quantity] = fit_boards(boards, quantity)
        held += _boards_held(boards, quantity, tell)
    return TrainingFit(fitted, fit_sweep(sweep), tuple(held))


def _boards_held(
    rows: Sequence[TrainObservation], quantity: Quantity, tell: Callable[[str], None]
) -> Iterator[Held]:
    names = [row.group for row in rows]
    families = [row.family for row in rows]
    errors = _errors(rows, names, quantity, fit_boards, tell)
    # Limits and batches of a model on a chip err alike: a further model is what the range is for.
    yield _held("board", quantity, "configuration", errors, families, few_groups)
    # Rows whose tokens the source fixes: no effect of a data set helps them, nor a prediction.
    known = np.array([not row.extra for row in rows])
    if len(set(np.asarray(families)[known])) > FEWEST:
        part, groups = errors.take(known), list(np.asarray(families)[known])
        yield _held("board", quantity, KNOWN, part, groups, around_zero)
    chips = [row.host for row in rows]
    errors = _errors(rows, chips, quantity, fit_boards, tell)
    yield _held("board", quantity, "chip", errors, chips, few_groups)


def _sweep_held(rows: Sequence[TrainObservation], tell: Callable[[str], None]) -> Iterator[Held]:
    labels = {
        "configuration": [row.group for row in rows],
        "width": [str(row.shape.width) for row in rows],
        "length": [str(row.step.n_length) for row in rows],
        "batch": [str(row.step.n_batch) for row in rows],
        "depth": [str(row.shape.n_layers) for row in rows],
    }
    for what, names in labels.items():
        errors = _errors(rows, names, "seconds", _fit_sweep, tell)
        yield _held("processor", "seconds", what, errors, names, host_quantiles)
        if what == "configuration":
            yield from _by_processes(rows, errors, names)


def _by_processes(
    rows: Sequence[TrainObservation], errors: "_Errors", names: Sequence[str]
) -> Iterator[Held]:
    """Yield the error of rows of one process and of several, each with a range of its own.

    What a modelled speedup gets wrong is in the latter alone.
    """
    several = np.array([row.layout.n_devices > 1 for row in rows])
    for label, chosen in ((ALONE, ~several), (SEVERAL, several)):
        if chosen.any():
            part = errors.take(chosen)
            groups = list(np.asarray(names)[chosen])
            yield _held("processor", "seconds", label, part, groups, host_quantiles)


_fit_sweep: FitRows = fit_sweep


@dataclass(frozen=True, slots=True)
class _Errors:
    """Log errors of the law and of the baseline on rows that neither saw, and their chips."""

    law: Floats
    baseline: Floats
    hosts: list[str]

    def take(self, chosen: npt.NDArray[np.bool_]) -> "_Errors":
        """Return those of some rows."""
        hosts = list(np.asarray(self.hosts)[chosen])
        return _Errors(self.law[chosen], self.baseline[chosen], hosts)


def _errors(
    rows: Sequence[TrainObservation],
    names: Sequence[str],
    quantity: Quantity,
    fit_rows: FitRows,
    tell: Callable[[str], None],
) -> _Errors:
    law = left_out(rows, names, quantity, fit_rows, tell)
    return _Errors(law, _baseline(rows, names, quantity), [row.host for row in rows])


def _held(
    kind: Kind,
    quantity: Quantity,
    what: str,
    errors: _Errors,
    groups: Sequence[str],
    range_of: RangeOf,
) -> Held:
    """Return the error of rows and the range that they make."""
    low, high = range_of(errors.law, groups, LEVEL)
    inside = within(errors.law, groups, range_of)
    return Held(
        kind=kind,
        quantity=quantity,
        left_out=what,
        score=score(errors.law, errors.hosts),
        baseline=score(errors.baseline, errors.hosts),
        coverage=100 * _group_mean(inside, np.asarray(groups)),
        low=low,
        high=high,
    )


def few_groups(residual: Floats, groups: Sequence[str], level: float) -> tuple[float, float]:
    """Return a range for a further group, as (low, high) of log residuals, from few groups.

    Quantiles of so few say little: their medians are taken as normal around their mean, with
    Student's t for one more of them, and the typical scatter within a group is added.
    """
    middles, scatter = _middles(residual, groups)
    variance = float(middles.var(ddof=1)) * (1 + 1 / middles.size) + scatter
    half = float(stats.t.ppf((1 + level) / 2, middles.size - 1)) * math.sqrt(variance)
    return float(middles.mean()) - half, float(middles.mean()) + half


def around_zero(residual: Floats, groups: Sequence[str], level: float) -> tuple[float, float]:
    """Return a range for a further group from two or three, as (low, high) of log residuals.

    Their own mean says nothing: a law without effects of theirs errs as much to either side.
    """
    middles, scatter = _middles(residual, groups)
    variance = float(np.mean(middles**2)) + scatter
    half = float(stats.t.ppf((1 + level) / 2, middles.size)) * math.sqrt(variance)
    return -half, half


def _middles(residual: Floats, groups: Sequence[str]) -> tuple[Floats, float]:
    """Return each group's median and the usual mean square around it."""
    names = np.asarray(groups)
    each = [residual[names == name] for name in np.unique(names)]
    scatter = float(np.median([np.mean((r - np.median(r)) ** 2) for r in each]))
    return np.array([np.median(r) for r in each]), scatter


def within(
    residual: Floats, groups: Sequence[str], range_of: RangeOf, level: float = LEVEL
) -> npt.NDArray[np.bool_]:
    """Return whether each residual is in the range that the other groups' residuals make."""
    names = np.asarray(groups)
    inside = np.zeros(residual.size, dtype=bool)
    for name in np.unique(names):
        own = names == name
        low, high = range_of(residual[~own], list(names[~own]), level)
        inside[own] = (low <= residual[own]) & (residual[own] <= high)
    return inside


def _group_mean(inside: npt.NDArray[np.bool_], groups: npt.NDArray[np.str_]) -> float:
    return float(np.mean([inside[groups == name].mean() for name in np.unique(groups)]))


def _baseline(rows: Sequence[TrainObservation], names: Sequence[str], quantity: Quantity) -> Floats:
    """Return log errors of what people do without a law.

    Joules: rated watts by the measured time. Seconds: operations at one share of the peak, the
    median of the rows that are not left out.
    """
    if quantity == "joules":
        return np.array([log_cost(row, "joules") - math.log(row.device_seconds) for row in rows])
    peak = np.array(
        [flops(row.shape, row.step) / row.step.n_micro / row.device.flops_per_s for row in rows]
    )
    share = np.array([row.device_seconds for row in rows]) / peak
    labels = np.asarray(names)
    usual = np.array([float(np.median(share[labels != name])) for name in labels])
    return np.asarray(np.log(share / usual))
