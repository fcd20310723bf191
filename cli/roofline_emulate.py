"""`tokcast roofline emulate`: four terms of emulated FP64 beside the native units."""

from pathlib import Path
from typing import Any

from tokcast.cli.render import Report, Table, render
from tokcast.cli.roofline_figures import short
from tokcast.predictor.roofs.emulation import (
    Emulator,
    Kernel,
    Study,
    emulated,
    native_seconds,
    needed_ops,
    stored,
    study,
)
from tokcast.predictor.roofs.tables import shipped


def _record(e: Emulator, k: Kernel) -> dict[str, Any]:
    floor, kept, native = emulated(e, k), stored(e, k), native_seconds(e, k)
    return {
        "kernel": k.name,
        "intensity": k.intensity,
        "native_seconds": native,
        "emulated_seconds": floor.optimistic,
        "serial_seconds": floor.pessimistic,
        "bound_by": floor.binding,
        "speedup": native / floor.optimistic,
        "speedup_serial": native / floor.pessimistic,
        "speedup_stored": native / kept.optimistic,
        "ops_per_residue_needed": needed_ops(e, k),
        **{f"{name}_seconds": seconds for name, seconds in floor.by_resource.items()},
    }


def _row(r: dict[str, Any]) -> tuple[str, ...]:
    return (
        r["kernel"],
        short(r["intensity"]),
        r["bound_by"],
        f"{r['speedup_serial']:.2f} - {r['speedup']:.2f}x",
        f"{r['speedup_stored']:.2f}x",
        short(r["ops_per_residue_needed"]),
    )


def report(s: Study) -> Report:
    """Return the kernels of a study, each with its terms."""
    records = [_record(s.emulator, k) for k in s.kernels]
    limit = s.emulator.threshold
    slower = [r["kernel"] for r in records if r["speedup"] < 1]
    verdict = (
        f"{s.title}: native wins below OI* = {limit:.2f} FLOP a streamed byte",
        f"  slower than native whatever the matrix units: {', '.join(slower) or 'none'}",
    )
    columns = ("kernel", "FLOP/B", "bound by", "of native", "kept", "c_q")
    right = frozenset(columns) - {"kernel", "bound by"}
    notes = [
        "of native: emulated speed, no overlap to full overlap; kept: with residues stored"
        f" beforehand; c_q: integer operations a residue that would match (here"
        f" {s.emulator.ops_per_residue:g}).",
        *((f"{s.note}.",) if s.note else ()),
    ]
    table = Table(columns, tuple(map(_row, records)), right)
    data = {"title": s.title, "threshold": limit, "kernels": records}
    return Report(verdict, (table,), tuple(notes), data, records)


def run(file: str | None, output: str) -> int:
    """Print a file's kernels, or those of the example that comes with the project."""
    print(render(report(study(Path(file) if file else shipped("b300"))), output))
    return 0
