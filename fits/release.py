"""Estimating the coefficients that ship: effects on all clean rows, intervals on rows left out."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tokcast.fits.design import design
from tokcast.fits.estimate import Estimate, fit
from tokcast.fits.heldout import Fitter, Progress, Split
from tokcast.fits.intervals import LeftOut, intervals_of, left_out_of
from tokcast.fits.kept import Store
from tokcast.fits.observations import Observation
from tokcast.fits.priors import BELIEFS, prior_of
from tokcast.fits.scores import Score, score
from tokcast.fits.splits import standard_splits
from tokcast.predictor.coefficients import SCHEMA
from tokcast.predictor.effects import family_of

Floats = npt.NDArray[np.float64]
N_FOLDS = 10
SMALL = 1e-4
# Names that say what was measured are kept even where their effect is nothing.
_KEPT = ("|chip", "|family=", "|model=")


@dataclass(frozen=True, slots=True)
class PhaseFit:
    """One phase's effects with their standard errors, and its held-out residuals."""

    estimate: Estimate
    left_out: LeftOut
    n_hosts: int


def splits_of(observations: Sequence[Observation], n_folds: int) -> dict[str, list[Split]]:
    """Return the named splits of one phase's observations."""
    return standard_splits(
        [o.host.name for o in observations],
        [family_of(o.workloads[0].phase, o.host) for o in observations],
        [o.model_id for o in observations],
        n_folds,
    )


def fit_phase(observations: Sequence[Observation], progress: Progress) -> PhaseFit:
    """Return one phase's fit, with residuals of what its splits leave out."""
    d = design(observations)
    phase = observations[0].phase
    prior = prior_of(d.names, BELIEFS[phase])
    progress(f"{phase}: all rows")
    estimate = fit(d, prior, errors=True)
    residuals: dict[str, Floats] = {}
    for name, splits in splits_of(observations, N_FOLDS).items():
        fitter = Fitter(d, prior, Store(None), partial(_say, progress, f"{phase}, {name}"))
        residuals[name] = fitter.left_out(estimate, splits).residual
    n_hosts = len({o.host.name for o in observations})
    return PhaseFit(estimate, left_out_of(observations, residuals), n_hosts)


def _say(progress: Progress, what: str, text: str) -> None:
    progress(f"{what}: {text}")


def scores(left_out: LeftOut) -> dict[str, Score]:
    """Return the held-out score of each class of evidence."""
    found: dict[str, Score] = {}
    for kind in dict.fromkeys(left_out.kinds):
        rows = left_out.of(kind)
        found[kind] = score(rows.residual, rows.hosts)
    return found


def _intervals(fits: Mapping[str, PhaseFit]) -> dict[str, dict[str, list[float]]]:
    return {
        f"{phase}/{name}": ends
        for phase, fitted in fits.items()
        for name, ends in intervals_of(fitted.left_out).items()
    }


def _effects(fits: Mapping[str, PhaseFit]) -> dict[str, float]:
    return {
        name: round(float(value), 5)
        for fitted in fits.values()
        for name, value in zip(fitted.estimate.names, fitted.estimate.theta, strict=True)
        if abs(value) > SMALL or any(mark in name for mark in _KEPT)
    }


def release(
    observations: Sequence[Observation], progress: Progress
) -> tuple[dict[str, Any], dict[str, PhaseFit]]:
    """Return the coefficients as released JSON, and the fits behind them."""
    fits = {
        phase: fit_phase([o for o in observations if o.phase == phase], progress)
        for phase in ("prefill", "decode")
    }
    n = Counter(f"{o.phase}/{o.run.backend}" for o in observations)
    deepest: dict[str, int] = {}
    for o in observations:
        key = f"{o.phase}/{o.run.backend}"
        deepest[key] = max(deepest.get(key, 0), *(w.n_depth for w in o.workloads))
    body = {
        "schema": SCHEMA,
        "n_observations": dict(sorted(n.items())),
        "deepest": dict(sorted(deepest.items())),
        "newest": round(max(o.run.year or 0.0 for o in observations), 2),
        "intervals": _intervals(fits),
        "effects": dict(sorted(_effects(fits).items())),
    }
    text = json.dumps(body, sort_keys=True)
    return {"digest": hashlib.sha256(text.encode()).hexdigest()[:12], **body}, fits
