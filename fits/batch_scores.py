"""How far off predicted batch times are, on batches that the fit did not see."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from tokcast.fits.batch_times import Floats, fit_times, folds
from tokcast.measurements.batches import KINDS, MeasuredBatch
from tokcast.predictor.batch import BatchShape

N_FOLDS = 5


@dataclass(frozen=True, slots=True)
class Score:
    """Relative errors of one kind of batch: quantiles of their size, and R2 of the seconds."""

    kind: str
    n: int
    p50: float
    p90: float
    p99: float
    r2: float


@dataclass(frozen=True, slots=True)
class Compared:
    """The functions' errors and those of a baseline that knows token counts only."""

    kind: str
    own: Score
    baseline: Score


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Each batch's measured seconds and what was predicted of it without its round.

    `n_disturbed` batches had no undisturbed repetition and are left out.
    """

    batches: tuple[MeasuredBatch, ...]
    measured: Floats
    own: Floats
    baseline: Floats
    n_disturbed: int


def held_out(batches: Sequence[MeasuredBatch], shape: BatchShape, n: int = N_FOLDS) -> HeldOut:
    """Return predictions of batches whose round was left out of the fit.

    The baseline is a constant and a cost a new token, fitted to relative errors for each kind of
    batch by itself. Raises InputError for fewer than two rounds.
    """
    used = [b for b in batches if b.clean_seconds]
    measured = np.array([b.clean_seconds for b in used], dtype=float)
    own, baseline = np.full(len(used), np.nan), np.full(len(used), np.nan)
    for train, test in folds(used, n):
        times = fit_times([used[i] for i in train], shape)
        for i in test:
            own[i] = times.seconds(used[i].requests, used[i].n_held)
        for kind in KINDS:
            of = [i for i in train if used[i].kind == kind]
            left = [i for i in test if used[i].kind == kind]
            if len(of) >= 2 and left:
                costs = token_costs([used[i] for i in of], measured[of])
                baseline[left] = [costs[0] + costs[1] * used[i].n_new for i in left]
    n_disturbed = sum(bool(b.seconds) for b in batches) - len(used)
    return HeldOut(tuple(used), measured, own, baseline, n_disturbed)


def token_costs(batches: Sequence[MeasuredBatch], seconds: Floats) -> Floats:
    """Return a pass's constant and its cost a new token, both at least 0."""
    x = np.array([[1.0, b.n_new] for b in batches]) / seconds[:, None]
    return np.asarray(nnls(x, np.ones(len(batches)))[0])


def compared(found: Sequence[HeldOut]) -> tuple[Compared, ...]:
    """Return the errors of each kind of batch over one or several sets, and of all kinds."""
    measured = np.concatenate([f.measured for f in found])
    own = np.concatenate([f.own for f in found])
    baseline = np.concatenate([f.baseline for f in found])
    kinds = np.array([b.kind for f in found for b in f.batches])
    rows = []
    for kind in KINDS:
        of = (kinds == kind) & np.isfinite(baseline) & np.isfinite(own)
        if of.any():
            rows.append(
                Compared(
                    kind,
                    score(kind, own[of], measured[of]),
                    score(kind, baseline[of], measured[of]),
                )
            )
    return tuple(rows)


def score(kind: str, predicted: NDArray[np.float64], measured: NDArray[np.float64]) -> Score:
    """Return quantiles of relative errors, and R2."""
    errors = np.abs(predicted / measured - 1)
    spread = float(np.sum(np.square(measured - measured.mean())))
    p50, p90, p99 = (float(np.quantile(errors, p)) for p in (0.5, 0.9, 0.99))
    r2 = 1 - float(np.sum(np.square(predicted - measured))) / spread if spread else 0.0
    return Score(kind, len(errors), p50, p90, p99, r2)
