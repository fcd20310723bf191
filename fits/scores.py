"""Errors of predictions on rows a fit did not see."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Score:
    """Absolute percentage errors of predicted against measured tokens/s.

    `host_mean_mape` is the mean over hosts of each host's MAPE, so that no host outweighs
    another; `bias` is the median of predicted / measured - 1. All in percent.
    """

    n: int
    n_hosts: int
    mape: float
    median_ape: float
    p90_ape: float
    host_mean_mape: float
    bias: float


def ape(residual: Floats) -> Floats:
    """Return absolute percentage errors from log(measured / predicted), (n,)."""
    return np.asarray(100 * np.abs(np.expm1(-residual)))


def score(residual: Floats, hosts: Sequence[str]) -> Score:
    """Return the score of log residuals (n,); raises ValueError when there are none."""
    if residual.size == 0:
        raise ValueError("no residuals to score")
    errors = ape(residual)
    names = np.asarray(hosts)
    per_host = [float(errors[names == name].mean()) for name in np.unique(names)]
    return Score(
        n=residual.size,
        n_hosts=len(per_host),
        mape=float(errors.mean()),
        median_ape=float(np.median(errors)),
        p90_ape=float(np.quantile(errors, 0.9)),
        host_mean_mape=float(np.mean(per_host)),
        bias=float(100 * np.expm1(-np.median(residual))),
    )


def host_quantiles(residual: Floats, hosts: Sequence[str], level: float) -> tuple[float, float]:
    """Return the (low, high) quantiles of log residuals that hold `level` of them, hosts alike.

    Split-conformal: ranks are taken with one extra observation, and every host carries the same
    total weight, so the interval is meant for a host drawn like these.
    """
    names = np.asarray(hosts)
    _, inverse, counts = np.unique(names, return_inverse=True, return_counts=True)
    weight = 1.0 / counts[inverse]
    order = np.argsort(residual)
    cumulative = np.cumsum(weight[order]) / (weight.sum() + 1.0)
    tail = (1 - level) / 2
    low = residual[order][np.searchsorted(cumulative, tail)]
    high_index = min(int(np.searchsorted(cumulative, 1 - tail)), residual.size - 1)
    return float(low), float(residual[order][high_index])
