"""How often the intervals hold on chips that had no part in them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokcast.fits.intervals import LEVELS, LeftOut, intervals_of
from tokcast.fits.splits import folds

Floats = npt.NDArray[np.float64]
N_FOLDS = 10


@dataclass(frozen=True, slots=True)
class Coverage:
    """The share of rows, and the mean over hosts of it, inside an interval, in percent.

    `width` is its upper over its lower end, the median of the rows'.
    """

    level: float
    evidence: str
    n: int
    n_hosts: int
    rows: float
    host_mean: float
    width: float


def _ends(left: LeftOut, level: float) -> tuple[Floats, Floats]:
    """Return each row's interval, made from the rows of other folds' chips."""
    low, high = np.full(left.residual.size, np.nan), np.full(left.residual.size, np.nan)
    for train, test in folds(left.hosts, N_FOLDS):
        made = intervals_of(left.take(train))
        for i in test:
            ends = made.get(f"{left.kinds[i]}/{left.backends[i]}")
            if ends is not None:
                low[i], high[i] = ends[f"{level:g}"]
    return low, high


def coverage(left: LeftOut) -> list[Coverage]:
    """Return the coverage by class of evidence, of intervals made from other folds' chips."""
    made = []
    kinds = np.array(left.kinds)
    for level in LEVELS:
        low, high = _ends(left, level)
        inside = (left.residual >= low) & (left.residual <= high)
        for kind in dict.fromkeys(left.kinds):
            rows = np.isfinite(low) & (kinds == kind)
            if rows.any():
                hosts = [h for h, use in zip(left.hosts, rows, strict=True) if use]
                made.append(_counted(level, kind, inside[rows], (high - low)[rows], hosts))
    return made


def _counted(
    level: float,
    kind: str,
    inside: npt.NDArray[np.bool_],
    width: Floats,
    hosts: Sequence[str],
) -> Coverage:
    _, host = np.unique(hosts, return_inverse=True)
    per_host = np.bincount(host, inside) / np.bincount(host)
    return Coverage(
        level=level,
        evidence=kind,
        n=inside.size,
        n_hosts=per_host.size,
        rows=float(100 * inside.mean()),
        host_mean=float(100 * per_host.mean()),
        width=float(np.exp(np.median(width))),
    )
