"""Errors by kind of row, and how sure a score is: bands, classes and a bootstrap over hosts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokcast.fits.observations import Observation
from tokcast.fits.scores import Score, ape, score

Floats = npt.NDArray[np.float64]
N_RESAMPLES = 1000
LEVEL = 0.9
# Fewer rows than this are not shown: one row's luck is no score.
FEWEST_ROWS = 10
_DEPTHS = ((1024, "0 to 1k"), (8192, "1k to 8k"), (32768, "8k to 32k"))
_SIZES = (
    (1.5e9, "below 1.5 B"),
    (5e9, "1.5 to 5 B"),
    (10e9, "5 to 10 B"),
    (40e9, "10 to 40 B"),
)


def depth_band(o: Observation) -> str:
    """Return the band of an observation's deepest position, LocalScore's mix apart."""
    if o.is_suite:
        return "LocalScore's nine lengths"
    deepest = max(w.n_depth + (w.n_prompt if w.phase == "prefill" else 0) for w in o.workloads)
    return next((name for end, name in _DEPTHS if deepest <= end), "above 32k")


def size_band(o: Observation) -> str:
    """Return the band of a model's parameters, all of them."""
    return next((name for end, name in _SIZES if o.spec.n_params < end), "40 B and more")


def kind_of(o: Observation) -> str:
    """Return dense or MoE."""
    return "MoE" if any(layer.n_expert for layer in o.spec.layers) else "dense"


KEYS: Mapping[str, Callable[[Observation], str]] = {
    "backend": lambda o: o.run.backend,
    "quant type": lambda o: o.file_type,
    "depth": depth_band,
    "dense or MoE": kind_of,
    "size": size_band,
}


def breakdown(observations: Sequence[Observation], residual: Floats) -> dict[str, dict[str, Score]]:
    """Return the scores by class of each key, classes of too few rows left out."""
    known = np.isfinite(residual)
    hosts = np.array([o.host.name for o in observations])
    found: dict[str, dict[str, Score]] = {}
    for key, of in KEYS.items():
        labels = np.array([of(o) for o in observations])
        classes = {}
        for label in np.unique(labels[known]):
            rows = known & (labels == label)
            if rows.sum() >= FEWEST_ROWS:
                classes[str(label)] = score(residual[rows], list(hosts[rows]))
        found[key] = dict(sorted(classes.items(), key=lambda item: -item[1].n))
    return found


@dataclass(frozen=True, slots=True)
class Sure:
    """The LEVEL intervals (low, high) of a score over hosts drawn again, in percent."""

    median_ape: tuple[float, float]
    mape: tuple[float, float]
    host_mean_mape: tuple[float, float]


def bootstrap(residual: Floats, hosts: Sequence[str], seed: int = 0) -> Sure:
    """Return how far a score moves when its hosts are drawn again, with replacement.

    Rows of a host stay together, for they err together (Davison and Hinkley, Bootstrap Methods
    and their Application, 1997, section 3.8). Percentile intervals.
    """
    errors = ape(residual)
    names, host = np.unique(np.asarray(hosts), return_inverse=True)
    n_rows = np.bincount(host)
    sums = np.bincount(host, errors)
    order = np.argsort(errors)
    by_size, host_by_size = errors[order], host[order]
    rng = np.random.default_rng(seed)
    drawn = rng.multinomial(names.size, np.full(names.size, 1 / names.size), N_RESAMPLES)
    mape = drawn @ sums / (drawn @ n_rows)
    host_mean = drawn @ (sums / n_rows) / names.size
    medians = np.empty(N_RESAMPLES)
    for i, counts in enumerate(drawn):
        cumulative = np.cumsum(counts[host_by_size])
        medians[i] = by_size[np.searchsorted(cumulative, cumulative[-1] / 2)]

    def ends(values: Floats) -> tuple[float, float]:
        low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        return float(low), float(high)

    return Sure(ends(medians), ends(mape), ends(host_mean))
