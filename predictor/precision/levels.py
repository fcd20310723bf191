"""The level of a noisy series of measured speeds: a median that outliers do not move."""

import math
from collections import deque
from dataclasses import dataclass, field
from statistics import median
from typing import Literal

# Figures that count, newest last; and how many in a row on one side are a change, not outliers.
WINDOW, IN_A_ROW = 7, 3
# Hampel's test: so many times the median absolute deviation, scaled to a normal's spread, and
# never less than what repetitions of one test differ by.
MOST_SPREADS, NORMAL, LEAST_SPREAD = 3.5, 1.4826, 0.05

Verdict = Literal["counted", "outlier", "new level"]


@dataclass(slots=True)
class Level:
    """The level of log(measured / expected), with what was set aside lately."""

    values: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW))
    aside: list[float] = field(default_factory=list)

    @property
    def is_known(self) -> bool:
        """Return whether anything was counted."""
        return bool(self.values)

    @property
    def factor(self) -> float:
        """Return measured / expected at this level."""
        return math.exp(median(self.values))

    def add(self, measured: float, expected: float) -> Verdict:
        """Count a figure, or set it aside as an outlier; some in a row make a new level.

        Two figures cannot say which of them is the odd one, so the first few all count.
        """
        value = math.log(measured / expected)
        if len(self.values) < IN_A_ROW or not self._is_far(value):
            self.aside.clear()
            self.values.append(value)
            return "counted"
        if self.aside and (self.aside[-1] > median(self.values)) != (value > median(self.values)):
            self.aside.clear()
        self.aside.append(value)
        if len(self.aside) < IN_A_ROW:
            return "outlier"
        self.values.clear()
        self.values.extend(self.aside)
        self.aside.clear()
        return "new level"

    def _is_far(self, value: float) -> bool:
        middle = median(self.values)
        spread = NORMAL * median(abs(v - middle) for v in self.values)
        return abs(value - middle) > max(MOST_SPREADS * spread, LEAST_SPREAD)
