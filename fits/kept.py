"""Fits kept on disk, so that an evaluation that was stopped goes on where it was.

A fit is named by everything that decides its outcome: the numbers of the design, the priors, the
estimator's own text and the rows left out. Nothing else needs to be compared.
"""

import contextlib
import hashlib
import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import platformdirs

from tokcast.fits import estimate as estimator
from tokcast.fits.estimate import Design, Estimate, Prior, Rows

MAX_FILES = 2000


def design_digest(d: Design, prior: Prior) -> str:
    """Return a name for the outcome of a fit of this design under this prior."""
    found = hashlib.sha256(Path(estimator.__file__).read_bytes())
    found.update(repr((d.names, d.power)).encode())
    arrays = (
        d.cells.indptr,
        d.cells.indices,
        d.cells.data,
        d.seconds,
        d.cell,
        d.group,
        d.part,
        d.average.indptr,
        d.average.indices,
        d.average.data,
        d.log_rate,
        d.weight,
        d.noise,
        prior.mean,
        prior.sd,
        *prior.groups,
        prior.tailed,
    )
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
        found.update(b"|")
    return found.hexdigest()


def fit_digest(design: str, train: Rows) -> str:
    """Return a name for the fit of some rows of a design."""
    return hashlib.sha256(design.encode() + np.asarray(train, dtype=np.int64).tobytes()).hexdigest()


@dataclass(frozen=True, slots=True)
class Store:
    """A folder of fits; None keeps nothing. The oldest go when there are too many.

    A folder that can't be written or read is an empty one.
    """

    folder: Path | None

    def load(self, digest: str, d: Design, prior: Prior) -> Estimate | None:
        """Return a kept fit, None without it or where it is damaged."""
        if self.folder is None:
            return None
        try:
            with np.load(self.folder / f"{digest}.npz", allow_pickle=False) as kept:
                theta, sd, ends = kept["theta"], kept["sd"], kept["ends"]
                scale = kept["scale"]
        except (OSError, ValueError, KeyError, EOFError):
            return None
        if theta.shape != (len(d.names),) or sd.shape != theta.shape or ends.shape != (3,):
            return None
        return Estimate(
            d.names,
            theta,
            np.full(theta.size, np.nan),
            replace(prior, sd=sd),
            scale,
            int(ends[0]),
            int(ends[1]),
            bool(ends[2]),
        )

    def save(self, digest: str, e: Estimate) -> None:
        """Keep a fit, at once and whole or not at all."""
        if self.folder is None:
            return
        ends = np.array([e.n_observations, e.n_iterations, e.converged], dtype=float)
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(suffix=".part", dir=self.folder)
            with os.fdopen(handle, "wb") as file:
                np.savez(file, theta=e.theta, sd=e.prior.sd, scale=e.scale, ends=ends)
            Path(name).replace(self.folder / f"{digest}.npz")
            self._prune()

    def _prune(self) -> None:
        if self.folder is None:
            return
        files = sorted(self.folder.glob("*.npz"), key=lambda p: p.stat().st_mtime)
        for path in files[:-MAX_FILES]:
            path.unlink(missing_ok=True)


def user_store() -> Store:
    """Return the store below `TOKCAST_CACHE` or the platform's cache folder."""
    named = os.environ.get("TOKCAST_CACHE")
    root = Path(named) if named else platformdirs.user_cache_path("tokcast", appauthor=False)
    return Store(root / "fits")
