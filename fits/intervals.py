"""The intervals that ship: quantiles of the error on what a fit did not see.

Six classes, by what is known of the chip (it, its family, neither) and of the model. Within a class
backends differ in how far they scatter; with few chips each, they share the shape of the
distribution and have a spread of their own, drawn to that of all processors or all cards.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokcast.fits.observations import Observation
from tokcast.fits.scores import host_quantiles
from tokcast.fits.splits import (
    BOTH_OUT,
    CHIP_OUT,
    FAMILY_MODEL_OUT,
    FAMILY_OUT,
    MODEL_OUT,
    PAIR_OUT,
)
from tokcast.predictor.coefficients import interval_class
from tokcast.predictor.effects import family_of
from tokcast.predictor.prediction import Evidence
from tokcast.predictor.terms import BACKENDS

Floats = npt.NDArray[np.float64]
LEVELS = (0.8, 0.95)
MIN_HOSTS = 8
# How many chips' worth of weight the common spread has beside a backend's own.
COMMON_CHIPS = 5
# A residual beyond this says that the row is wrong, not how far right ones scatter.
LARGEST = 1.0

_CLASS_OF: dict[str, tuple[Evidence, bool]] = {
    PAIR_OUT: ("same host", False),
    MODEL_OUT: ("same host", True),
    CHIP_OUT: ("same chip family", False),
    BOTH_OUT: ("same chip family", True),
    FAMILY_OUT: ("spec sheet only", False),
    FAMILY_MODEL_OUT: ("spec sheet only", True),
}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Log residuals of rows that fits did not see, by class of what was left out with them."""

    residual: Floats
    hosts: tuple[str, ...]
    kinds: tuple[str, ...]
    backends: tuple[str, ...]

    def take(self, keep: npt.NDArray[np.intp]) -> "LeftOut":
        """Return some of the rows."""
        return LeftOut(
            self.residual[keep],
            tuple(self.hosts[i] for i in keep),
            tuple(self.kinds[i] for i in keep),
            tuple(self.backends[i] for i in keep),
        )

    def of(self, kind: str) -> "LeftOut":
        """Return the rows of one class."""
        return self.take(np.flatnonzero(np.array(self.kinds) == kind))


def has_relatives(observations: Sequence[Observation]) -> npt.NDArray[np.bool_]:
    """Return whether other chips of each observation's family were measured with its backend."""
    chips: dict[tuple[str, str], set[str]] = defaultdict(set)
    for o in observations:
        chips[family_of(o.workloads[0].phase, o.host), o.run.backend].add(o.host.name)
    return np.array(
        [
            len(chips[family_of(o.workloads[0].phase, o.host), o.run.backend]) > 1
            for o in observations
        ]
    )


def left_out_of(observations: Sequence[Observation], residuals: Mapping[str, Floats]) -> LeftOut:
    """Return the held-out rows by class, from each split's residuals (n_observations,).

    A chip left out that has no relatives is no row of "same chip family".
    """
    related = has_relatives(observations)
    found: list[tuple[float, str, str, str]] = []
    for split, residual in residuals.items():
        if split not in _CLASS_OF:
            continue
        kind = interval_class(*_CLASS_OF[split])
        use = np.isfinite(residual)
        if split in (CHIP_OUT, BOTH_OUT):
            use &= related
        found += [
            (float(residual[i]), observations[i].host.name, kind, observations[i].run.backend)
            for i in np.flatnonzero(use).tolist()
        ]
    columns = tuple(zip(*found, strict=True)) or ((), (), (), ())
    return LeftOut(np.array(columns[0]), columns[1], columns[2], columns[3])


def _spreads(rows: LeftOut) -> dict[str, float]:
    """Return each backend's mean absolute residual, its chips alike, drawn to all of them."""
    by_chip: dict[tuple[str, str], list[float]] = defaultdict(list)
    for backend, host, residual in zip(rows.backends, rows.hosts, rows.residual, strict=True):
        by_chip[backend, host].append(min(abs(float(residual)), LARGEST))
    means: dict[str, list[float]] = defaultdict(list)
    for (backend, _), values in by_chip.items():
        means[backend].append(float(np.mean(values)))
    common = float(np.mean([m for values in means.values() for m in values]))
    return {
        b: (sum(means[b]) + COMMON_CHIPS * common) / (len(means[b]) + COMMON_CHIPS)
        for b in BACKENDS
    }


def _sides(rows: LeftOut) -> Iterator[tuple[LeftOut, list[str]]]:
    """Yield rows that are judged together, with the backends they speak for.

    Processors and cards apart, unless fewer than MIN_HOSTS chips speak for one of them.
    """
    is_cpu = np.array([b == "CPU" for b in rows.backends])
    cards = [str(b) for b in BACKENDS if b != "CPU"]
    for side, backends in ((is_cpu, ["CPU"]), (~is_cpu, cards)):
        own = rows.take(np.flatnonzero(side))
        yield (rows if len(set(own.hosts)) < MIN_HOSTS else own), backends


def intervals_of(left_out: LeftOut) -> dict[str, dict[str, list[float]]]:
    """Return the intervals by "class/backend" and level, as log multiples of the prediction."""
    made: dict[str, dict[str, list[float]]] = {}
    for kind in dict.fromkeys(left_out.kinds):
        for rows, backends in _sides(left_out.of(kind)):
            spread = _spreads(rows)
            relative = rows.residual / np.array([spread[b] for b in rows.backends])
            for level in LEVELS:
                ends = host_quantiles(relative, rows.hosts, level)
                for b in backends:
                    own = made.setdefault(f"{kind}/{b}", {})
                    own[f"{level:g}"] = [round(spread[b] * end, 5) for end in ends]
    return made
