"""`tokcast triage`: a measurement beside the floor of its step, and what to look at next."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tokcast.cli.fitting import fit
from tokcast.cli.predict import context_notes
from tokcast.cli.render import Report, Table, rate, render
from tokcast.cli.triage_cases import Case, Request, cases
from tokcast.fits.released import released
from tokcast.predictor.errors import InputError
from tokcast.predictor.ledger import ledger
from tokcast.predictor.prediction import ComponentTime, Prediction
from tokcast.predictor.roofline import Question, peak_ops_per_s, predict
from tokcast.predictor.roofs.floor import floor_of_works
from tokcast.predictor.roofs.suspects import Suspect, suspects
from tokcast.predictor.roofs.triage import Growth, Triage, growth, triage

# A component is named for profiling when it makes up so much of what exceeds the floor.
NAMED_SHARE = 0.1
_MOST_NAMED = 3
_GREW = 0.5


@dataclass(frozen=True, slots=True)
class Finding:
    """A case with its place, what is usual for such a stack, and what to do."""

    case: Case
    triage: Triage
    usual: Prediction
    suspects: tuple[Suspect, ...]
    excess: tuple[tuple[ComponentTime, float], ...]

    @property
    def is_usual(self) -> bool:
        """Return whether the measurement lies in the predicted range, or is faster."""
        return self.case.tok_per_s >= self.usual.low


def find(case: Case, threshold: float) -> Finding:
    """Return where a case lands; raises InputError for a host without a compute rate."""
    floor = floor_of_works(ledger(case.spec, case.workload), case.host)
    placed = triage(floor, case.seconds, threshold)
    usual = predict(case.spec, Question(case.workload, case.host, case.run), released())
    below = placed.place == "below"
    blamed = suspects(case.spec, case.workload, case.host, floor, case.seconds) if below else ()
    return Finding(case, placed, usual, blamed, _excess(usual, case))


def _excess(usual: Prediction, case: Case) -> tuple[tuple[ComponentTime, float], ...]:
    """Return what each component is expected to take beyond its own roofline, largest first."""
    peak = peak_ops_per_s(case.host) or float("inf")
    beyond = [
        (c, c.seconds - max(c.bytes / case.host.bytes_per_s, c.flops / peak))
        for c in usual.components
    ]
    return tuple(sorted((b for b in beyond if b[1] > 0), key=lambda b: -b[1]))


def next_step(found: Finding, grown: Growth | None) -> str:
    """Return what to do about a finding, one sentence."""
    t = found.triage
    if t.place == "below":
        least = found.suspects[0]
        return (
            f"{t.shortfall:.2f} times faster than the floor allows: an input is wrong;"
            f" first look at {least.name} ({least.taken}; needed: {least.needed})"
        )
    if t.place == "inside":
        return t.overlap_words or "at the floor: only fewer bytes or operations make it faster"
    if t.place == "near":
        return "under the threshold: no profiler needed"
    return _profile(found, grown)


def _profile(found: Finding, grown: Growth | None) -> str:
    if not _fits(found.case):
        return "does not fit: part of it runs from main memory; nothing else matters before that"
    if grown is not None and found.case.n_depth and grown.share(found.case.n_depth) > _GREW:
        share = 100 * grown.share(found.case.n_depth)
        return f"profile attention: {share:.0f} % of the residual grew with the depth"
    total = sum(seconds for _, seconds in found.excess)
    named = [
        f"{c.component.replace('_', ' ')} {c.type}".strip()
        for c, seconds in found.excess[:_MOST_NAMED]
        if seconds >= NAMED_SHARE * total
    ]
    usual = "as usual for this stack" if found.is_usual else "slower than this stack usually is"
    return f"{usual}; profile {', then '.join(named) or 'the whole step'}"


def _fits(case: Case) -> bool:
    load = case.workload
    use = fit(
        case.spec,
        case.host,
        case.n_context,
        type_k=load.type_k,
        type_v=load.type_v,
        n_ubatch=load.n_ubatch,
        flash_attention=load.flash_attention,
    )
    return use.fits is not False


def _notes(case: Case) -> tuple[str, ...]:
    return (*case.notes, *context_notes(case.spec, case.n_context))


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


def report(request: Request) -> Report:
    """Return the triage of all that was measured."""
    found = [find(case, _threshold(request.threshold)) for case in cases(request)]
    if not found:
        raise InputError(f"{request.target}: no figure in it; nothing to compare")
    decoding = tuple((f.case.n_depth, f.triage) for f in found if f.case.workload.phase == "decode")
    grown = growth(decoding)
    steps = [next_step(f, grown if f.case.workload.phase == "decode" else None) for f in found]
    first = found[0].case
    verdict = (
        f"{first.spec.name} {first.spec.file_type} on {first.host.name} ({first.run.backend})",
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
