"""`tokcast triage`: a measurement beside the floor of its step, and what to look at next."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from tokcast.cli.predict_notes import context_notes
from tokcast.cli.render import Report, Table, rate, render
from tokcast.cli.triage_cases import Case, Request
from tokcast.cli.triage_finding import NAMED_SHARE, Finding, find, next_step
from tokcast.cli.triage_sources import cases
from tokcast.predictor.errors import InputError
from tokcast.predictor.roofs.triage import Growth, growth


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:,.3g}" if seconds < 1 else f"{1e3 * seconds:,.0f}"


_PLACES = {
    "below": "below the floor",
    "inside": "inside the floor",
    "near": "just above",
    "above": "above the floor",
}


def _table(found: Sequence[Finding]) -> Table:
    columns = ("test", "tok/s", "ms", "max", "sum", "usual", "residual", "verdict")
    rows = tuple(
        (
            f.case.label,
            rate(f.case.tok_per_s),
            _ms(f.case.seconds),
            _ms(f.triage.floor.optimistic),
            _ms(f.triage.floor.pessimistic),
            _ms(f.usual.seconds),
            f"{100 * f.triage.residual:+.0f} %",
            _PLACES[f.triage.place],
        )
        for f in found
    )
    return Table(columns, rows, frozenset(columns[1:7]))


def _suspect_table(found: Sequence[Finding]) -> tuple[Table, ...]:
    rows = tuple((f.case.label, s.name, s.taken, s.needed) for f in found for s in f.suspects)
    return (Table(("test", "wrong input?", "taken", "needed"), rows),) if rows else ()


def _excess_table(found: Sequence[Finding]) -> tuple[Table, ...]:
    worst = next((f for f in found if f.triage.place == "above"), None)
    if worst is None:
        return ()
    total = sum(seconds for _, seconds in worst.excess)
    large = [(c, s) for c, s in worst.excess if s >= NAMED_SHARE * total]
    rows = tuple(
        (
            f"{c.component.replace('_', ' ')} {c.type}".strip(),
            _ms(c.seconds),
            _ms(seconds),
            f"{100 * seconds / total:.0f} %",
        )
        for c, seconds in large
    )
    title = f"{worst.case.label}, as predicted"
    return (Table((title, "ms", "beyond its floor", "share"), rows, frozenset({"ms", "share"})),)


def _notes(case: Case) -> tuple[str, ...]:
    return (*case.notes, *context_notes(case.spec, case.n_context))


def _record(f: Finding, step: str) -> dict[str, Any]:
    t = f.triage
    return {
        "test": f.case.label,
        "phase": f.case.workload.phase,
        "n_depth": f.case.n_depth,
        "tok_per_s": f.case.tok_per_s,
        "seconds": f.case.seconds,
        "floor_seconds": t.floor.optimistic,
        "serial_seconds": t.floor.pessimistic,
        "binding": t.floor.binding,
        "place": t.place,
        "overlap": t.overlap,
        "residual": t.residual,
        "threshold": t.threshold,
        "predicted_seconds": f.usual.seconds,
        "is_usual": f.is_usual,
        "next": step,
    }


def _threshold(text: str) -> float:
    try:
        value = float(text.rstrip(" %")) / (100.0 if text.rstrip().endswith("%") else 1.0)
    except ValueError:
        value = -1.0
    if not 0 <= value < 100:
        raise InputError(f"--threshold {text!r}: expected a share, such as 25% or 0.25")
    return value


def _told_apart(found: list[Finding]) -> list[Finding]:
    """Return findings whose labels say what they are of, where there are several such."""
    if len({f.case.place for f in found}) == 1:
        return found
    return [
        replace(f, case=replace(f.case, label=f"{f.case.place}: {f.case.label}")) for f in found
    ]


def _growth(one: Finding, found: Sequence[Finding]) -> Growth | None:
    """Return how what exceeds the usual grows with the depth, of one model on one host."""
    if one.case.workload.phase != "decode":
        return None
    alike = (
        f for f in found if f.case.workload.phase == "decode" and f.case.place == one.case.place
    )
    return growth(tuple((f.case.n_depth, f.triage.seconds - f.usual.seconds) for f in alike))


def report(request: Request) -> Report:
    """Return the triage of all that was measured."""
    found = [find(case, _threshold(request.threshold)) for case in cases(request)]
    if not found:
        raise InputError(f"{request.target}: no figure in it; nothing to compare")
    found = _told_apart(found)
    steps = [next_step(f, _growth(f, found)) for f in found]
    first = found[0].case
    verdict = (
        first.place if len({f.case.place for f in found}) == 1 else f"{len(found)} figures",
        *(f"  {f.case.label}: {step}" for f, step in zip(found, steps, strict=True)),
    )
    notes = (
        "max: the busiest resource alone, at the data sheet's peaks; sum: one after another;"
        " usual: predicted, in ms.",
        *(f"Note: {note}." for note in dict.fromkeys(n for f in found for n in _notes(f.case))),
    )
    records = [_record(f, step) for f, step in zip(found, steps, strict=True)]
    data = {
        "model": first.spec.name,
        "host": first.host.name,
        "tests": [
            {**r, "suspects": [asdict(s) for s in f.suspects]}
            for r, f in zip(records, found, strict=True)
        ],
    }
    tables = (_table(found), *_suspect_table(found), *_excess_table(found))
    return Report(verdict, tables, notes, data, records)


def run(request: Request, output: str) -> int:
    """Print the triage; exit code 1 when a measurement is below its floor."""
    made = report(request)
    print(render(made, output))
    return 1 if any(r["place"] == "below" for r in made.records) else 0
