"""`tokcast roofline stages`: the bottleneck of each stage, and the most a change can bring."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokcast.cli.render import Report, Table, render
from tokcast.predictor.roofs.stages import Change, Program, Stage, program
from tokcast.predictor.roofs.tables import shipped


def milliseconds(seconds: float) -> str:
    """Return a time in ms with three significant digits."""
    return f"{1e3 * seconds:.3g}"


def times(gain: float | None) -> str:
    """Return a gain as a multiple; None has no limit."""
    return "no limit" if gain is None else f"{gain:.2f}x"


def _finite(gain: float) -> float | None:
    return None if math.isinf(gain) else gain


@dataclass(frozen=True, slots=True)
class _Row:
    """A stage with its share of all floors and what removing it altogether would bring."""

    stage: Stage
    p: Program

    @property
    def data(self) -> dict[str, Any]:
        floor = self.stage.floor(self.p.peaks)
        own = floor.optimistic
        rest = self.p.floor_seconds - own
        return {
            "stage": self.stage.name,
            "floor_seconds": own,
            "serial_seconds": floor.pessimistic,
            "measured_seconds": self.stage.seconds,
            "binding": floor.binding,
            "share": own / self.p.floor_seconds,
            "gain_without_bottleneck": _finite(self.stage.least_gain(self.p.peaks)),
            "whole_gain_at_most": self.p.floor_seconds / rest if rest else None,
        }


def _cells(r: dict[str, Any]) -> tuple[str, ...]:
    return (
        r["stage"],
        milliseconds(r["floor_seconds"]),
        "-" if r["measured_seconds"] is None else milliseconds(r["measured_seconds"]),
        f"{100 * r['share']:.0f} %",
        r["binding"],
        times(r["gain_without_bottleneck"]),
        times(r["whole_gain_at_most"]),
    )


def _stage_table(records: list[dict[str, Any]]) -> Table:
    names = ("stage", "floor ms", "measured", "share", "bound by", "without that", "all, at most")
    right = frozenset(names) - {"stage", "bound by"}
    return Table(names, tuple(map(_cells, records)), right)


def _change_record(name: str, changes: tuple[Change, ...], p: Program) -> dict[str, Any]:
    after, most = p.after(changes), p.most_gain(changes)
    return {
        "change": name,
        "stages": sorted({s for c in changes for s in c.stages}),
        "floor_seconds": after.floor_seconds,
        "floor_gain": _finite(p.gain(changes)),
        "gain_at_most": None if most is None else _finite(most),
        "then_bound_by": {s.name: s.floor(p.peaks).binding for s in after.stages},
    }


def _change_table(records: list[dict[str, Any]], is_measured: bool) -> Table:
    names = ("change", "stages", "floor ms", "floors", "at most")
    rows = tuple(
        (
            r["change"],
            ", ".join(r["stages"]) if r["change"] != "all of them" else "",
            milliseconds(r["floor_seconds"]),
            times(r["floor_gain"]),
            times(r["gain_at_most"]) if is_measured else "-",
        )
        for r in records
    )
    return Table(names, rows, frozenset(names[2:]))


def report(p: Program) -> Report:
    """Return the stages of a program and what its changes can bring."""
    stages = [_Row(s, p).data for s in p.stages]
    changes = [_change_record(c.name, (c,), p) for c in p.changes]
    if len(p.changes) > 1:
        changes.append(_change_record("all of them", p.changes, p))
    longest = max(stages, key=lambda r: r["floor_seconds"])
    verdict = [
        f"{p.title}: floors add up to {milliseconds(p.floor_seconds)} ms"
        + (f", measured {milliseconds(p.seconds)} ms" if p.seconds else "")
    ]
    most = longest["whole_gain_at_most"]
    verdict.append(
        f"  {longest['stage']} is the longest, bound by {longest['binding']}"
        + (f"; without it all is at most {times(most)} as fast" if most else "")
    )
    if changes:
        best = min(changes[: len(p.changes)], key=lambda r: r["floor_seconds"])
        verdict.append(f"  most from one change: {best['change']}, {times(best['floor_gain'])}")
    notes = [
        "floors: of all stages, before over after; at most: measured over the floors after it."
        if changes
        else "without that: the stage when its bottleneck costs nothing."
    ]
    if p.note:
        notes.append(f"{p.note}.")
    notes += [
        f"Note: {name} was measured faster than its floor: a need or a peak is wrong."
        for name in p.below_floor
    ]
    tables = (
        _stage_table(stages),
        *((_change_table(changes, p.seconds is not None),) if changes else ()),
    )
    data = {"title": p.title, "stages": stages, "changes": changes, "seconds": p.seconds}
    return Report(tuple(verdict), tables, tuple(notes), data, stages)


def run(file: str | None, output: str) -> int:
    """Print the stages of a file, or of the example that comes with the project."""
    print(render(report(program(Path(file) if file else shipped("splatting"))), output))
    return 0
