"""Scores as tables: the columns that every part of `tokcast evaluate` shares."""

from collections.abc import Mapping, Sequence

from tokcast.cli.render import Table
from tokcast.fits.breakdown import LEVEL
from tokcast.fits.coverage import Coverage
from tokcast.fits.evaluate import Floor, SplitScore
from tokcast.fits.few_shot import Shot
from tokcast.fits.light import Violation
from tokcast.fits.paper import Rung
from tokcast.fits.scores import Score

_COLUMNS = ("rows", "hosts", "median", "MAPE", "p90", "host mean", "bias")


def percent(value: float) -> str:
    """Return a percentage with one decimal; blank where there is none."""
    return f"{value:.1f} %" if value == value else ""


def _cells(s: Score) -> tuple[str, ...]:
    errors = (s.median_ape, s.mape, s.p90_ape, s.host_mean_mape)
    return (str(s.n), str(s.n_hosts), *map(percent, errors), f"{s.bias:+.1f} %")


def score_table(title: str, scores: Mapping[str, Score]) -> Table:
    """Return named scores as a table."""
    rows = tuple((name, *_cells(s)) for name, s in scores.items())
    return Table((title, *_COLUMNS), rows, frozenset(_COLUMNS))


def sure_table(title: str, scores: Sequence[SplitScore]) -> Table:
    """Return how far the scores of splits move with their hosts."""
    columns = (title, *(f"{name}, {100 * LEVEL:.0f} %" for name in ("median", "MAPE", "host mean")))
    rows = tuple(
        (
            s.rows,
            *(
                f"{low:.1f} to {high:.1f}"
                for low, high in (s.sure.median_ape, s.sure.mape, s.sure.host_mean_mape)
            ),
        )
        for s in scores
    )
    return Table(columns, rows, frozenset(columns[1:]))


def floor_table(title: str, floor: Floor) -> Table:
    """Return the noise floor as a table."""
    columns = (title, "median", "mean")
    row = (str(floor.n_pairs), percent(floor.median), percent(floor.mean))
    return Table(columns, (row,), frozenset(columns))


def coverage_table(title: str, found: Sequence[Coverage]) -> Table:
    """Return how often the intervals held."""
    columns = (title, "evidence", "rows", "hosts", "held, rows", "held, host mean", "upper/lower")
    rows = tuple(
        (
            f"{100 * c.level:g} %",
            c.evidence,
            str(c.n),
            str(c.n_hosts),
            percent(c.rows),
            percent(c.host_mean),
            f"{c.width:.2f}",
        )
        for c in found
    )
    return Table(columns, rows, frozenset(columns[2:]))


def shot_table(title: str, shots: Sequence[Shot]) -> Table:
    """Return the error over the rows given back."""
    columns = (title, "k", "hosts", "host mean", "median", "same hosts", "their mean")
    rows = tuple(
        (
            s.host,
            str(s.k),
            str(s.n_hosts),
            percent(s.host_mean_mape),
            percent(s.median_ape),
            str(s.n_same_hosts),
            percent(s.same_hosts),
        )
        for s in shots
    )
    return Table(columns, rows, frozenset(columns[1:]))


def ladder_table(title: str, rungs: Sequence[Rung]) -> Table:
    """Return file types by speed relative to Q4_K_M, a stack after the other."""
    columns = (title, "type", "hosts", "x Q4_K_M", "by bytes alone")
    rows = tuple(
        (r.stack, r.file_type, str(r.n_hosts), f"{r.factor:.2f}", f"{r.by_bytes:.2f}")
        for r in rungs
    )
    return Table(columns, rows, frozenset(columns[2:]))


def light_table(title: str, found: Sequence[Violation]) -> Table:
    """Return measurements above the ceiling, each with its row."""
    columns = (title, "backend", "model", "phase", "measured", "ceiling", "source")
    rows = tuple(
        (
            v.row.chip,
            v.row.backend,
            f"{v.row.model_id}@{v.row.file_type}",
            v.row.phase,
            f"{v.row.tok_s:,.1f}",
            f"{v.ceiling_tok_per_s:,.1f}",
            v.row.source,
        )
        for v in found
    )
    return Table(columns, rows, frozenset(("measured", "ceiling")))
