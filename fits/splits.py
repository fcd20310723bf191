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


CHIP_OUT = "chip left out"
FAMILY_OUT = "chip's family left out"
MODEL_OUT = "model left out"
PAIR_OUT = "model left out on its chip"
BOTH_OUT = "chip and model left out"
FAMILY_MODEL_OUT = "chip's family and model left out"


def standard_splits(
    chips: Sequence[str], families: Sequence[str], models: Sequence[str], n_folds: int
) -> dict[str, list[tuple[Rows, Rows]]]:
    """Return the named splits that errors and intervals are made from.

    Chips are dealt to `n_folds` folds, the rest to no more than ten: with as many folds as chips
    each is left out alone.
    """
    n_rest = min(n_folds, 10)
    pairs = [f"{chip}|{model}" for chip, model in zip(chips, models, strict=True)]
    return {
        CHIP_OUT: list(folds(chips, n_folds)),
        MODEL_OUT: list(folds(models, n_rest)),
        BOTH_OUT: both_out(chips, models, 4),
        PAIR_OUT: list(folds(pairs, n_rest)),
        FAMILY_OUT: list(folds(families, n_rest)),
        FAMILY_MODEL_OUT: both_out(families, models, 3),
    }


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
