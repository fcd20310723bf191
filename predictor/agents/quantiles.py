"""A distribution told by its quantiles, and drawing from it."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tokcast.predictor.errors import InputError


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Values at rising probabilities from 0 to 1; between two of them all are as likely.

    Raises InputError for probabilities that don't rise from 0 to 1 or values that fall.
    """

    probabilities: tuple[float, ...]
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        p, v = self.probabilities, self.values
        rises = len(p) == len(v) >= 2 and p[0] == 0 and p[-1] == 1
        if not rises or any(b <= a for a, b in pairwise(p)) or _falls(v):
            raise InputError(
                f"quantiles at {p} of {v}: expected probabilities that rise from 0 to 1 and"
                " values that never fall"
            )

    def at(self, probability: float) -> float:
        """Return the value that so large a share of all lies below."""
        p, v = self.probabilities, self.values
        i = min(bisect_right(p, probability) - 1, len(p) - 2)
        return v[i] + (v[i + 1] - v[i]) * (probability - p[i]) / (p[i + 1] - p[i])

    @property
    def mean(self) -> float:
        """Return the mean of what is drawn."""
        p, v = self.probabilities, self.values
        return sum((p[i + 1] - p[i]) * (v[i] + v[i + 1]) / 2 for i in range(len(p) - 1))


def quantile(ranked: Sequence[float], probability: float) -> float:
    """Return a quantile of sorted values, linear between neighbours (Hyndman and Fan's type 7).

    Raises InputError for none.
    """
    if not ranked:
        raise InputError("a quantile of no values; expected one at least")
    place = probability * (len(ranked) - 1)
    i = min(int(place), len(ranked) - 2) if len(ranked) > 1 else 0
    last = ranked[min(i + 1, len(ranked) - 1)]
    return ranked[i] + (last - ranked[i]) * (place - i)


def _falls(values: Sequence[float]) -> bool:
    return any(b < a for a, b in pairwise(values))
