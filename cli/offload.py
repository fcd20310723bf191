"""`--part offload` of `tokcast fit` and `evaluate`: what placements add to whole models."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from math import exp
from pathlib import Path
from typing import Any

from tokcast.cli.progress import Progress
from tokcast.cli.render import Report, Table, check_format, render
from tokcast.cli.score_tables import percent
from tokcast.fits.offload import PlacedFit, fit_placed, released_form
from tokcast.fits.placed_design import timed
from tokcast.fits.placed_released import released_placed
from tokcast.fits.placed_rows import PlacedRows, placed_rows, published
from tokcast.fits.placed_scores import Order, PlacedScore, orders, placed_scores
from tokcast.fits.released import released
from tokcast.predictor.errors import InputError
from tokcast.predictor.ledger import Phase

PARTS = ("models", "offload")
Fits = dict[Phase, list[PlacedFit]]


def is_asked(part: str) -> bool:
    """Return whether placements are meant; raises InputError for a part that is neither."""
    if part not in PARTS:
        raise InputError(f"--part {part!r}: expected {' or '.join(PARTS)}")
    return part == "offload"


def _fitted() -> tuple[Fits, PlacedRows]:
    with Progress() as progress:
        progress("reading measurements")
        rows = placed_rows(published())
        return fit_placed(timed(rows.runs, released()), progress), rows


def fit(save: str | None, effects: bool, output: str) -> int:
    """Print what placements add, fitted again, and write it where it is asked for."""
    check_format(output)
    fits, rows = _fitted()
    body = released_form(fits, released().digest)
    is_same = released_placed().digest == body["digest"]
    if save is not None:
        try:
            Path(save).write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
        except OSError as error:
            raise InputError(f"--save {save!r}: {error.strerror}; expected a file") from error
    verdict = (
        f"Effects {body['digest']} of {len(rows.runs):,} placed runs upon coefficients"
        f" {body['base']}; the released ones are {'the same' if is_same else 'others'}",
    )
    tables = [_kinds(body)]
    if effects:
        tables.append(_effects(fits))
    records = [{"effect": k, "value": v} for k, v in body["effects"].items()]
    print(render(Report(verdict, tuple(tables), _notes(rows), body, records), output))
    return 0 if is_same or save is not None else 1


def _kinds(body: dict[str, Any]) -> Table:
    columns = ("phase, kind", "rows", "80 % range", "95 % range")
    rows = [
        (key, str(body["n_observations"][key]), *(_range(ends[level]) for level in ("0.8", "0.95")))
        for key, ends in body["intervals"].items()
    ]
    return Table(columns, tuple(rows), frozenset(columns[1:]))


def _range(ends: Sequence[float]) -> str:
    return f"{exp(ends[0]):.2f} - {exp(ends[1]):.2f}"


def _effects(fits: Fits) -> Table:
    rows = [
        (name, f"{value:+.3f}", f"{error:.3f}")
        for of_phase in fits.values()
        for one in of_phase
        for name, value, error in zip(
            one.estimate.names, one.estimate.theta, one.estimate.stderr, strict=True
        )
    ]
    return Table(("effect", "value", "std. error"), tuple(rows), frozenset({"value", "std. error"}))


def _notes(rows: PlacedRows) -> tuple[str, ...]:
    return tuple(f"{n} rows left out: {why}." for why, n in rows.rejected.items())


def evaluate(is_with_others: bool, output: str) -> int:
    """Print held-out scores of placements, with simpler predictors and the order of plans."""
    check_format(output)
    if is_with_others:
        raise InputError("--part offload: takes no --on, --save or --cluster; leave them out")
    fits, rows = _fitted()
    base = released()
    scores = [
        s for phase, own in fits.items() for one in own for s in placed_scores(phase, one, base)
    ]
    told = [o for phase, own in fits.items() for one in own for o in orders(phase, one)]
    verdict = (
        f"{len(rows.runs):,} runs of partly offloaded or divided models; each row predicted by a"
        " fit that did not see its machine, or its model on this machine",
    )
    data = {
        "base": base.digest,
        "scores": [asdict(s) for s in scores],
        "orders": [asdict(o) for o in told],
        "left_out": dict(rows.rejected),
    }
    records = [
        {"phase": s.phase, "rows": s.rows, "left_out": s.out, **asdict(s.ours), **s.held}
        for s in scores
    ]
    tables = (*_score_tables(scores), _held(scores), _orders(told))
    print(render(Report(verdict, tables, _notes(rows), data, records), output))
    return 0


def _score_tables(scores: Sequence[PlacedScore]) -> tuple[Table, ...]:
    """Return a table a phase: MAPE of every predictor, and more of ours."""
    found = []
    for phase in dict.fromkeys(s.phase for s in scores):
        own = [s for s in scores if s.phase == phase]
        beside = tuple(own[0].baselines)
        columns = (f"{phase}, MAPE", "left out", "rows", "machines", "tokcast", "median", *beside)
        rows = [
            (
                s.rows,
                s.out,
                str(s.ours.n),
                str(s.ours.n_hosts),
                percent(s.ours.mape),
                percent(s.ours.median_ape),
                *(percent(s.baselines[name].mape) for name in beside),
            )
            for s in own
        ]
        found.append(Table(columns, tuple(rows), frozenset(columns[2:])))
    return tuple(found)


def _held(scores: Sequence[PlacedScore]) -> Table:
    columns = ("range held, mean over machines", "80 %", "95 %")
    rows = [
        (f"{s.phase}: {s.rows}", *(f"{s.held[level]:.0f} %" for level in ("0.8", "0.95")))
        for s in scores
    ]
    return Table(columns, tuple(rows), frozenset(columns[1:]))


def _orders(told: Sequence[Order]) -> Table:
    columns = ("order of plans over 10 % apart", "pairs", "right")
    rows = [
        (f"{o.phase}: {o.rows}", str(o.n_pairs), f"{100 * o.n_right / o.n_pairs:.1f} %")
        for o in told
    ]
    return Table(columns, tuple(rows), frozenset(columns[1:]))
