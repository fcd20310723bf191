"""The speed of light: measurements against what the chip's published peaks allow."""

from collections.abc import Iterable
from dataclasses import dataclass

from tokcast.fits.observations import Rejected, facts_of
from tokcast.measurements.schema import Measurement

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
