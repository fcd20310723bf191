"""Fitting a batch's time as the largest of a few sums of non-negative costs.

The fit alternates: each function takes the batches where it is the largest, non-negative least
squares of relative errors gives its costs, until no batch moves (Magnani and Boyd's partition
algorithm); from the best of several starts, least squares of log errors polishes all at once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares, nnls

from tokcast.measurements.batches import MeasuredBatch
from tokcast.predictor.attribution import PHASES, BatchTimes, Phase, Piece, phase_of
from tokcast.predictor.batch import FEATURES, BatchShape
from tokcast.predictor.errors import InputError

Floats = NDArray[np.float64]

MOST_PIECES = 2
MOST_ROUNDS = 40
# Log errors beyond this count less than their square.
LOG_ERROR = 0.05
# Fewer batches than this can't tell a function's costs.
FEWEST = len(FEATURES) + 4
# By these a batch is first taken to one function or another: tokens, bytes of the cache, cells.
_STARTS = tuple(FEATURES.index(name) for name in ("tile_flops", "kv_bytes", "cells"))


@dataclass(frozen=True, slots=True)
class Table:
    """Batches as numbers: features (n, len(FEATURES)) and seconds (n)."""

    x: Floats
    seconds: Floats


def table_of(batches: Sequence[MeasuredBatch], shape: BatchShape) -> Table:
    """Return undisturbed batches as numbers; raises InputError as `BatchShape.extent` does."""
    rows, seconds = [], []
    for b in batches:
        measured = b.clean_seconds
        if measured is not None:
            rows.append(shape.features(b.requests, b.n_held))
            seconds.append(measured)
    return Table(np.array(rows, dtype=float).reshape(-1, len(FEATURES)), np.array(seconds))


def fit_times(
    batches: Sequence[MeasuredBatch], shape: BatchShape, n_pieces: int | None = None
) -> BatchTimes:
    """Return the fitted functions of each phase that was measured.

    `n_pieces` None chooses their number by leaving rounds out in turn. Raises InputError where
    no phase has enough measured batches.
    """
    pieces: dict[Phase, tuple[Piece, ...]] = {}
    for phase in PHASES:
        of = [b for b in batches if b.clean_seconds and phase_of(b.requests) == phase]
        if len(of) < FEWEST:
            continue
        chosen = n_pieces or _best_number(of, shape)
        pieces[phase] = _pieces(fit_costs(table_of(of, shape), chosen))
    if not pieces:
        raise InputError(
            f"{sum(bool(b.clean_seconds) for b in batches)} undisturbed batches: expected {FEWEST}"
            " or more of a phase; tokcast measure batch makes them"
        )
    return BatchTimes(shape, pieces)


def _pieces(costs: Floats) -> tuple[Piece, ...]:
    return tuple(Piece(tuple(float(c) for c in row)) for row in costs)


def folds(batches: Sequence[MeasuredBatch], n: int) -> Iterator[tuple[list[int], list[int]]]:
    """Yield places of training and of held-out batches; a round is left out whole."""
    names = list(dict.fromkeys((b.conditions.model, b.round) for b in batches))
    n = min(n, len(names))
    if n < 2:
        raise InputError(f"{len(names)} round of batches: expected 2 or more to leave one out")
    fold_of = {name: i % n for i, name in enumerate(names)}
    where = [fold_of[b.conditions.model, b.round] for b in batches]
    for fold in range(n):
        yield (
            [i for i, f in enumerate(where) if f != fold],
            [i for i, f in enumerate(where) if f == fold],
        )


def _best_number(batches: Sequence[MeasuredBatch], shape: BatchShape) -> int:
    if len({b.round for b in batches}) < 3:
        return 1
    errors = {}
    for n in range(1, MOST_PIECES + 1):
        found: list[float] = []
        for train, test in folds(batches, 3):
            data = table_of([batches[i] for i in train], shape)
            left = table_of([batches[i] for i in test], shape)
            found.extend(np.abs(_log_errors(fit_costs(data, n), left)))
        errors[n] = float(np.sqrt(np.mean(np.square(found))))
    # A further function has to earn its place.
    return min(errors, key=lambda n: errors[n] * 1.03**n)


def fit_costs(data: Table, n_pieces: int) -> Floats:
    """Return costs (n_pieces, len(FEATURES)) of the functions whose largest fits the seconds."""
    # What no batch has costs nothing.
    scale = np.where(data.x.max(axis=0) > 0, data.x.max(axis=0), np.inf)
    scaled = Table(data.x / scale, data.seconds)
    starts = [_alternate(scaled, start) for start in _partitions(scaled, n_pieces)]
    best = min(starts, key=lambda costs: float(np.mean(np.square(_log_errors(costs, scaled)))))
    return _polished(best, scaled) / scale


def _partitions(data: Table, n_pieces: int) -> Iterator[NDArray[np.intp]]:
    if n_pieces == 1:
        yield np.zeros(len(data.seconds), dtype=np.intp)
        return
    for column in _STARTS:
        share = data.x[:, column] / data.seconds
        for values in (share, data.x[:, column]):
            edges = np.quantile(values, np.arange(1, n_pieces) / n_pieces)
            yield np.searchsorted(edges, values).astype(np.intp)


def _alternate(data: Table, part: NDArray[np.intp]) -> Floats:
    n_pieces = int(part.max()) + 1
    costs = np.zeros((n_pieces, data.x.shape[1]))
    for _ in range(MOST_ROUNDS):
        for k in range(n_pieces):
            mine = part == k
            if mine.sum() >= 3:
                weights = 1 / data.seconds[mine]
                costs[k] = nnls(data.x[mine] * weights[:, None], np.ones(mine.sum()))[0]
        moved = np.argmax(data.x @ costs.T, axis=1)
        if np.array_equal(moved, part):
            break
        part = moved
    return costs


def _log_errors(costs: Floats, data: Table) -> Floats:
    predicted = np.maximum((data.x @ costs.T).max(axis=1), 1e-12)
    return np.asarray(np.log(predicted / data.seconds))


def _polished(costs: Floats, data: Table) -> Floats:
    shape = costs.shape

    def residuals(flat: Floats) -> Floats:
        return _log_errors(flat.reshape(shape), data)

    found = least_squares(
        residuals,
        costs.ravel(),
        bounds=(0.0, np.inf),
        loss="soft_l1",
        f_scale=LOG_ERROR,
        x_scale=np.maximum(costs.ravel(), 1e-3 * data.seconds.mean()),
        max_nfev=300,
    )
    return np.asarray(found.x).reshape(shape)
