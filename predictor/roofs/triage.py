"""Where a measured step lands beside its floor, and whether that calls for a profiler.

After Floor First: a measurement inside [max, sum] reads out how well the resources overlap; one
below the maximum convicts an input; one above the sum is escalated only past a threshold.
"""

from dataclasses import dataclass
from typing import Literal

from tokcast.predictor.errors import InputError
from tokcast.predictor.roofs.floor import Floor

Place = Literal["below", "inside", "near", "above"]
# The share of the serialised floor that a measurement may exceed before a profiler is opened.
DEFAULT_THRESHOLD = 0.25
# An interval narrower than this share of the floor says nothing of overlap: one resource is all.
NARROW = 0.1
_WELL, _PARTLY = 0.75, 0.25


@dataclass(frozen=True, slots=True)
class Triage:
    """A measured step beside its floor; `threshold` is a share of the serialised floor."""

    floor: Floor
    seconds: float
    threshold: float = DEFAULT_THRESHOLD

    @property
    def place(self) -> Place:
        """Return below the floor, inside it, near above it, or above it past the threshold."""
        if self.seconds < self.floor.optimistic:
            return "below"
        if self.seconds <= self.floor.pessimistic:
            return "inside"
        return "near" if self.residual <= self.threshold else "above"

    @property
    def overlap(self) -> float | None:
        """Return 1 at full overlap, 0 serialised; None outside the interval or where it is narrow.

        It is the measurement's place between sum and max: (sum - t) / (sum - max).
        """
        most, least = self.floor.pessimistic, self.floor.optimistic
        if self.place != "inside" or most - least < NARROW * least:
            return None
        return (most - self.seconds) / (most - least)

    @property
    def overlap_words(self) -> str:
        """Return the overlap in words, blank where nothing can be read out."""
        if self.overlap is None:
            return ""
        if self.overlap >= _WELL:
            return "well overlapped"
        return "partly overlapped" if self.overlap >= _PARTLY else "serialised"

    @property
    def residual(self) -> float:
        """Return the share of the serialised floor by which the measurement exceeds it."""
        return self.seconds / self.floor.pessimistic - 1

    @property
    def shortfall(self) -> float:
        """Return how many times faster than the optimistic floor the measurement is."""
        return self.floor.optimistic / self.seconds


def triage(floor: Floor, seconds: float, threshold: float = DEFAULT_THRESHOLD) -> Triage:
    """Return a measurement beside its floor, in seconds.

    Raises InputError for a time or a threshold that makes no sense, and for an empty floor.
    """
    if not 0 < seconds < float("inf"):
        raise InputError(f"a step of {seconds:g} seconds; expected a measured time above 0")
    if not 0 <= threshold < float("inf"):
        raise InputError(f"threshold {threshold:g}; expected a share of the floor, such as 0.25")
    if not floor.optimistic > 0:
        raise InputError("the step needs nothing of any resource; expected bytes or operations")
    return Triage(floor, seconds, threshold)


@dataclass(frozen=True, slots=True)
class Growth:
    """An excess at several depths as a straight line: seconds at depth 0 and a token deeper."""

    at_zero: float
    per_token: float

    def share(self, n_depth: int) -> float:
        """Return the share of the excess at a depth that grew with the depth, within 0 and 1."""
        grown = max(self.per_token, 0.0) * n_depth
        rest = max(self.at_zero, 0.0)
        return grown / (grown + rest) if grown + rest else 0.0


def growth(points: tuple[tuple[int, float], ...]) -> Growth | None:
    """Return the least-squares line of (depth, excess seconds); None without two depths."""
    depths = [float(depth) for depth, _ in points]
    if len(set(depths)) < 2:
        return None
    left = [seconds for _, seconds in points]
    middle, mean = sum(depths) / len(depths), sum(left) / len(left)
    spread = sum((d - middle) ** 2 for d in depths)
    slope = sum((d - middle) * (y - mean) for d, y in zip(depths, left, strict=True)) / spread
    return Growth(mean - slope * middle, slope)
