"""Ridge points at each level of memory, and how far a mapping's fusion should go.

Fuse until the mapping's operational intensity clears the ridge point of every level, then stop.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokcast.predictor.errors import InputError
from tokcast.predictor.roofs.flash import FlashAttention, mappings_of
from tokcast.predictor.roofs.floor import ridge
from tokcast.predictor.roofs.mapping import Traffic
from tokcast.predictor.roofs.tables import (
    check_keys,
    entries,
    number,
    numbers,
    read,
    shipped,
    text,
)

_TOP = ("title", "note", "machine", "attention", "mapping")
_MACHINE = ("name", "flops_per_s", "level", "source")
_LEVEL = ("name", "bytes_per_s", "source")
_MAPPING = ("name", "flops", "bytes")


@dataclass(frozen=True, slots=True)
class Level:
    """One level of memory and its bandwidth in bytes/s."""

    name: str
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Machine:
    """A compute rate and the levels of memory before it, the farthest first."""

    name: str
    flops_per_s: float
    levels: tuple[Level, ...]

    def ridge(self, level: Level) -> float:
        """Return the level's ridge point, FLOP/byte."""
        return ridge(self.flops_per_s, level.bytes_per_s)


@dataclass(frozen=True, slots=True)
class Standing:
    """A mapping on a machine: its intensity and ridge by level, the rate it allows, what binds.

    `binding` is a level's name, or "compute" once every ridge is cleared.
    """

    mapping: Traffic
    intensities: Mapping[str, float]
    ridges: Mapping[str, float]
    flops_per_s: float
    binding: str

    @property
    def is_cleared(self) -> bool:
        """Return whether the mapping clears the ridge of every level."""
        return self.binding == "compute"


def standing(machine: Machine, mapping: Traffic) -> Standing:
    """Return how a mapping stands on a machine; a level without traffic does not limit it."""
    rates = {"compute": machine.flops_per_s}
    intensities, ridges = {}, {}
    for level in machine.levels:
        n_bytes = mapping.n_bytes.get(level.name, 0.0)
        ridges[level.name] = machine.ridge(level)
        if n_bytes:
            intensities[level.name] = mapping.flops / n_bytes
            rates[level.name] = mapping.flops / n_bytes * level.bytes_per_s
    binding = min(rates, key=lambda name: rates[name])
    return Standing(mapping, intensities, ridges, rates[binding], binding)


def stop_at(standings: Sequence[Standing]) -> Standing | None:
    """Return the first mapping that clears every ridge, the rule's choice; None if none does."""
    return next((s for s in standings if s.is_cleared), None)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Mappings, least fused first, on one or several machines."""

    title: str
    machines: tuple[Machine, ...]
    mappings: tuple[Traffic, ...]
    note: str = ""


def comparison(path: Path) -> Comparison:
    """Return what a TOML file compares; raises InputError naming file and key."""
    table = read(path)
    check_keys(table, str(path), _TOP)
    machines = tuple(_machine(m, path) for m in entries(table, "machine", str(path)))
    return Comparison(
        text(table, "title", str(path)),
        machines,
        _mappings(table, path, {level.name for m in machines for level in m.levels}),
        str(table.get("note", "")),
    )


def _mappings(table: Mapping[str, Any], path: Path, names: set[str]) -> tuple[Traffic, ...]:
    if "attention" in table:
        if "mapping" in table:
            raise InputError(f"{path}: both attention and mapping; expected one of them")
        mappings = mappings_of(_attention(table["attention"], path))
        unknown = sorted(names - set(mappings[0].n_bytes))
        if unknown:
            known = ", ".join(mappings[0].n_bytes)
            raise InputError(
                f"{path}: level {unknown[0]}: attention's traffic is known across {known} alone;"
                " expected those names, or [[mapping]] tables"
            )
        return mappings
    return tuple(_mapping(m, path, names) for m in entries(table, "mapping", str(path)))


def _machine(entry: Mapping[str, Any], path: Path) -> Machine:
    name = text(entry, "name", f"{path}: machine")
    where = f"{path}: machine {name}"
    check_keys(entry, where, _MACHINE)
    levels = []
    for level in entries(entry, "level", where):
        called = text(level, "name", f"{where}: level")
        check_keys(level, f"{where}: level {called}", _LEVEL)
        rate = number(level.get("bytes_per_s"), f"{where}: level {called}: bytes_per_s")
        levels.append(Level(called, rate))
    rate = number(entry.get("flops_per_s"), f"{where}: flops_per_s")
    return Machine(name, rate, tuple(levels))


def _mapping(entry: Mapping[str, Any], path: Path, names: set[str]) -> Traffic:
    name = text(entry, "name", f"{path}: mapping")
    where = f"{path}: mapping {name}"
    check_keys(entry, where, _MAPPING)
    moved = numbers(entry.get("bytes"), f"{where}: bytes", at_least=0.0)
    check_keys(moved, f"{where}: bytes", sorted(names))
    return Traffic(name, number(entry.get("flops"), f"{where}: flops"), moved)


def _attention(entry: Any, path: Path) -> FlashAttention:
    values = numbers(entry, f"{path}: attention")
    keys = ("n_tokens", "head_length", "number_bytes", "n_query")
    check_keys(values, f"{path}: attention", keys)
    missing = [key for key in keys if key not in values]
    if missing:
        number(None, f"{path}: attention: {missing[0]}")
    return FlashAttention(**values)


def fusion_gain(example: str, machine: str, least: str, most: str) -> float:
    """Return the most that going from one mapping to another brings on a machine of an example."""
    compared = comparison(shipped(example))
    found = next(m for m in compared.machines if m.name == machine)
    rates = {m.name: standing(found, m).flops_per_s for m in compared.mappings}
    return rates[most] / rates[least]


def attained_tflops(example: str, machine: str, mapping: str) -> float:
    """Return the TFLOP/s that an example's roofs allow a mapping."""
    compared = comparison(shipped(example))
    found = next(m for m in compared.machines if m.name == machine)
    chosen = next(m for m in compared.mappings if m.name == mapping)
    return standing(found, chosen).flops_per_s / 1e12
