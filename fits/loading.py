"""How long a measured process loaded its model, told from its mean power over longer runs.

A mean over the whole process holds the loading: with power p while it loads for l seconds (a
repetition's share) and w while it runs, a repetition of t seconds shows

    mean(t) = w - (w - p) l / (l + t)

so that readings of one model at several lengths give l, w and p by least squares.
"""

from collections.abc import Sequence

import numpy as np

# Seconds of loading a repetition that are tried; between them the fit hardly changes.
TRIED = np.geomspace(0.02, 200.0, 81)


def loading_seconds(seconds: Sequence[float], watts: Sequence[float]) -> float:
    """Return the loading time a repetition that explains mean powers at several lengths best.

    `seconds` are of one repetition, `watts` means over the process, both (n,). Among loading
    times that explain the readings alike the longest is returned: when in doubt, more is
    loading.
    """
    t, y = np.asarray(seconds), np.asarray(watts)
    losses = np.empty(TRIED.size)
    for i, load in enumerate(TRIED):
        x = np.column_stack([np.ones_like(t), load / (load + t)])
        w, drop = np.linalg.lstsq(x, y, rcond=None)[0]
        # Loading never draws more than running, nor less than nothing.
        drop = min(max(drop, -w), 0.0)
        w = float(np.mean(y - drop * x[:, 1]))
        losses[i] = float(np.mean((y - w - drop * x[:, 1]) ** 2))
    return float(TRIED[np.flatnonzero(losses <= 1.05 * losses.min() + 1e-9)[-1]])
