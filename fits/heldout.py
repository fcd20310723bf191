"""Fits without a part of the rows: each part predicted by a fit that did not see it."""

import contextlib
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from tokcast.fits.estimate import Design, Estimate, Prior, Rows, fit, predict_log_rate
from tokcast.fits.kept import Store, design_digest, fit_digest

Floats = npt.NDArray[np.float64]
Progress = Callable[[str], None]
Split = tuple[Rows, Rows]


@dataclass(frozen=True, slots=True)
class Held:
    """Splits with the effects fitted without each test part, and its residuals.

    `residual` is log(measured / predicted) (n_observations,), NaN for rows never in a test part.
    """

    splits: tuple[Split, ...]
    thetas: tuple[Floats, ...]
    residual: Floats


@dataclass(frozen=True, slots=True)
class Fitter:
    """The fit of one design: all rows first, then parts of them, kept in a store.

    Parts run through joblib; `joblib.parallel_config` chooses where.
    """

    design: Design
    prior: Prior
    store: Store
    progress: Progress

    def everything(self) -> Estimate:
        """Return the fit of all rows, without standard errors."""
        digest = design_digest(self.design, self.prior)
        found = self.store.load(digest, self.design, self.prior)
        if found is None:
            self.progress("all rows")
            found = fit(self.design, self.prior)
            self.store.save(digest, found)
        return found

    def left_out(self, start: Estimate, splits: Sequence[Split]) -> Held:
        """Return the outcome of each split's fit, from kept ones as far as they go."""
        base = design_digest(self.design, self.prior)
        digests = [fit_digest(base, train) for train, _ in splits]
        found = {k: self.store.load(d, self.design, start.prior) for k, d in enumerate(digests)}
        missing = [k for k, e in found.items() if e is None]
        tasks = (delayed(_fit_part)(k, self.design.take(splits[k][0]), start) for k in missing)
        self.progress(f"{len(splits) - len(missing)}/{len(splits)}")
        with _results(tasks) as fitted:
            for n, (k, estimate) in enumerate(fitted, len(splits) - len(missing) + 1):
                self.store.save(digests[k], estimate)
                found[k] = estimate
                self.progress(f"{n}/{len(splits)}")
        thetas = [e.theta for e in found.values() if e is not None]
        residual = np.full(self.design.log_rate.size, np.nan)
        for (_, test), theta in zip(splits, thetas, strict=True):
            part = self.design.take(test)
            residual[test] = part.log_rate - predict_log_rate(part, theta)
        return Held(tuple(splits), tuple(thetas), residual)


@contextlib.contextmanager
def _results(tasks: Iterable[Any]) -> Iterator[Iterable[tuple[int, Estimate]]]:
    """Give the outcomes as they come; the rest is called off when the caller stops."""
    fitted = Parallel(n_jobs=-1, return_as="generator_unordered")(tasks)
    with warnings.catch_warnings():
        # joblib complains of what was called off, which is what was wanted.
        warnings.filterwarnings("ignore", message=r"\d+ tasks ")
        with contextlib.closing(fitted):
            yield fitted


def _fit_part(k: int, part: Design, start: Estimate) -> tuple[int, Estimate]:
    return k, fit(part, start.prior, start)
