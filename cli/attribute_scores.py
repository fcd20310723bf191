"""`tokcast attribute --held-out` and `--save`: how good fitted batch times are; keeping them."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tokcast.cli.attribute import Request, Shapes, batches_of, by_conditions
from tokcast.cli.render import Report, Table, render
from tokcast.fits.batch_fits import BatchFit, to_json
from tokcast.fits.batch_scores import Compared, compared, held_out
from tokcast.fits.batch_times import fit_times
from tokcast.measurements.batches import Conditions
from tokcast.predictor.errors import InputError

Scored = tuple[Conditions, tuple[Compared, ...]]


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _times_better(c: Compared) -> str:
    return f"{c.baseline.p99 / c.own.p99:.1f}"


def _rows(name: str, scores: Sequence[Compared]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for c in scores:
        for who, s in (("fitted", c.own), ("token count", c.baseline)):
            better = _times_better(c) if who == "fitted" else ""
            cells = (_percent(s.p50), _percent(s.p90), _percent(s.p99), f"{s.r2:.3f}", better)
            rows.append((name, c.kind, str(s.n), who, *cells))
    return rows


def scores_report(
    scored: Sequence[Scored], overall: tuple[Compared, ...], n_disturbed: int
) -> Report:
    """Return errors on rounds left out, by model and over all, beside counting tokens."""
    rows = [row for c, scores in scored for row in _rows(c.model, scores)]
    if len(scored) > 1:
        rows += _rows("all", overall)
    columns = ("model", "batches", "n", "by", "p50", "p90", "p99", "R2", "p99 x")
    worst = min(overall, key=lambda c: c.baseline.p99 / c.own.p99)
    hosts = ", ".join(dict.fromkeys(f"{c.host} ({c.backend})" for c, _ in scored))
    return Report(
        verdict=(
            f"p99 of the error is {_times_better(worst)} times below counting tokens at least"
            f" ({worst.kind})",
        ),
        tables=(Table(columns, tuple(rows), frozenset(columns) - {"model", "batches", "by"}),),
        notes=(
            f"Relative error of batches whose round was left out of the fit, on {hosts};"
            f" {n_disturbed} batches that other load disturbed throughout are left out.",
            "token count: a constant and a cost a new token, fitted for each kind of batch.",
        ),
        data={
            "models": [
                {**asdict(c), "scores": [asdict(s) for s in scores]} for c, scores in scored
            ],
            "all": [asdict(s) for s in overall],
        },
        records=[record for c, scores in scored for record in _records(c.model, scores)],
    )


def _records(model: str, scores: Sequence[Compared]) -> list[dict[str, Any]]:
    return [
        {"model": model, "by": by, **asdict(s)}
        for c in scores
        for by, s in (("fitted", c.own), ("token count", c.baseline))
    ]


def run(request: Request, output: str) -> int:
    """Fit, score on what was left out, save where asked, and print; exit code 0."""
    shapes, scored, found, fits = Shapes(request.offline), [], [], []
    for conditions, batches in by_conditions(batches_of(request)).items():
        shape = shapes.of(conditions)
        left = held_out(batches, shape)
        found.append(left)
        scored.append((conditions, compared([left])))
        if request.save is not None:
            times = fit_times(batches, shape)
            fits.append(BatchFit(conditions, len(left.batches), times.pieces))
    if request.save is not None:
        _save(Path(request.save), fits)
    n_disturbed = sum(left.n_disturbed for left in found)
    print(render(scores_report(scored, compared(found), n_disturbed), output))
    return 0


def _save(path: Path, fits: Sequence[BatchFit]) -> None:
    try:
        path.write_text(to_json(fits), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; expected a file to write to") from None
