"""What `tokcast calibrate` prints: the plan, the error before and after, how far to trust it."""

from collections.abc import Mapping, Sequence
from math import expm1
from typing import Any

from tokcast.cli.measuring import Engine
from tokcast.cli.progress import clock_text
from tokcast.cli.render import Report, Table, size
from tokcast.measurements.calibration_run import Outcome
from tokcast.measurements.figures import figures
from tokcast.measurements.plan import Plan
from tokcast.measurements.record import RunRecord
from tokcast.predictor.host import Host


def _plan_table(plan: Plan) -> Table:
    columns = ("model", "tests", "launches", "about")
    rows = []
    for item in plan.items:
        own = [w for w in plan.launches if w.item == item]
        seconds = sum(w.expected_seconds for w in own)
        tests = ", ".join(t.label for t in item.tests)
        rows.append((item.key, str(len(own)), clock_text(seconds), tests))
    return Table(
        (columns[0], "launches", "about", "tests"), tuple(rows), frozenset({"launches", "about"})
    )


def plan_report(plan: Plan, engine: Engine) -> Report:
    """Return what would be measured, and how long it should take."""
    verdict = (
        f"Calibration of {engine.host.name} with {engine.setup.version} ({engine.setup.backend})",
        f"  {len(plan.launches)} launches of {len(plan.items)} synthetic models, about"
        f" {clock_text(plan.expected_seconds)}; at most {size(plan.disk_bytes)} of disk",
    )
    records = [
        {"launch": w.key, "expected_seconds": w.expected_seconds, "tests": len(w.item.tests)}
        for w in plan.launches
    ]
    data = {
        "launches": records,
        "expected_seconds": plan.expected_seconds,
        "disk_bytes": plan.disk_bytes,
    }
    return Report(verdict, (_plan_table(plan),), (), data, records)


def trust(runs: Sequence[RunRecord]) -> tuple[str, ...]:
    """Return how trustworthy the measurements are, in words."""
    by_model: dict[str, list[RunRecord]] = {}
    for run in runs:
        by_model.setdefault(run.model.name, []).append(run)
    found = [f for group in by_model.values() for f in figures(group)]
    bad = [f for f in found if not f.verdict.stable]
    if not bad:
        return (f"All {len(found)} figures are stable.",)
    reasons: dict[str, int] = {}
    for f in bad:
        for reason in f.verdict.reasons:
            kind = reason.lstrip("0123456789 of").split(" by ")[0]
            reasons[kind] = reasons.get(kind, 0) + 1
    common = max(reasons, key=lambda r: reasons[r])
    return (
        f"Note: {len(bad)} of {len(found)} figures are unstable (most: {common}); they count less."
        " Close other programs and calibrate again.",
    )


def _error_table(c: Mapping[str, Any]) -> Table:
    columns = ("phase", "models", "left out", "error before", "after", "80 % range")
    rows = []
    for phase, p in c["phases"].items():
        shown = "not used"
        if p["is_used"]:
            low, high = c["intervals"][phase]["0.8"]
            shown = f"{100 * expm1(low):+.0f} to {100 * expm1(high):+.0f} %"

        cells = (str(p["n_models"]), str(p["n_left_out"]))
        errors = (f"{p['mape_before']:.1f} %", f"{p['mape_after']:.1f} %")
        rows.append((phase, *cells, *errors, shown))
    return Table(columns, tuple(rows), frozenset(columns[1:]))


def report(c: Mapping[str, Any], host: Host, notes: Sequence[str], failed: Sequence[str]) -> Report:
    """Return the error before and after, with how far to trust it."""
    verdict = (
        f"Calibrated: {host.name} with {c['runtime']} ({c['backend']})",
        "  tokcast predict now uses it for this machine",
    )
    unused = [phase for phase, p in c["phases"].items() if not p["is_used"]]
    explained = (
        *(f"Note: {phase} is predicted no better; it stays as released." for phase in unused),
        "Errors are of models left out of the update, mean of absolute percentages.",
        *_power(c),
        *notes,
        *(f"Failed: {text}." for text in failed),
    )
    records = [{"phase": phase, **p} for phase, p in c["phases"].items()]
    return Report(verdict, (_error_table(c),), explained, dict(c), records)


def _power(c: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the meter read, where one ran."""
    found = c.get("energy")
    if found is None:
        return ()
    return (
        f"Power, from {found['source']}: {found['reference_watts']:.0f} W at full bandwidth and"
        f" rate, {100 * found['error']:.0f} % off for a model left out of {found['n_models']};"
        " tokcast predict --energy uses it.",
    )


def clean_share(runs: Sequence[RunRecord]) -> float:
    """Return the share of the figures that have an undisturbed repetition."""
    series = [s for run in runs for s in run.series]
    return sum(bool(s.clean) for s in series) / len(series)


def refused(outcome: Outcome, host: Host) -> Report:
    """Return the report on a machine too busy to be calibrated."""
    share = 1 - clean_share(outcome.runs)
    verdict = (
        f"Not calibrated: {host.name} was too busy",
        f"  {100 * share:.0f} % of the figures have no undisturbed repetition; nothing is changed",
    )
    notes = (
        *trust(outcome.runs),
        "What was undisturbed is kept: tokcast calibrate goes on with the rest when it is quiet.",
    )
    data = {"calibrated": False, "disturbed_share": share}
    return Report(verdict, (), notes, data, [data])
