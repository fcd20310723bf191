"""When to change the plan, from a stream of measured runs.

A plan's speed at a depth is what is expected of it times the level of what was measured of it
beside that, or of the plan in use where it was never run. The plan changes to a faster one when
its speed stays below the wish, and back to a less lossy one when that would stay above the wish
by a margin: two limits apart, each for some runs in a row. Activations with large outliers forbid
narrow plans at once and are forgotten slowly.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tokcast.predictor.errors import InputError
from tokcast.predictor.precision.levels import Level, Verdict

# Back to a less lossy plan only when it is so much above the wish; and runs in a row that decide.
MARGIN, PATIENCE = 1.10, 3
# Largest activation over three standard deviations: from here on 16 bits, or 8 (the published
# toolkit's limits); forgotten below so much of it.
SEVERE, MODERATE, FORGOTTEN = 2.0, 1.5, 0.9

Expected = Callable[[str, int], float]


@dataclass(frozen=True, slots=True)
class Rung:
    """A plan and the narrowest bits that it stores or multiplies weights in."""

    name: str
    bits: float


@dataclass(frozen=True, slots=True)
class Run:
    """A measured run: plan, tokens/s and tokens cached; `outlier` as above, None if not known."""

    plan: str
    tok_per_s: float
    n_depth: int = 0
    outlier: float | None = None


@dataclass(frozen=True, slots=True)
class Decision:
    """What a run was taken for, the plan to use after it, and why it changed, or ""."""

    run: Run
    verdict: Verdict
    plan: str
    tok_per_s: float
    why: str
    changed: bool


@dataclass(slots=True)
class Adapter:
    """Follows runs; `rungs` are plans from the least lossy to the fastest.

    `wanted` is tokens/s; `plan` is the one in use, "" for the first run's. Raises InputError for
    no plans or a wish that is no speed.
    """

    rungs: Sequence[Rung]
    expected: Expected
    wanted: float
    plan: str = ""
    _levels: dict[str, Level] = field(default_factory=dict)
    _slow: int = 0
    _roomy: int = 0
    _least_bits: float = 0.0
    _calm: int = 0

    def __post_init__(self) -> None:
        """Refuse what there is no choosing with."""
        if not self.rungs:
            raise InputError("no plans to choose from; expected at least one")
        if not 0 < self.wanted < math.inf:
            raise InputError(f"wanted {self.wanted} tok/s; expected a speed above 0")
        self._levels = {rung.name: Level() for rung in self.rungs}

    def follow(self, run: Run) -> Decision:
        """Return what to do after a run; raises InputError for a plan that is not among them."""
        level = self._levels.get(run.plan)
        if level is None:
            names = ", ".join(r.name for r in self.rungs)
            raise InputError(f"plan {run.plan!r}: expected one of {names}")
        self.plan = self.plan or run.plan
        verdict = level.add(run.tok_per_s, self.expected(run.plan, run.n_depth))
        old, why = self.plan, self._by_outliers(run) or ""
        if not why and verdict != "outlier":
            why = self._by_speed(run.n_depth)
        return Decision(
            run, verdict, self.plan, self.speed(self.plan, run.n_depth), why, self.plan != old
        )

    def speed(self, name: str, n_depth: int) -> float:
        """Return the tokens/s that a plan is taken to give at a depth."""
        own, used = self._levels[name], self._levels[self.plan]
        known = [own, used, *self._levels.values()]
        factor = next((level.factor for level in known if level.is_known), 1.0)
        return self.expected(name, n_depth) * factor

    def _allowed(self) -> list[Rung]:
        wide = [r for r in self.rungs if r.bits >= self._least_bits]
        return wide or [max(self.rungs, key=lambda r: r.bits)]

    def _by_outliers(self, run: Run) -> str | None:
        if run.outlier is None:
            return None
        needed = 16.0 if run.outlier >= SEVERE else 8.0 if run.outlier >= MODERATE else 0.0
        if needed >= self._least_bits:
            self._least_bits, self._calm = needed, 0
        elif run.outlier < FORGOTTEN * (SEVERE if self._least_bits > 8 else MODERATE):
            self._calm += 1
            if self._calm >= PATIENCE:
                self._least_bits, self._calm = needed, 0
        allowed = [r.name for r in self._allowed()]
        if self.plan in allowed:
            return None
        self._change(self._best(self._allowed(), run.n_depth, self.wanted))
        return f"activations up to {run.outlier:.2f} x three standard deviations"

    def _by_speed(self, n_depth: int) -> str:
        allowed = self._allowed()
        place = [r.name for r in self.rungs].index(self.plan)
        better = [r for r in allowed if r in self.rungs[:place]]
        speed = self.speed(self.plan, n_depth)
        self._slow = self._slow + 1 if speed < self.wanted else 0
        roomy = [r for r in better if self.speed(r.name, n_depth) >= MARGIN * self.wanted]
        self._roomy = self._roomy + 1 if roomy else 0
        if self._slow >= PATIENCE:
            found = self._best(allowed, n_depth, MARGIN * self.wanted)
            if self.speed(found, n_depth) > speed:
                self._change(found)
                return f"{speed:.3g} tok/s at depth {n_depth}: below {self.wanted:g}"
        if self._roomy >= PATIENCE:
            self._change(roomy[0].name)
            speed = self.speed(self.plan, n_depth)
            return f"{speed:.3g} tok/s at depth {n_depth}: {MARGIN:g} x {self.wanted:g} and more"
        return ""

    def _best(self, rungs: Sequence[Rung], n_depth: int, wanted: float) -> str:
        """Return the least lossy plan that is fast enough, else the fastest."""
        speeds = {r.name: self.speed(r.name, n_depth) for r in rungs}
        enough = [name for name, speed in speeds.items() if speed >= wanted]
        return enough[0] if enough else max(speeds, key=speeds.__getitem__)

    def _change(self, name: str) -> None:
        self.plan, self._slow, self._roomy = name, 0, 0
