"""Which observations are left out together."""

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.intp]


def folds(groups: Sequence[str], n_folds: int, seed: int = 0) -> Iterator[tuple[Rows, Rows]]:
    """Yield (train, test) rows so that a group is never on both sides.

    Groups are dealt in random order to `n_folds` folds; with as many folds as groups this is
    leave-one-group-out.
    """
    names = np.unique(np.asarray(groups))
    order = np.random.default_rng(seed).permutation(names.size)
    fold_of = dict(zip(names[order], np.arange(names.size) % n_folds, strict=True))
    fold = np.array([fold_of[g] for g in groups])
    for k in range(min(n_folds, names.size)):
        yield np.flatnonzero(fold != k), np.flatnonzero(fold == k)


def both_out(chips: Sequence[str], models: Sequence[str], n: int) -> list[tuple[Rows, Rows]]:
    """Return splits whose test rows share neither chip nor model with the training rows."""
    chip_folds = list(folds(chips, n))
    model_folds = list(folds(models, n, seed=1))
    made = []
    for _, chip_test in chip_folds:
        for _, model_test in model_folds:
            test = np.intersect1d(chip_test, model_test)
            if test.size:
                everything = np.arange(len(chips))
                train = np.setdiff1d(everything, np.union1d(chip_test, model_test))
                made.append((train, test))
    return made


def by_time(years: Sequence[float | None], before: float) -> list[tuple[Rows, Rows]]:
    """Return one split: rows dated before a year against those from it on; undated ones neither."""
    dated = np.array([math.nan if y is None else y for y in years])
    return [(np.flatnonzero(dated < before), np.flatnonzero(dated >= before))]
