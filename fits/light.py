"""The speed of light: measurements against what the chip's published peaks allow."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokcast.fits.observations import Observation, Rejected, facts_of
from tokcast.measurements.schema import Measurement
from tokcast.predictor.roofline import ceiling_tok_per_s, tokens_of

RULE = "above-roof"


@dataclass(frozen=True, slots=True)
class Violation:
    """A measurement faster than the ceiling, in tokens/s: row, chip or bytes are wrong."""

    row: Measurement
    ceiling_tok_per_s: float


def violations(rejected: Iterable[Rejected]) -> list[Violation]:
    """Return the measurements that nothing but their speed keeps out, with their ceiling."""
    found = []
    for r in rejected:
        roof = facts_of(r.measurement).roof if r.rule.name == RULE else None
        if roof:
            found.append(Violation(r.measurement, r.measurement.tok_s / roof))
    return found


def shares(observations: Sequence[Observation]) -> npt.NDArray[np.float64]:
    """Return each observation's speed as a share of its ceiling, (n,)."""
    return np.array(
        [
            o.tok_per_s
            / np.mean(
                [
                    ceiling_tok_per_s(works, o.host, tokens_of(load))
                    for load, works in zip(o.workloads, o.works, strict=True)
                ]
            )
            for o in observations
        ]
    )
