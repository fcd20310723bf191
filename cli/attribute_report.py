"""How shares of batches are shown."""

from collections.abc import Sequence
from typing import Any

from tokcast.cli.attribute import Attributed
from tokcast.cli.render import Report, Table, duration

# Batches that the table of all of them shows.
SHOWN = 12


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _shares(a: Attributed) -> Table:
    """Return a line a request: its share, and what counting tokens would give it."""
    n_new, seconds = a.batch.n_new, a.shares.seconds
    rows = tuple(
        (
            str(i),
            str(r.n_new),
            str(r.n_past),
            f"{1e3 * part:.3f}",
            _percent(part / seconds),
            _percent(r.n_new / n_new),
        )
        for i, (r, part) in enumerate(zip(a.batch.requests, a.shares.parts, strict=True), 1)
    )
    columns = ("request", "new", "cached", "ms", "share", "by tokens")
    return Table(columns, rows, frozenset(columns))


def _listed(found: Sequence[Attributed]) -> Table:
    rows = []
    for a in found[:SHOWN]:
        measured, error = a.batch.used_seconds, a.error
        rows.append(
            (
                a.batch.batch,
                a.batch.kind,
                str(len(a.batch.requests)),
                str(a.batch.n_new),
                duration(a.predicted_s),
                "-" if measured is None else duration(measured),
                "-" if error is None else f"{100 * error:+.1f} %",
            )
        )
    columns = ("batch", "kind", "requests", "new tokens", "predicted", "measured", "error")
    return Table(columns, tuple(rows), frozenset(columns[2:]))


def report(found: Sequence[Attributed], words: Sequence[str], name: str | None) -> Report:
    """Return the shares of one batch, and all batches' times."""
    shown = next((a for a in found if a.batch.batch == name), found[0])
    what = "measured" if shown.batch.seconds else "predicted"
    n, seconds = len(shown.batch.requests), shown.shares.seconds
    left = len(found) - SHOWN
    tables = [_shares(shown)]
    if len(found) > 1 and name is None:
        tables.append(_listed(found))
    notes = list(words)
    if left > 0 and name is None:
        notes.insert(0, f"{left} more batches: -o csv has all.")
    return Report(
        verdict=(
            f"Batch {shown.batch.batch}: {duration(seconds)} {what}, {n}"
            f" request{'s' if n > 1 else ''} ({shown.batch.kind})",
        ),
        tables=tuple(tables),
        notes=tuple(notes),
        data={"batches": [_data(a) for a in found], "sources": list(words)},
        records=[record for a in found for record in _records(a)],
    )


def _data(a: Attributed) -> dict[str, Any]:
    return {
        "batch": a.batch.batch,
        "kind": a.batch.kind,
        "predicted_seconds": a.predicted_s,
        "measured_seconds": a.batch.used_seconds,
        "seconds": a.shares.seconds,
        "piece": a.shares.piece,
        "requests": [
            {"n_new": r.n_new, "n_past": r.n_past, "seconds": part}
            for r, part in zip(a.batch.requests, a.shares.parts, strict=True)
        ],
    }


def _records(a: Attributed) -> list[dict[str, Any]]:
    return [
        {
            "batch": a.batch.batch,
            "kind": a.batch.kind,
            "request": i,
            "n_new": r.n_new,
            "n_past": r.n_past,
            "seconds": part,
            "share": part / a.shares.seconds,
            "token_share": r.n_new / a.batch.n_new,
            "batch_seconds": a.shares.seconds,
            "predicted_seconds": a.predicted_s,
        }
        for i, (r, part) in enumerate(zip(a.batch.requests, a.shares.parts, strict=True), 1)
    ]
