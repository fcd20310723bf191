"""A host's own effects from a few measurements of it, all else as released.

Each measured configuration's time is a sum of terms whose scales the release gives. The update
moves what belongs to this host alone: a factor for each kind of term, for each quantization
type, for experts and for the output matrix, and one for the whole. All are near 0 beforehand, as
far as hosts have been seen to differ; the data move those that they speak of. It is the fit's
own estimator with the released effects as fixed offsets.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.stats import t as student

from tokcast.fits.estimate import Design, Estimate, Prior, fit, predict_log_rate
from tokcast.fits.priors import Belief, prior_of
from tokcast.predictor.coefficients import Coefficients
from tokcast.predictor.effects import Effect, Shape, chip_effect, own_effects
from tokcast.predictor.host import Host
from tokcast.predictor.ledger import Phase, Workload, ledger
from tokcast.predictor.roofline import Question, scale, shape_of, tokens_of
from tokcast.predictor.spec import ModelSpec
from tokcast.predictor.terms import OVERLAP, Run, Term, terms

Floats = npt.NDArray[np.float64]
PHASES: tuple[Phase, ...] = ("decode", "prefill")
LEVELS = (0.8, 0.95)
# Launches of one file differ by 2 to 8 % on a quiet machine: no interval is narrower than that.
SMALLEST_ERROR = 0.04
# A calibrated host's usual error on a new model, and how many models that is worth.
PRIOR_ERROR, PRIOR_MODELS = 0.10, 3
# The same as the scale of the residuals: what a figure is uncertain by.
SCALE = 0.05
# What a new model's shape adds beyond the models measured: the release's width of model effects.
MODEL_ERROR = 0.06

OWN = (
    Belief("|chipCPU=", 0.5),
    Belief("|chipGPU=", 0.4),
    Belief("launch|host=", 1.0),
    Belief("attention|host=", 0.8),
    Belief("|hostkey=", 0.5),
    Belief("|hostflash=", 0.5),
    Belief("cache|host=", 0.5),
    Belief("state|host=", 0.5),
    Belief("tile|host=", 0.7),
    Belief("|host=", 0.5),
    # Wider, and what a machine is as a whole is put down to the types that it was measured with.
    Belief("prefill/compute|hosttype=", 0.15),
    Belief("|hosttype=", 0.4),
    Belief("~hostwidth=", 0.15),
    Belief("|hostmoe=", 0.4),
    Belief("|hosthead=", 0.3),
)


@dataclass(frozen=True, slots=True)
class Point:
    """One measured configuration: `model` groups those that are left out together.

    `meter` says what `joules_per_token` counts.
    """

    model: str
    spec: ModelSpec
    workload: Workload
    tok_per_s: float
    weight: float = 1.0
    joules_per_token: float | None = None
    meter: str = ""


@dataclass(frozen=True, slots=True)
class PhaseUpdate:
    """One phase's own effects, and log(measured / predicted) before and after.

    `after` is of each point with its model left out of the update; `models` names them.
    """

    phase: Phase
    effects: Mapping[str, float]
    stderr: Mapping[str, float]
    before: Floats
    after: Floats
    models: tuple[str, ...]
    deepest: int

    def error(self, keep: frozenset[str]) -> float:
        """Return the spread of the left-out residuals of some models, each alike, in log units."""
        groups = defaultdict(list)
        for name, residual in zip(self.models, self.after, strict=True):
            if name in keep:
                groups[name].append(float(residual) ** 2)
        return math.sqrt(mean(mean(g) for g in groups.values()))

    def interval(self, level: float, keep: frozenset[str]) -> tuple[float, float]:
        """Return the log interval of a new model's speed."""
        return interval_of(self.error(keep), len(keep & set(self.models)), level)


def interval_of(error: float, n_models: int, level: float) -> tuple[float, float]:
    """Return the log interval of a new model from the error of `n_models` left out.

    The variance left out is drawn to what is usual, as if `PRIOR_MODELS` more had shown it, and
    Student's t stands for how few there are: two models alone say little of a third.
    """
    seen = max(error, SMALLEST_ERROR) ** 2
    variance = (PRIOR_MODELS * PRIOR_ERROR**2 + n_models * seen) / (PRIOR_MODELS + n_models)
    spread = math.sqrt(variance + MODEL_ERROR**2)
    quantile = float(student.ppf(0.5 + level / 2, PRIOR_MODELS + n_models - 1))
    half = quantile * spread * math.sqrt(1 + 1 / n_models)
    return -half, half


class _Index(dict[object, int]):
    """Number things in the order they are first met."""

    def __missing__(self, key: object) -> int:
        self[key] = len(self)
        return self[key]


def _own(term: Term, q: Question, shape: Shape) -> tuple[Effect, ...]:
    """Return the effects of this host alone that scale a term."""
    phase, host, run = q.workload.phase, q.host, q.run
    whole = (chip_effect(phase, host, run.backend), 1.0)
    return (whole, *own_effects(term, phase, host, run, shape))


def own_design(points: Sequence[Point], host: Host, run: Run, released: Coefficients) -> Design:
    """Return the design of points of one phase in this host's own effects.

    Each term enters with the time that the release gives it.
    """
    cells, groups, names = _Index(), _Index(), _Index()
    seconds: list[float] = []
    cell: list[int] = []
    group: list[int] = []
    part: list[int] = []
    for i, point in enumerate(points):
        q = Question(point.workload, host, run)
        shape = shape_of(point.spec, point.workload)
        for term in terms(ledger(point.spec, point.workload), host, run, point.workload.phase):
            seconds.append(term.seconds * scale(released.effects, term, q, shape))
            cell.append(cells[_own(term, q, shape)])
            group.append(groups[i, term.group])
            if group[-1] == len(part):
                part.append(i)
    entries = [
        (row, names[name], value)
        for own, row in cells.items()
        for name, value in own  # type: ignore[attr-defined]
    ]
    rows, columns, values = zip(*entries, strict=True)
    n = len(points)
    tokens = [float(tokens_of(p.workload)) for p in points]
    return Design(
        names=tuple(str(name) for name in names),
        cells=sparse.csr_array((values, (rows, columns)), shape=(len(cells), len(names))),
        seconds=np.array(seconds),
        cell=np.array(cell, dtype=np.intp),
        group=np.array(group, dtype=np.intp),
        part=np.array(part, dtype=np.intp),
        average=sparse.csr_array((tokens, (range(n), range(n))), shape=(n, n)),
        log_rate=np.log([p.tok_per_s for p in points]),
        weight=np.array([p.weight for p in points]),
        noise=np.zeros(n, dtype=np.intp),
        power=OVERLAP[points[0].workload.phase],
    )


def update(
    points: Sequence[Point], host: Host, run: Run, released: Coefficients
) -> dict[Phase, PhaseUpdate]:
    """Return each phase's update; a phase without points has none."""
    found: dict[Phase, PhaseUpdate] = {}
    for phase in PHASES:
        own = [p for p in points if p.workload.phase == phase]
        if own:
            found[phase] = _update_phase(phase, own, host, run, released)
    return found


def _fit(design: Design, prior: Prior, errors: bool = False) -> Estimate:
    """Return the update with the residuals' scale held: there are too few to estimate it."""
    unknown = np.full(prior.mean.size, np.nan)
    start = Estimate(design.names, prior.mean, unknown, prior, np.array([SCALE]), 0, 0, False)
    return fit(design, prior, start, errors=errors)


def updated_rates(
    asked: Sequence[Point],
    known: Sequence[Point],
    host: Host,
    run: Run,
    released: Coefficients,
) -> Floats:
    """Return tokens/s of points of one phase, (n,), after an update by other points of it."""
    design = own_design([*known, *asked], host, run, released)
    rows = np.arange(len(known))
    theta = _fit(design.take(rows), prior_of(design.names, OWN)).theta
    rest = design.take(np.arange(len(known), len(known) + len(asked)))
    return np.asarray(np.exp(predict_log_rate(rest, theta)))


def _update_phase(
    phase: Phase, points: Sequence[Point], host: Host, run: Run, released: Coefficients
) -> PhaseUpdate:
    design = own_design(points, host, run, released)
    prior = prior_of(design.names, OWN)
    found = _fit(design, prior, errors=True)
    theta, stderr = found.theta, found.stderr
    models = np.array([p.model for p in points])
    before = design.log_rate - predict_log_rate(design, prior.mean)
    after = np.array(before)
    for name in np.unique(models):
        rest, out = np.flatnonzero(models != name), np.flatnonzero(models == name)
        if rest.size:
            left = _fit(design.take(rest), prior).theta
            after[out] = design.log_rate[out] - predict_log_rate(design.take(out), left)
    chip = chip_effect(phase, host, run.backend)
    effects = {n: float(v) for n, v in zip(design.names, theta, strict=True)}
    effects[chip] += released.effects.get(chip, 0.0)
    return PhaseUpdate(
        phase=phase,
        effects=effects,
        stderr={n: float(v) for n, v in zip(design.names, stderr, strict=True)},
        before=before,
        after=after,
        models=tuple(p.model for p in points),
        deepest=max(p.workload.n_depth for p in points),
    )


def mape(residual: Floats) -> float:
    """Return the mean absolute percentage error of log(measured / predicted)."""
    return float(np.mean(100 * np.abs(np.expm1(-residual))))
