"""From values to pixels, and which values to label."""

import math
from dataclasses import dataclass

# Depth 0 has a place on the logarithmic axis of depths: it is drawn as if at 1 of so many tokens.
DEPTH_UNIT = 512
_NICE = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class LogScale:
    """A logarithmic axis from `low` to `high` over pixels `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the pixel of a value; values outside stay at the edge."""
        bounded = min(max(value, self.low), self.high)
        share = math.log(bounded / self.low) / math.log(self.high / self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Return the powers of ten inside."""
        first, last = math.ceil(math.log10(self.low)), math.floor(math.log10(self.high))
        return [10.0**n for n in range(first, last + 1)]


@dataclass(frozen=True, slots=True)
class LinearScale:
    """A linear axis from 0 to `high` over pixels `start` to `end`."""

    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the pixel of a value."""
        return self.start + min(max(value / self.high, 0.0), 1.0) * (self.end - self.start)

    def ticks(self, n: int = 5) -> list[float]:
        """Return about `n` round values from 0 on."""
        step = nice(self.high / n)
        return [i * step for i in range(int(self.high / step + 1e-9) + 1)]


@dataclass(frozen=True, slots=True)
class DepthScale:
    """An axis of context depths from 0 to `high` tokens, logarithmic but for its start."""

    high: int
    start: float
    end: float

    def __call__(self, depth: float) -> float:
        """Return the pixel of a depth in tokens."""
        share = math.log2(1 + depth / DEPTH_UNIT) / math.log2(1 + self.high / DEPTH_UNIT)
        return self.start + min(share, 1.0) * (self.end - self.start)

    def ticks(self) -> list[int]:
        """Return 0 and powers of two that leave room for their labels."""
        found, last = [0], self.start
        power = 1024
        while power <= self.high:
            if self(power) - last >= 44 and (self.end - self(power) >= 40 or power == self.high):
                found.append(power)
                last = self(power)
            power *= 2
        return found


def nice(value: float) -> float:
    """Return the next round number from a value up: 1, 2, 2.5 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(n * power for n in _NICE if n * power >= value * (1 - 1e-9))


def top_of(value: float, n: int = 5) -> float:
    """Return where an axis with about `n` round steps ends that reaches up to a value."""
    step = nice(value / n)
    return math.ceil(value / step * (1 - 1e-9)) * step


def depths(high: int, n: int) -> tuple[int, ...]:
    """Return about `n` depths from 0 to `high`, evenly spread over a depth axis."""
    top = math.log2(1 + high / DEPTH_UNIT)
    steps = (round(DEPTH_UNIT * (2 ** (top * i / (n - 1)) - 1)) for i in range(n))
    return tuple(dict.fromkeys(min(d, high) for d in steps))
