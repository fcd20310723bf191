"""One measured test held against its floor: where it lands, and what to look at next."""

from dataclasses import dataclass, replace

from tokcast.cli.fitting import fit
from tokcast.cli.triage_cases import Case
from tokcast.fits.calibrated import apply
from tokcast.fits.released import released
from tokcast.predictor.ledger import ledger
from tokcast.predictor.memory import Setting
from tokcast.predictor.prediction import ComponentTime, Prediction
from tokcast.predictor.roofline import Question, peak_ops_per_s, predict
from tokcast.predictor.roofs.floor import floor_of_works
from tokcast.predictor.roofs.suspects import Suspect, suspects
from tokcast.predictor.roofs.triage import Growth, Triage, triage

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
    """Return where a case lands; raises InputError for a host without a compute rate.

    On this machine its calibration is used, where there is one.
    """
    applied = apply(case.host, case.run, released()) if case.is_here else None
    if applied is not None:
        case = replace(case, host=applied.host)
    coefficients = released() if applied is None else applied.coefficients
    floor = floor_of_works(ledger(case.spec, case.workload), case.host)
    placed = triage(floor, case.seconds, threshold)
    usual = predict(case.spec, Question(case.workload, case.host, case.run), coefficients)
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
    total = sum(seconds for _, seconds in found.excess)
    named = [
        f"{c.component.replace('_', ' ')} {c.type}".strip()
        for c, seconds in found.excess[:_MOST_NAMED]
        if seconds >= NAMED_SHARE * total
    ]
    parts = ", then ".join(named) or "the whole step"
    if found.is_usual:
        return f"as usual for this stack: {parts}; no profiler needed"
    times = found.triage.seconds / found.usual.seconds
    slower = f"{times:.1f} times as long as usual for this stack; profile"
    if grown is not None and found.case.n_depth and grown.share(found.case.n_depth) > _GREW:
        share = 100 * grown.share(found.case.n_depth)
        return f"{slower} attention: {share:.0f} % of the excess grew with the depth"
    return f"{slower} {parts}"


def _fits(case: Case) -> bool:
    use = fit(case.spec, case.host, case.n_context, Setting.of(case.workload))
    return use.fits is not False
