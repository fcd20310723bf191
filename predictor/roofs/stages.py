"""Stages of any program: what binds each, and the most that a change can bring."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokcast.predictor.errors import InputError
from tokcast.predictor.roofs.floor import Floor
from tokcast.predictor.roofs.tables import (
    check_keys,
    entries,
    number,
    numbers,
    read,
    shipped,
    text,
)

_TOP = ("title", "note", "peaks", "source", "seconds", "stage", "change")
_STAGE = ("name", "needs", "seconds", "note")
_CHANGE = ("name", "stages", "scale", "note")


@dataclass(frozen=True, slots=True)
class Stage:
    """What a stage takes of each resource, by its name; `seconds` as measured, if it was."""

    name: str
    needs: Mapping[str, float]
    seconds: float | None = None

    def floor(self, peaks: Mapping[str, float]) -> Floor:
        """Return the seconds that each resource is busy."""
        return Floor({name: amount / peaks[name] for name, amount in self.needs.items()})

    def least_gain(self, peaks: Mapping[str, float]) -> float:
        """Return the times faster the stage gets when its binding resource costs nothing."""
        busy = sorted(self.floor(peaks).by_resource.values())
        return _ratio(busy[-1], busy[-2] if len(busy) > 1 else 0.0)


@dataclass(frozen=True, slots=True)
class Change:
    """A change: by how much it multiplies what some stages need of a resource."""

    name: str
    stages: tuple[str, ...]
    scale: Mapping[str, float]
    note: str = ""

    def on(self, stage: Stage) -> Stage:
        """Return a stage after the change; what was measured no longer holds."""
        if stage.name not in self.stages:
            return stage
        needs = {name: n * self.scale.get(name, 1.0) for name, n in stage.needs.items()}
        return Stage(stage.name, needs)


@dataclass(frozen=True, slots=True)
class Program:
    """Stages that follow each other; `seconds` is the whole as measured, if it was."""

    title: str
    peaks: Mapping[str, float]
    stages: tuple[Stage, ...]
    changes: tuple[Change, ...]
    seconds: float | None = None
    note: str = ""

    @property
    def floor_seconds(self) -> float:
        """Return the least time of all stages, each at its own optimistic floor."""
        return sum(s.floor(self.peaks).optimistic for s in self.stages)

    @property
    def below_floor(self) -> tuple[str, ...]:
        """Return what was measured faster than its floor allows: its needs or a peak are wrong."""
        stages = (
            s.name
            for s in self.stages
            if s.seconds is not None and s.seconds < s.floor(self.peaks).optimistic
        )
        whole = self.seconds is not None and self.seconds < self.floor_seconds
        return (*stages, *(("the whole",) if whole else ()))

    def after(self, changes: tuple[Change, ...]) -> "Program":
        """Return the program after changes; nothing of it is measured."""
        stages = self.stages
        for change in changes:
            stages = tuple(change.on(s) for s in stages)
        plain = tuple(Stage(s.name, s.needs) for s in stages)
        return Program(self.title, self.peaks, plain, self.changes, note=self.note)

    def gain(self, changes: tuple[Change, ...]) -> float:
        """Return how many times shorter the sum of floors is after changes; inf if none is left."""
        return _ratio(self.floor_seconds, self.after(changes).floor_seconds)

    def most_gain(self, changes: tuple[Change, ...]) -> float | None:
        """Return the most that changes bring against the measured time; None where there is none.

        A changed program can at best reach the floor of every stage.
        """
        if self.seconds is None:
            return None
        return _ratio(self.seconds, self.after(changes).floor_seconds)


def _ratio(before: float, after: float) -> float:
    return before / after if after else math.inf


def program(path: Path) -> Program:
    """Return the program that a TOML file describes; raises InputError naming file and key."""
    table = read(path)
    check_keys(table, str(path), _TOP)
    peaks = numbers(table.get("peaks"), f"{path}: peaks")
    stages = tuple(_stage(s, path, peaks) for s in entries(table, "stage", str(path)))
    names = [s.name for s in stages]
    if len(set(names)) < len(names):
        raise InputError(f"{path}: two stages of one name; expected different names")
    listed = entries(table, "change", str(path)) if "change" in table else ()
    changes = tuple(_change(c, path, names, peaks) for c in listed)
    whole = table.get("seconds")
    measured = [s.seconds for s in stages if s.seconds is not None]
    seconds = sum(measured) if len(measured) == len(stages) else None
    return Program(
        title=text(table, "title", str(path)),
        peaks=peaks,
        stages=stages,
        changes=changes,
        seconds=seconds if whole is None else number(whole, f"{path}: seconds"),
        note=str(table.get("note", "")),
    )


def _known(given: Mapping[str, float], where: str, peaks: Mapping[str, float]) -> None:
    for name in given:
        if name not in peaks:
            raise InputError(f"{where}.{name}: no such peak; expected one of {', '.join(peaks)}")


def _stage(entry: Mapping[str, Any], path: Path, peaks: Mapping[str, float]) -> Stage:
    name = text(entry, "name", f"{path}: stage")
    where = f"{path}: stage {name}"
    check_keys(entry, where, _STAGE)
    needs = numbers(entry.get("needs"), f"{where}: needs", at_least=0.0)
    _known(needs, f"{where}: needs", peaks)
    if not any(needs.values()):
        raise InputError(f"{where}: needs nothing of any resource; expected an amount above 0")
    seconds = entry.get("seconds")
    return Stage(name, needs, None if seconds is None else number(seconds, f"{where}: seconds"))


def _change(
    entry: Mapping[str, Any], path: Path, names: list[str], peaks: Mapping[str, float]
) -> Change:
    name = text(entry, "name", f"{path}: change")
    where = f"{path}: change {name}"
    check_keys(entry, where, _CHANGE)
    stages = entry.get("stages")
    if not isinstance(stages, list) or not stages or any(s not in names for s in stages):
        raise InputError(f"{where}: stages is {stages!r}; expected some of {', '.join(names)}")
    scale = numbers(entry.get("scale"), f"{where}: scale", at_least=0.0)
    _known(scale, f"{where}: scale", peaks)
    return Change(name, tuple(stages), scale, str(entry.get("note", "")))


def shipped_floor_ms(example: str) -> float:
    """Return the sum of floors of an example, in ms."""
    return 1e3 * program(shipped(example)).floor_seconds


def shipped_gain(example: str, without: str = "") -> float:
    """Return the most that an example's changes bring together, one of them left out."""
    found = program(shipped(example))
    return found.most_gain(tuple(c for c in found.changes if c.name != without)) or 0.0


def shipped_share_bound_by(example: str, resource: str, without: str) -> float:
    """Return the share of an example's floors, but for one stage, that a resource binds."""
    found = program(shipped(example))
    floors = [s.floor(found.peaks) for s in found.stages if s.name != without]
    bound = sum(f.optimistic for f in floors if f.binding == resource)
    return bound / sum(f.optimistic for f in floors)
