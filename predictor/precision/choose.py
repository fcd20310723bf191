"""Which plan to take for an objective, among those that a chip can run and hold."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from tokcast.predictor.errors import InputError
from tokcast.predictor.precision.cost import Cost
from tokcast.predictor.precision.formats import format_of
from tokcast.predictor.precision.kept import Kept, kept_by
from tokcast.predictor.precision.plans import Plan
from tokcast.predictor.precision.rates import Rates

Objective = Literal["balanced", "speed", "memory", "quality"]
OBJECTIVES: tuple[Objective, ...] = get_args(Objective)
# The least share of the 16-bit score that a balanced plan may keep.
BALANCED = 0.99
RULES: dict[Objective, str] = {
    "balanced": f"the fastest whose formats are published to keep at least {BALANCED:.0%} of MMLU,"
    " else the one that keeps most",
    "speed": "the fewest seconds a step",
    "memory": "the fewest bytes",
    "quality": "the most of MMLU kept, of equals the fastest; last what nothing was published of",
}


@dataclass(frozen=True, slots=True)
class Option:
    """A plan with its cost, what is published of its answers, and why it will not do, or "".

    `is_native` where the chip multiplies its activations as they are.
    """

    cost: Cost
    kept: Kept | None
    misses: str
    is_native: bool

    @property
    def plan(self) -> Plan:
        """Return the plan."""
        return self.cost.plan


def objective_of(text: str) -> Objective:
    """Return the objective of that name; raises InputError for another."""
    for name in OBJECTIVES:
        if name == text.strip().lower():
            return name
    raise InputError(f"--objective {text!r}: expected one of {', '.join(OBJECTIVES)}")


def option(cost: Cost, rates: Rates, available_bytes: float | None) -> Option:
    """Return a plan judged: whether the chip multiplies its activations, and whether it fits."""
    wanted, misses = format_of(cost.plan.activations).arithmetic, ""
    # 16 bits run everywhere, widened where a chip multiplies 32 alone.
    is_native = wanted in ("fp16", rates.native(wanted))
    if not is_native:
        misses = f"no {wanted.upper()} rate known"
    elif available_bytes is not None and cost.need_bytes > available_bytes:
        misses = f"{cost.need_bytes / available_bytes:.2f} x the memory"
    return Option(cost, kept_by(cost.plan), misses, is_native)


def _key(o: Option, objective: Objective) -> tuple[float, ...]:
    seconds, share = o.cost.seconds, -1.0 if o.kept is None else o.kept.share
    if objective == "speed":
        return (seconds,)
    if objective == "memory":
        return (o.cost.need_bytes, seconds)
    if objective == "quality":
        return (-share, seconds)
    return (share < BALANCED, seconds if share >= BALANCED else -share, seconds)


def ranked(options: Sequence[Option], objective: Objective) -> tuple[Option, ...]:
    """Return options, those that will do first, best first by the objective's rule.

    The rest by bytes, last those that the chip has no arithmetic for.
    """

    def place(o: Option) -> tuple[float, ...]:
        if not o.misses:
            return (0.0, *_key(o, objective))
        return (1.0 if o.is_native else 2.0, o.cost.need_bytes)

    return tuple(sorted(options, key=place))
