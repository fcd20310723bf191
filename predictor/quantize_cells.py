"""The cells of llama-quantize's table: types under conditions on a tensor's position."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True, slots=True)
class Facts:
    """What conditions look at: a position among `count`, and the model."""

    position: int
    count: int
    gqa: int
    experts: int
    imatrix: bool


def _more(facts: Facts) -> bool:
    eighth = facts.count // 8
    return (
        facts.position < eighth
        or facts.position >= 7 * facts.count // 8
        or (facts.position - eighth) % 3 == 2
    )


BY_POSITION = ("first16", "first8", "middle", "more", "top2", "top4")
CONDITIONS: dict[str, Callable[[Facts], bool]] = {
    "first16": lambda f: f.position < f.count // 16,
    "first8": lambda f: f.position < f.count // 8,
    "middle": lambda f: f.count // 8 <= f.position < 7 * f.count // 8,
    "more": _more,
    "top2": lambda f: f.position < 2,
    "top4": lambda f: f.position < 4,
    "gqa4": lambda f: f.gqa >= 4,
    "experts4": lambda f: f.experts >= 4,
    "experts8": lambda f: f.experts == 8,
    "imatrix": lambda f: f.imatrix,
    "!imatrix": lambda f: not f.imatrix,
}


@cache
def _parsed(cell: str) -> tuple[tuple[tuple[Callable[[Facts], bool], ...], str], ...]:
    """Return a cell's choices: (conditions that all must hold, type)."""
    choices = (choice.rpartition(":") for choice in cell.split())
    return tuple(
        (tuple(CONDITIONS[c] for c in conditions.split("&") if c), name)
        for conditions, _, name in choices
    )


def choose(cell: str, default: str, facts: Facts) -> str:
    """Return the type of the first choice whose conditions hold, else the default."""
    for conditions, name in _parsed(cell):
        for holds in conditions:
            if not holds(facts):
                break
        else:
            return name
    return default


@cache
def choices_at(
    cell: str, count: int, gqa: int, experts: int, imatrix: bool, n: int
) -> tuple[str, ...]:
    """Return what a cell chooses at each of the first n positions, nothing for the default."""
    return tuple(choose(cell, "", Facts(i, count, gqa, experts, imatrix)) for i in range(n))
