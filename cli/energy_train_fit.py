"""`tokcast energy train-fit`: the laws of training made again, with their held-out error."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from tokcast.cli.progress import Progress
from tokcast.cli.render import Report, Table, check_format, render
from tokcast.fits.training_observations import TrainObservation, of_published, of_sweep
from tokcast.fits.training_release import PATH, release, sweep_host
from tokcast.fits.training_scores import LEVEL, Held, TrainingFit, fit_all
from tokcast.measurements.training_published import runs
from tokcast.measurements.training_runs import TrainRun, packaged, read
from tokcast.predictor.errors import InputError

SAME = 0.01


def run(on: str | None, save: str | None, output: str) -> int:
    """Fit, print the error on what was left out, and write the laws to `save` when given.

    With `on`, the sweep is that CSV's. Exit code 1 when the laws are not the released ones and
    nothing was saved.
    """
    check_format(output)
    if save is not None and not Path(save).absolute().parent.is_dir():
        raise InputError(f"--save {save!r}: its folder is missing; expected a place to write to")
    rows = packaged() if on is None else read(Path(on))
    if len({r.point for r in rows if r.point.n_devices == 1}) < 10:
        raise InputError(f"--on {on}: fewer than 10 points of one process; expected a sweep")
    with Progress() as progress:
        boards, sweep = of_published(runs()), of_sweep(rows, sweep_host(rows[0]))
        fitted = fit_all(boards, sweep, progress)
    body = release(fitted, rows[0].cpu, boards)
    released: dict[str, Any] = {"laws": {}, "digest": "none"}
    if PATH.exists():
        released = json.loads(PATH.read_bytes())
    same = furthest(body, released) <= SAME
    report = _report(fitted, body, boards, rows, same, released["digest"])
    if save is not None:
        Path(save).write_text(json.dumps(body, indent=1) + "\n")
    print(render(report, output))
    return 0 if same or save is not None else 1


def furthest(body: Mapping[str, Any], released: Mapping[str, Any]) -> float:
    """Return the largest difference of an effect between two sets of laws."""
    ours, theirs = _effects(body), _effects(released)
    return max(abs(ours.get(n, 0.0) - theirs.get(n, 0.0)) for n in {**ours, **theirs})


def _effects(body: Mapping[str, Any]) -> dict[str, float]:
    return {
        f"{kind}/{quantity}/{name}": value
        for kind, quantities in body["laws"].items()
        for quantity, law in quantities.items()
        for name, value in law["effects"].items()
    }


def _report(
    fitted: TrainingFit,
    body: Mapping[str, Any],
    boards: list[TrainObservation],
    rows: tuple[TrainRun, ...],
    same: bool,
    digest: str,
) -> Report:
    link = fitted.sweep.link
    assert link is not None
    verdict = (
        # The last digits of linear algebra are a machine's own; the same laws go by one name.
        f"Laws {digest if same else body['digest']} from {len(boards)} published rows of"
        f" {len({b.host for b in boards})} chips and {len(rows)} runs of a sweep on"
        f" {rows[0].cpu}; " + ("the released ones" if same else f"not the released {digest}"),
    )
    notes = (
        "Errors are of rows that the fit did not see. Baselines: rated watts by the measured time"
        " for joules, operations at one share of the peak for seconds.",
        f"Within: rows in the {LEVEL:.0%} range that others' errors make, groups alike.",
        f"A point of the sweep is the median of its runs; {_apart(rows)}.",
        f"Two processes exchange {link.bytes_per_s / 1e9:.2g} GB/s and"
        f" {link.latency_s * 1e3:.2g} ms a message. Joules of a sweep are seconds by stated watts.",
    )
    data = {
        "digest": body["digest"],
        "released": digest,
        "laws": body["laws"],
        "link": body["link"],
        "held_out": [asdict(h) for h in fitted.held],
    }
    records = [_record(h) for h in fitted.held]
    return Report(verdict, (_score_table(fitted), _exponents(body)), notes, data, records)


def _apart(rows: tuple[TrainRun, ...]) -> str:
    """Return in words how far runs of a point lie from their median."""
    told = []
    for n_devices, name in ((1, "one process"), (2, "two")):
        runs = [r for r in rows if r.point.n_devices == n_devices]
        off = [
            abs(r.seconds / median(o.seconds for o in again) - 1)
            for r in runs
            if len(again := [o for o in runs if o.point == r.point]) > 1
        ]
        if off:
            told.append(f"{100 * sum(off) / len(off):.0f} % of {name}")
    return f"runs lie from it by a mean of {' and '.join(told)}" if told else "each was run once"


def _score_table(fitted: TrainingFit) -> Table:
    columns = ("law", "left out", "rows", "MAPE", "median", "baseline", "within")
    rows = tuple(
        (
            f"{h.kind} {h.quantity}",
            h.left_out,
            str(h.score.n),
            f"{h.score.mape:.1f} %",
            f"{h.score.median_ape:.1f} %",
            f"{h.baseline.mape:.1f} %",
            f"{h.coverage:.0f} %",
        )
        for h in fitted.held
    )
    return Table(columns, rows, frozenset(columns[2:]))


def _record(h: Held) -> dict[str, Any]:
    return {
        "kind": h.kind,
        "quantity": h.quantity,
        "left_out": h.left_out,
        **asdict(h.score),
        "baseline_mape": h.baseline.mape,
        "coverage": h.coverage,
    }


def _exponents(body: Mapping[str, Any]) -> Table:
    columns = ("law", "alpha (compute)", "beta (memory)", "gamma (efficiency)")
    rows = tuple(
        (
            f"{kind} {quantity}",
            *(f"{v:.2f} ± {1.96 * e:.2f}" for v, e in law["exponents"].values()),
        )
        for kind, quantities in body["laws"].items()
        for quantity, law in quantities.items()
    )
    return Table(columns, rows, frozenset(columns[1:]))
