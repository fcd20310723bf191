"""`tokcast energy evaluate`: the error on models and chips left out, beside TDP x time."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tokcast.cli.progress import Progress
from tokcast.cli.render import Report, Table, render
from tokcast.fits.energy import is_free
from tokcast.fits.energy_calibrated import installations
from tokcast.fits.energy_heldout import speed_fits
from tokcast.fits.energy_knees import knee_readings
from tokcast.fits.energy_observations import observe_energy
from tokcast.fits.energy_release import left_out_energy, release_energy
from tokcast.fits.energy_released import ENERGY_PATH
from tokcast.fits.energy_scores import EnergyScore, energy_scores
from tokcast.fits.kept import user_store
from tokcast.fits.observations import observe
from tokcast.fits.power_cap import CapScore, cap_terms, score_caps, sweeps
from tokcast.fits.scores import Score
from tokcast.measurements.energy_rows import of_measurement, packaged_energy
from tokcast.measurements.schema import packaged
from tokcast.predictor.errors import InputError


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} %"


def _mape(score: Score | None) -> str:
    return _percent(None if score is None else score.mape)


def _figure(value: float | None) -> str:
    """Return a percentage without its sign, for a table that has many."""
    return "-" if value is None else f"{value:.1f}"


def _figure_of(score: Score | None) -> str:
    return _figure(None if score is None else score.mape)


def _pooled(scores: Sequence[EnergyScore], left_out: str) -> tuple[str, ...]:
    """Return the line that puts all rows of one way of leaving out together."""
    of = [s for s in scores if s.left_out == left_out]
    timed = [s for s in of if s.inside_joules is not None and s.joules is not None]
    n, n_timed = sum(s.watts.n for s in of), sum(s.joules.n for s in timed if s.joules)
    watts = sum(s.inside_watts * s.watts.n for s in of) / n
    joules = sum((s.inside_joules or 0) * s.joules.n for s in timed if s.joules) / max(n_timed, 1)
    return (left_out, "all", "", str(n), "", "", _figure(watts), "", "", _figure(joules))


def score_table(scores: Sequence[EnergyScore]) -> Table:
    """Return a line each meter and phase: ours and the published power's over the same time."""
    columns = (
        "out",
        "meter",
        "phase",
        "rows",
        "power",
        "TDP",
        "in 80",
        "energy",
        "TDP x time",
        "inside",
    )
    rows: list[tuple[str, ...]] = [
        (
            s.left_out,
            s.meter,
            s.phase,
            str(s.watts.n),
            _figure_of(s.watts),
            _figure_of(s.tdp_watts),
            _figure(s.inside_watts),
            _figure_of(s.joules),
            _figure_of(s.tdp_joules),
            _figure(s.inside_joules),
        )
        for s in scores
    ]
    rows += [_pooled(scores, name) for name in ("model", "chip")]
    return Table(columns, tuple(rows), frozenset(columns[3:]))


def calibrated_table(scores: Sequence[EnergyScore]) -> Table:
    """Return joules a token of a model left out by whose time they are: three ways of knowing it.

    As measured, as calibrated by other models on the same installation, and as predicted.
    """
    columns = ("model left out", "phase", "measured", "calibrated", "TDP x time", "predicted")
    rows = tuple(
        (
            s.meter,
            s.phase,
            _mape(s.watts),
            _mape(s.calibrated),
            _mape(s.tdp_calibrated),
            _mape(s.joules),
        )
        for s in scores
        if s.calibrated is not None
    )
    return Table(columns, rows, frozenset(columns[2:]))


def cap_table(scores: Sequence[CapScore]) -> Table:
    """Return a line each sweep of a power limit, predicted without it."""
    columns = ("chip", "sweep left out", "best", "predicted", "steps", "speed", "energy", "saves")
    rows = tuple(
        (
            s.sweep.chip.removeprefix("NVIDIA GeForce "),
            s.sweep.name,
            f"{s.measured_w:.0f} W",
            f"{s.predicted_w:.0f} W",
            f"{s.steps:.0f}",
            _percent(s.speed_mape),
            _percent(s.energy_mape),
            f"{100 * s.saved:.0f} %",
        )
        for s in scores
    )
    return Table(columns, rows, frozenset(columns[2:]))


def evaluate(save: str | None, output: str) -> int:
    """Fit, print the held-out error, and write the coefficients to `save` when given.

    Exit code 1 when the coefficients are not the released ones and nothing was saved.
    """
    if save is not None and not Path(save).absolute().parent.is_dir():
        raise InputError(f"--save {save!r}: its folder is missing; expected a place to write to")
    with Progress() as progress:
        progress("reading measurements")
        measured = packaged()
        rows = [*packaged_energy(), *(of_measurement(m) for m in measured if m.power_w is not None)]
        found, rejected = observe_energy(rows)
        free = [o for o in found if is_free(o)]
        speed = speed_fits(observe(measured)[0], user_store(), progress)
        read = [*free, *knee_readings(found)]
        left = left_out_energy(read, speed, installations(rows), progress)
    swept = sweeps(packaged_energy())
    body = release_energy(left, cap_terms(swept))
    report = _report(body, energy_scores(left), score_caps(swept), len(free))
    kept_out = Counter(r.rule.name for r in rejected)
    notes = (
        *report.notes,
        "Kept out: " + ", ".join(f"{n:,} {name}" for name, n in kept_out.most_common()) + ".",
    )
    same = json.loads(ENERGY_PATH.read_bytes())["digest"] == body["digest"]
    if save is not None:
        Path(save).write_text(json.dumps(_whole(body, report), indent=1) + "\n", encoding="utf-8")
        notes = (*notes, f"Written to {save}.")
    elif not same:
        notes = (*notes, "These are not the released coefficients.")
    full = Report(report.verdict, report.tables, notes, report.data, report.records)
    print(render(full, output))
    return 0 if same or save is not None else 1


def _whole(body: dict[str, Any], report: Report) -> dict[str, Any]:
    """Return the coefficients with the scores they were released with."""
    return {**body, "scores": report.data["scores"], "limits": report.data["limits"]}


def _report(
    body: dict[str, Any], scores: Sequence[EnergyScore], caps: Sequence[CapScore], n: int
) -> Report:
    near = sum(c.steps <= 1 for c in caps)
    data = {
        "digest": body["digest"],
        "n_observations": n,
        "scores": [asdict(s) for s in scores],
        "limits": [asdict(c) for c in caps],
    }
    return Report(
        (
            f"Energy coefficients {body['digest']} from {n:,} readings; the best power limit within"
            f" one step in {near} of {len(caps)} sweeps left out",
        ),
        (score_table(scores), calibrated_table(scores), cap_table(caps)),
        (
            "Mean absolute percentage errors of rows whose model or chip was left out. Power: over"
            " the measured time; energy: joules a token over the predicted time, by speed fits"
            " that did not see the model or chip either. TDP: the published power over the same"
            " time. In 80, inside: how often the 80 % range held, made from the other groups.",
            "The second table is of joules a token by whose time they are: measured, calibrated by"
            " other models on the same installation (TDP x time is over this time), predicted.",
        ),
        data,
        [asdict(s) for s in scores],
    )
