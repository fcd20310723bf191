"""Formulas with their units, their sources and the published figures that they reproduce.

Each file `data/formulas_*.toml` is one section of docs/roofline.md. A figure names the function
that computes it and the arguments, so that tests, the page and `tokcast roofline figures` run the
same code.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from tokcast.predictor.errors import InputError

_FOLDER = Path(__file__).with_name("data")
_PREFIX = "formulas_"
# How far a figure may lie from the published one before it must be explained.
TOLERANCE = 0.03

Relation = Literal["equals", "at most", "at least"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A published figure and the call that should give it.

    `call` is `module:function`; `pick` an attribute of what it returns where that is no number.
    `relation` says what ours is to the published one: its equal, or a bound that it must keep
    (ours is "at least" it for an upper bound on a measurement). `explained` says in numbers why
    one outside the tolerance differs; `sets` names an input that was set by this very figure, so
    that its agreement is no evidence.
    """

    what: str
    published: float
    unit: str
    call: str
    arguments: Mapping[str, Any]
    pick: str = ""
    relation: Relation = "equals"
    explained: str = ""
    sets: str = ""

    def value(self) -> float:
        """Return our figure, in the unit of the published one."""
        module, _, name = self.call.partition(":")
        found = getattr(import_module(module), name)(**self.arguments)
        for part in filter(None, self.pick.split(".")):
            found = getattr(found, part)
        return float(found)

    def holds(self, ours: float) -> bool:
        """Return whether our figure agrees within the tolerance, or keeps its bound."""
        if self.relation == "at least":
            return ours >= self.published * (1 - TOLERANCE)
        if self.relation == "at most":
            return ours <= self.published * (1 + TOLERANCE)
        return abs(ours / self.published - 1) <= TOLERANCE


@dataclass(frozen=True, slots=True)
class Formula:
    """One formula: what it gives, in which unit, with which symbols, and who published it."""

    name: str
    formula: str
    unit: str
    where: str
    source: str
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """The formulas of one subject."""

    title: str
    formulas: tuple[Formula, ...]


def section(text: str, name: str) -> Section:
    """Return the section that a TOML text holds; raises InputError naming what is wrong."""
    try:
        table = tomllib.loads(text)
        return Section(
            title=table["title"],
            formulas=tuple(_formula(entry) for entry in table["formula"]),
        )
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise InputError(
            f"{name}: {error}; expected title and [[formula]] tables, see docs/roofline.md"
        ) from None


def _formula(entry: Mapping[str, Any]) -> Formula:
    plain = {key: value for key, value in entry.items() if key != "figure"}
    return Formula(**plain, figures=tuple(Figure(**f) for f in entry.get("figure", ())))


@cache
def sections() -> tuple[Section, ...]:
    """Return the sections of the page, in the order of their files' names."""
    files = sorted(_FOLDER.glob(f"{_PREFIX}*.toml"))
    return tuple(section(f.read_text(encoding="utf-8"), f.name) for f in files)
