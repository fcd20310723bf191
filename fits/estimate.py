"""The estimator: named effects from observations, in log time, robustly.

Each term's time is its time at nameplate peaks, x, times the exponential of a sum of effects; the
terms of a group (a component's memory and its arithmetic) overlap as a p-norm, and groups add up:

    T = x exp(E theta)        t = sum over groups (sum T^p)^(1/p)

so the derivative of log t is exact and sparse. An observation that is a mean of rates over several
workloads averages 1 / t of its parts.
Effects have Gaussian priors (shrinkage of a family to its backend) or Cauchy ones (of a chip to
its family: one throttled machine keeps its own effect without dragging the family along);
residuals have a Student-t likelihood, which a wrong row cannot pull far, and whose scale is
estimated. The width of a group of exchangeable effects (all chips, all families, ...) is
estimated as well: empirical Bayes. Solved by damped Gauss-Newton steps from the prior means or
a given start: deterministic.
"""

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.linalg import splu

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]

SMALLEST_WIDTH, LARGEST_WIDTH = 0.02, 0.8
SMALLEST_SCALE = 0.05


@dataclass(frozen=True, slots=True)
class Design:
    """Terms of a set of observations, and the effects that scale them.

    `cells` (n_cells, n_effects) holds the distinct combinations of effects. Each term has its
    `seconds` at the nameplate peaks, its `cell` and its `group`, (n_terms,); each group its
    `part`, (n_groups,). `average` (n_observations, n_parts) has rows that sum to the tokens
    counted; `log_rate` is in log tokens/s, `weight` says how much a row counts and `noise` which
    rows scatter alike, (n_observations,). `power` is the p of the norm within a group.
    """

    names: tuple[str, ...]
    cells: sparse.csr_array
    seconds: Floats
    cell: Rows
    group: Rows
    part: Rows
    average: sparse.csr_array
    log_rate: Floats
    weight: Floats
    noise: Rows
    power: float = 1.0

    def take(self, rows: Rows) -> "Design":
        """Return the design of some observations only; cells and effects stay as they are."""
        average = self.average[rows]
        parts = np.unique(average.indices)
        place = np.full(self.average.shape[1], -1)
        place[parts] = np.arange(parts.size)
        groups = np.flatnonzero(place[self.part] >= 0)
        group_place = np.full(self.part.size, -1)
        group_place[groups] = np.arange(groups.size)
        terms = np.flatnonzero(group_place[self.group] >= 0)
        return Design(
            self.names,
            self.cells,
            self.seconds[terms],
            self.cell[terms],
            group_place[self.group[terms]],
            place[self.part[groups]],
            average[:, parts],
            self.log_rate[rows],
            self.weight[rows],
            self.noise[rows],
            self.power,
        )

    def times(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return the seconds of each part and each term's share in its part's derivative.

        The share of a term is d seconds / d log T, so that shares of a part sum to its seconds.
        """
        term = self.seconds * np.exp(self.cells @ theta)[self.cell]
        raised = term**self.power
        total = np.bincount(self.group, raised, self.part.size)
        joint = total ** (1 / self.power)
        share = joint[self.group] * raised / total[self.group]
        seconds = np.zeros(self.average.shape[1])
        np.add.at(seconds, self.part, joint)
        return seconds, np.asarray(share)


@dataclass(frozen=True, slots=True)
class Prior:
    """Means and standard deviations of the effects (n_effects,), before any data.

    `groups` are the rows of effects whose common width is estimated. `tailed` are those effects
    whose prior is a Cauchy distribution of scale `sd`, (n_effects,) or () for all or none.
    """

    mean: Floats
    sd: Floats
    groups: tuple[Rows, ...] = ()
    tailed: Flags = field(default_factory=lambda: np.zeros((), dtype=np.bool_))

    def pull(self, theta: Floats) -> float:
        """Return the negative log density of the effects, up to a constant."""
        z2 = ((theta - self.mean) / self.sd) ** 2
        return float(np.sum(np.where(self.tailed, np.log1p(z2), 0.5 * z2)))

    def precision(self, theta: Floats) -> Floats:
        """Return what pulls each effect to its mean, (n_effects,); a tailed one far off, less."""
        z2 = ((theta - self.mean) / self.sd) ** 2
        return np.asarray(np.where(self.tailed, 2.0 / (1.0 + z2), 1.0) * self.sd**-2.0)


@dataclass(frozen=True, slots=True)
class Settings:
    """Starting scale of the residuals (log units), their degrees of freedom, and when to stop.

    `tolerance` is the fall of the objective (a log likelihood) below which a step is the last.
    """

    scale: float = 0.12
    freedom: float = 4.0
    n_iterations: int = 60
    tolerance: float = 0.02
    width_rounds: tuple[int, ...] = (3, 6, 9, 12)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Effects with standard errors (n_effects,), the priors in force, and how it ended.

    `scale` is that of the residuals, one for each class of noise, (n_noise,).
    """

    names: tuple[str, ...]
    theta: Floats
    stderr: Floats
    prior: Prior
    scale: Floats
    n_observations: int
    n_iterations: int
    converged: bool


def predict_log_rate(design: Design, theta: Floats) -> Floats:
    """Return log tokens/s of each observation, (n_observations,)."""
    seconds, _ = design.times(theta)
    return np.asarray(np.log(design.average @ (1.0 / seconds)))


def linearise(design: Design, theta: Floats) -> tuple[Floats, sparse.csr_array]:
    """Return log tokens/s and its derivative (n_observations, n_effects)."""
    seconds, share = design.times(theta)
    rate = design.average @ (1.0 / seconds)
    by_cell = sparse.coo_array(
        (share, (design.part[design.group], design.cell)),
        shape=(seconds.size, design.cells.shape[0]),
    ).tocsr()
    slope = sparse.diags_array(1.0 / rate) @ design.average @ sparse.diags_array(seconds**-2.0)
    return np.log(rate), sparse.csr_array(-(slope @ by_cell @ design.cells))


@dataclass(slots=True)
class _State:
    """Where the iteration stands."""

    theta: Floats
    prior: Prior
    scale: Floats
    damping: float = 1e-3


def _objective(design: Design, state: _State, theta: Floats, freedom: float) -> float:
    z = (design.log_rate - predict_log_rate(design, theta)) / state.scale[design.noise]
    loss = 0.5 * (freedom + 1) * np.log1p(z**2 / freedom)
    return float(np.sum(design.weight * loss)) + state.prior.pull(theta)


def _robust(residual: Floats, scale: Floats, freedom: float) -> Floats:
    return np.asarray((freedom + 1) / (freedom + (residual / scale) ** 2))


def _curvature(design: Design, state: _State, freedom: float) -> tuple[sparse.csc_array, Floats]:
    """Return the Gauss-Newton curvature and the downhill gradient at the state."""
    log_rate, jacobian = linearise(design, state.theta)
    residual = design.log_rate - log_rate
    scale = state.scale[design.noise]
    w = design.weight * _robust(residual, scale, freedom) / scale**2
    weighted = jacobian.T @ sparse.diags_array(w)
    precision = state.prior.precision(state.theta)
    curvature = sparse.csc_array(weighted @ jacobian + sparse.diags_array(precision))
    pull = precision * (state.theta - state.prior.mean)
    return curvature, np.asarray(weighted @ residual - pull)


def _solve(curvature: sparse.csc_array, gradient: Floats) -> Floats:
    """Return the solution of a symmetric positive definite system, ordered for little fill."""
    factors = splu(
        curvature,
        permc_spec="MMD_AT_PLUS_A",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return np.asarray(factors.solve(gradient))


def _step(design: Design, state: _State, freedom: float) -> float:
    """Move the state by a damped step that lowers the objective; return by how much it fell."""
    curvature, gradient = _curvature(design, state, freedom)
    before = _objective(design, state, state.theta, freedom)
    diagonal = curvature.diagonal()
    for _ in range(8):
        damped = sparse.csc_array(curvature + sparse.diags_array(state.damping * diagonal))
        trial = state.theta + _solve(damped, gradient)
        after = _objective(design, state, trial, freedom)
        if after < before:
            state.damping = max(state.damping / 5, 1e-6)
            state.theta = trial
            return before - after
        state.damping *= 8
    return 0.0


def _residual_scale(design: Design, state: _State, freedom: float) -> Floats:
    residual = design.log_rate - predict_log_rate(design, state.theta)
    w = design.weight * _robust(residual, state.scale[design.noise], freedom)
    n = state.scale.size
    total = np.bincount(design.noise, design.weight, n)
    spread = np.bincount(design.noise, w * residual**2, n) / np.maximum(total, 1e-12)
    return np.asarray(np.maximum(np.sqrt(spread), SMALLEST_SCALE))


def _variances(curvature: sparse.csc_array) -> Floats:
    return np.asarray(np.diag(np.linalg.inv(curvature.toarray())))


def _inflation(design: Design, state: _State, freedom: float) -> float:
    """Return how much wider than the inverse curvature the effects really scatter.

    The sandwich factor of an M-estimator, E[psi^2] E[w] / E[psi']^2, with residuals as they came
    (Huber, Robust Statistics, 1981, section 3.2).
    """
    residual = design.log_rate - predict_log_rate(design, state.theta)
    z2 = (residual / state.scale[design.noise]) ** 2
    robust = (freedom + 1) / (freedom + z2)
    slope = (freedom + 1) * (freedom - z2) / (freedom + z2) ** 2
    score, weight, steepness = (
        float(np.average(values, weights=design.weight))
        for values in (robust**2 * z2, robust, slope)
    )
    return score * weight / steepness**2


def _widened(design: Design, state: _State, used: Rows, freedom: float) -> Prior:
    """Return the prior with each group's width set to what its effects show (EM step)."""
    prior = state.prior
    curvature, _ = _curvature(design, state, freedom)
    spread = (state.theta - prior.mean) ** 2 + _variances(curvature)
    spread *= prior.precision(state.theta) * prior.sd**2
    sd = prior.sd.copy()
    for group in prior.groups:
        seen = np.intersect1d(group, used)
        if seen.size >= 4:
            sd[group] = np.clip(np.sqrt(spread[seen].mean()), SMALLEST_WIDTH, LARGEST_WIDTH)
    return replace(prior, sd=sd)


def used_effects(design: Design) -> Rows:
    """Return the effects that some observation's terms carry."""
    return np.unique(design.cells[np.unique(design.cell)].indices)


def fit(
    design: Design,
    prior: Prior,
    start: Estimate | None = None,
    settings: Settings | None = None,
    errors: bool = False,
) -> Estimate:
    """Return the effects that best explain the observations.

    From a `start`, its effects, scale and group widths are taken over, and only the effects
    move. With `errors`, standard errors come from the inverse curvature; otherwise they are NaN.
    """
    s = settings or Settings()
    n_noise = int(design.noise.max(initial=0)) + 1
    state = _State(prior.mean.copy(), prior, np.full(n_noise, s.scale))
    rounds: tuple[int, ...] = s.width_rounds if prior.groups else ()
    if start is not None:
        state = _State(start.theta.copy(), start.prior, start.scale)
        rounds = ()
    used = used_effects(design)
    converged, n_iterations = False, 0
    while not converged and n_iterations < s.n_iterations:
        fell = _step(design, state, s.freedom)
        if start is None:
            state.scale = _residual_scale(design, state, s.freedom)
            if n_iterations in rounds:
                state.prior = _widened(design, state, used, s.freedom)
        n_iterations += 1
        converged = fell < s.tolerance and n_iterations > max(rounds, default=0) + 1
    stderr = np.full(state.theta.size, np.nan)
    if errors:
        variance = _variances(_curvature(design, state, s.freedom)[0])
        stderr = np.sqrt(variance * _inflation(design, state, s.freedom))
    return Estimate(
        design.names,
        state.theta,
        stderr,
        state.prior,
        state.scale,
        design.log_rate.size,
        n_iterations,
        converged,
    )
