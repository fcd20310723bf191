"""Which observations are left out together."""

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
