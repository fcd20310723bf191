"""How often the intervals hold on chips that had no part in them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokcast.fits.heldout import Held
from tokcast.fits.observations import Observation
from tokcast.fits.release import LEVELS, LeftOut, evidence_of_left_out, intervals_of
from tokcast.predictor.coefficients import side_of

Floats = npt.NDArray[np.float64]


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


def _ends(left: LeftOut, train: npt.NDArray[np.intp], level: float) -> dict[str, list[float]]:
    known = [i for i in train if np.isfinite(left.residual[i])]
    others = LeftOut(
        left.residual[known],
        tuple(left.hosts[i] for i in known),
        tuple(left.evidence[i] for i in known),
        tuple(left.sides[i] for i in known),
    )
    return {name: ends[f"{level:g}"] for name, ends in intervals_of(others).items()}


def coverage(observations: Sequence[Observation], held: Held) -> list[Coverage]:
    """Return the coverage on left-out chips, of intervals made from the other folds' chips."""
    left = LeftOut(
        held.residual,
        tuple(o.host.name for o in observations),
        tuple(evidence_of_left_out(observations)),
        tuple(side_of(o.run.backend) for o in observations),
    )
    made = []
    for level in LEVELS:
        low, high = np.full(held.residual.size, np.nan), np.full(held.residual.size, np.nan)
        for train, test in held.splits:
            ends = _ends(left, train, level)
            for i in test:
                key = f"{left.evidence[i]}/{left.sides[i]}"
                low[i], high[i] = ends.get(key, [np.nan, np.nan])
        inside = (held.residual >= low) & (held.residual <= high)
        for kind in ("all", *dict.fromkeys(left.evidence)):
            of_kind = np.array([kind in ("all", e) for e in left.evidence])
            rows = np.isfinite(low) & np.isfinite(held.residual) & of_kind
            if rows.any():
                made.append(_counted(level, kind, inside[rows], (high - low)[rows], left, rows))
    return made


def _counted(
    level: float,
    kind: str,
    inside: npt.NDArray[np.bool_],
    width: Floats,
    left: LeftOut,
    rows: npt.NDArray[np.bool_],
) -> Coverage:
    hosts = np.array(left.hosts)[rows]
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
