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

from tokcast.fits.estimate import Design, Prior, Settings, fit, predict_log_rate
from tokcast.fits.priors import Belief, prior_of
from tokcast.predictor.coefficients import Coefficients
from tokcast.predictor.effects import chip_effect, own_effects
from tokcast.predictor.host import Host
from tokcast.predictor.ledger import Phase, Workload, ledger
from tokcast.predictor.roofline import Question, scale, shape_of, tokens_of
from tokcast.predictor.spec import ModelSpec
from tokcast.predictor.terms import Run, terms

Floats = npt.NDArray[np.float64]
PHASES: tuple[Phase, ...] = ("decode", "prefill")
LEVELS = (0.8, 0.95)
# Launches of one file differ by 2 to 8 % on a quiet machine: no interval is narrower than that.
SMALLEST_ERROR = 0.04
# What a new model's shape adds beyond the models measured: the release's width of model effects.
MODEL_ERROR = 0.06

OWN = (
    Belief("|chipCPU=", 0.5),
    Belief("|chipGPU=", 0.4),
    Belief("launch|host=", 1.0),
    Belief("attention|host=", 0.8),
    Belief("cache|host=", 0.5),
    Belief("state|host=", 0.5),
    Belief("tile|host=", 0.7),
    Belief("|host=", 0.5),
    Belief("prefill/compute|hosttype=", 0.6),
    Belief("|hosttype=", 0.4),
    Belief("|hostmoe=", 0.4),
    Belief("|hosthead=", 0.3),
)


@dataclass(frozen=True, slots=True)
class Point:
    """One measured configuration: `model` groups those that are left out together."""

    model: str
    spec: ModelSpec
    workload: Workload
    tok_per_s: float
    weight: float = 1.0


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
        """Return the log interval of a new model's speed.

        Student's t, for there are few models to judge by.
        """
        n = len(keep & set(self.models))
        spread = math.hypot(max(self.error(keep), SMALLEST_ERROR), MODEL_ERROR)
        half = float(student.ppf(0.5 + level / 2, max(n - 1, 1))) * spread * math.sqrt(1 + 1 / n)
        return -half, half


def _cells(
    point: Point, host: Host, run: Run, released: Coefficients
) -> dict[tuple[tuple[str, float], ...], float]:
    """Return released seconds of a point's terms, summed over terms with the same own effects."""
    q = Question(point.workload, host, run)
    phase = point.workload.phase
    shape = shape_of(point.spec, point.workload)
    whole = (chip_effect(phase, host, run.backend), 1.0)
    found: dict[tuple[tuple[str, float], ...], float] = defaultdict(float)
    for term in terms(ledger(point.spec, point.workload), host, phase):
        own = (whole, *own_effects(term, phase, host, run))
        found[own] += term.seconds * scale(released.effects, term, q, shape)
    return found


def own_design(points: Sequence[Point], host: Host, run: Run, released: Coefficients) -> Design:
    """Return the design of points of one phase in this host's own effects."""
    cells: dict[tuple[tuple[str, float], ...], int] = {}
    part_rows, part_cols, part_values = [], [], []
    for i, point in enumerate(points):
        for own, seconds in _cells(point, host, run, released).items():
            part_rows.append(i)
            part_cols.append(cells.setdefault(own, len(cells)))
            part_values.append(seconds)
    names: dict[str, int] = {}
    rows, cols, values = [], [], []
    for own, cell in cells.items():
        for name, value in own:
            rows.append(cell)
            cols.append(names.setdefault(name, len(names)))
            values.append(value)
    n = len(points)
    tokens = [float(tokens_of(p.workload)) for p in points]
    return Design(
        names=tuple(names),
        cells=sparse.csr_array((values, (rows, cols)), shape=(len(cells), len(names))),
        parts=sparse.csr_array((part_values, (part_rows, part_cols)), shape=(n, len(cells))),
        average=sparse.csr_array((tokens, (range(n), range(n))), shape=(n, n)),
        log_rate=np.log([p.tok_per_s for p in points]),
        weight=np.array([p.weight for p in points]),
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


def _fit(design: Design, prior: Prior) -> tuple[Floats, Floats]:
    found = fit(design, prior, None, Settings(scale=0.06), errors=True)
    return found.theta, found.stderr


def _update_phase(
    phase: Phase, points: Sequence[Point], host: Host, run: Run, released: Coefficients
) -> PhaseUpdate:
    design = own_design(points, host, run, released)
    prior = prior_of(design.names, OWN)
    theta, stderr = _fit(design, prior)
    models = np.array([p.model for p in points])
    before = design.log_rate - predict_log_rate(design, prior.mean)
    after = np.array(before)
    for name in np.unique(models):
        rest, out = np.flatnonzero(models != name), np.flatnonzero(models == name)
        if rest.size:
            left, _ = _fit(design.take(rest), prior)
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
