"""The estimator: named effects from observations, in log time, robustly.

Each observation's time is linear in the scales of its terms, and each scale is the exponential
of a sum of effects:

    seconds = A exp(E theta)      (A: observations x cells, E: cells x effects, both sparse)

so the derivative of log seconds is exact and sparse: diag(1/seconds) A diag(exp(E theta)) E. An
observation that is a mean of rates over several workloads averages 1/seconds of its parts.
Effects have Gaussian priors centred on 0 (shrinkage to family, backend and nameplate); residuals
have a Student-t likelihood, which a wrong row cannot pull far. Solved by reweighted Gauss-Newton
steps with halving, from zero or a given start: deterministic.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.linalg import splu

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Design:
    """Sparse matrices of a set of observations.

    `cells` (n_cells, n_effects), `parts` (n_parts, n_cells) in seconds, `average`
    (n_observations, n_parts) with rows that sum to the tokens counted, `log_rate`
    (n_observations,) in log tokens/s, `weight` (n_observations,).
    """

    names: tuple[str, ...]
    cells: sparse.csr_array
    parts: sparse.csr_array
    average: sparse.csr_array
    log_rate: Floats
    weight: Floats

    def take(self, rows: npt.NDArray[np.intp]) -> "Design":
        """Return the design of some observations only; cells and effects stay as they are."""
        average = self.average[rows]
        used = np.unique(average.indices)
        return Design(
            self.names,
            self.cells,
            self.parts[used],
            average[:, used],
            self.log_rate[rows],
            self.weight[rows],
        )


@dataclass(frozen=True, slots=True)
class Settings:
    """Scale of the residuals (log units) and degrees of freedom of their distribution."""

    scale: float = 0.08
    freedom: float = 3.0
    n_iterations: int = 60
    tolerance: float = 1e-5


@dataclass(frozen=True, slots=True)
class Estimate:
    """Effects with standard errors (n_effects,), and how the iteration ended."""

    names: tuple[str, ...]
    theta: Floats
    stderr: Floats
    n_observations: int
    n_iterations: int
    converged: bool


def predict_log_rate(design: Design, theta: Floats) -> Floats:
    """Return log tokens/s of each observation, (n_observations,)."""
    seconds = design.parts @ np.exp(design.cells @ theta)
    return np.asarray(np.log(design.average @ (1.0 / seconds)))


def _linearise(design: Design, theta: Floats) -> tuple[Floats, sparse.csr_array]:
    scale = np.exp(design.cells @ theta)
    seconds = design.parts @ scale
    rate = design.average @ (1.0 / seconds)
    share = sparse.diags_array(1.0 / rate) @ design.average @ sparse.diags_array(1.0 / seconds**2)
    weighted = share @ design.parts @ sparse.diags_array(scale)
    return np.log(rate), sparse.csr_array(-(weighted @ design.cells))


def _objective(
    residual: Floats, weight: Floats, theta: Floats, prior: Floats, s: Settings
) -> float:
    z = residual / s.scale
    loss = 0.5 * (s.freedom + 1) * np.log1p(z**2 / s.freedom)
    return float(np.sum(weight * loss) + 0.5 * np.sum((theta / prior) ** 2))


def _downhill(
    design: Design, theta: Floats, step: Floats, value: float, prior: Floats, s: Settings
) -> tuple[Floats, float]:
    """Return the first of step, step / 2, ... that lowers the objective, else where we were."""
    for factor in 0.5 ** np.arange(10):
        trial = theta + factor * step
        residual = design.log_rate - predict_log_rate(design, trial)
        trial_value = _objective(residual, design.weight, trial, prior, s)
        if trial_value <= value:
            return trial, trial_value
    return theta, value


def fit(
    design: Design,
    prior: Floats,
    start: Floats | None = None,
    settings: Settings | None = None,
    errors: bool = False,
) -> Estimate:
    """Return the effects that best explain the observations.

    `prior` (n_effects,) holds the prior standard deviations. With `errors`, standard errors come
    from the inverse curvature at the solution; otherwise they are NaN.
    """
    s = settings or Settings()
    theta = np.zeros(len(design.names)) if start is None else start.copy()
    precision = 1.0 / prior**2
    log_rate, jacobian = _linearise(design, theta)
    value = _objective(design.log_rate - log_rate, design.weight, theta, prior, s)
    converged, n_iterations = False, 0
    ridge = sparse.diags_array(precision)
    curvature = sparse.csc_array(ridge)
    while not converged and n_iterations < s.n_iterations:
        n_iterations += 1
        residual = design.log_rate - log_rate
        robust = (s.freedom + 1) / (s.freedom + (residual / s.scale) ** 2)
        w = design.weight * robust / s.scale**2
        weighted = jacobian.T @ sparse.diags_array(w)
        curvature = sparse.csc_array(weighted @ jacobian + ridge)
        step = splu(curvature).solve(weighted @ residual - precision * theta)
        before = value
        theta, value = _downhill(design, theta, step, value, prior, s)
        log_rate, jacobian = _linearise(design, theta)
        converged = before - value < s.tolerance * max(1.0, abs(value))
    stderr = np.full(theta.size, np.nan)
    if errors:
        stderr = np.sqrt(np.diag(np.linalg.inv(curvature.toarray())))
    return Estimate(design.names, theta, stderr, design.log_rate.size, n_iterations, converged)


def prior_of(names: Sequence[str], table: Sequence[tuple[str, float]]) -> Floats:
    """Return each effect's prior standard deviation: the first table entry its name contains."""
    return np.array([next(sd for mark, sd in table if mark in name) for name in names])
