"""`tokcast roofline levels`: ridges by memory level, and how far to fuse."""

from pathlib import Path
from typing import Any

from tokcast.cli.render import Report, Table, render
from tokcast.cli.roofline_figures import short
from tokcast.predictor.roofs.levels import (
    Comparison,
    Machine,
    Standing,
    comparison,
    standing,
    stop_at,
)
from tokcast.predictor.roofs.tables import shipped


def _cell(s: Standing, level: str) -> str:
    found = s.intensities.get(level)
    return "-" if found is None else short(found)


def _table(machine: Machine, standings: list[Standing]) -> Table:
    levels = [level.name for level in machine.levels]
    columns = (machine.name, *levels, "TFLOP/s", "bound by")
    ridges = ("ridge, FLOP/byte", *(short(machine.ridge(x)) for x in machine.levels))
    rows = (
        (*ridges, f"{machine.flops_per_s / 1e12:.2f}", ""),
        *(
            (
                s.mapping.name,
                *(_cell(s, level) for level in levels),
                f"{s.flops_per_s / 1e12:.2f}",
                s.binding,
            )
            for s in standings
        ),
    )
    return Table(columns, rows, frozenset((*levels, "TFLOP/s")))


def _advice(machine: Machine, standings: list[Standing]) -> str:
    chosen = stop_at(standings)
    best = max(standings, key=lambda s: s.flops_per_s)
    if chosen is None:
        gain = best.flops_per_s / standings[0].flops_per_s
        return (
            f"  {machine.name}: no mapping clears every ridge; {best.mapping.name} is best,"
            f" {gain:.2f}x the first, bound by {best.binding}"
        )
    before = standings.index(chosen)
    bound = standings[before - 1] if before else None
    brings = (
        f"; it brings at most {chosen.flops_per_s / bound.flops_per_s:.2f}x over"
        f" {bound.mapping.name}"
        if bound
        else ""
    )
    more = standings[-1].flops_per_s / chosen.flops_per_s
    last = standings[-1].mapping.name
    beyond = f", going on to {last} at most {more:.2f}x" if chosen is not standings[-1] else ""
    return f"  {machine.name}: fuse up to {chosen.mapping.name}, then stop{brings}{beyond}"


def _records(machine: Machine, standings: list[Standing]) -> list[dict[str, Any]]:
    chosen = stop_at(standings)
    return [
        {
            "machine": machine.name,
            "mapping": s.mapping.name,
            **{f"intensity_{level}": value for level, value in s.intensities.items()},
            **{f"ridge_{level}": value for level, value in s.ridges.items()},
            "flops_per_s": s.flops_per_s,
            "bound_by": s.binding,
            "stop_here": s is chosen,
        }
        for s in standings
    ]


def report(c: Comparison) -> Report:
    """Return every mapping on every machine, and the rule's choice."""
    found = [(m, [standing(m, x) for x in c.mappings]) for m in c.machines]
    verdict = (
        f"{c.title}: fuse until the mapping clears the ridge of every level",
        *(_advice(m, s) for m, s in found),
    )
    records = [r for m, s in found for r in _records(m, s)]
    notes = (
        "Intensities in FLOP a byte across each level; TFLOP/s that the roofs allow.",
        *((f"{c.note}.",) if c.note else ()),
    )
    tables = tuple(_table(m, s) for m, s in found)
    return Report(verdict, tables, notes, {"title": c.title, "mappings": records}, records)


def run(file: str | None, output: str) -> int:
    """Print a file's comparison, or that of the example that comes with the project."""
    print(render(report(comparison(Path(file) if file else shipped("xdna"))), output))
    return 0
