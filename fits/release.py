"""Estimating the coefficients that ship: effects on all clean rows, intervals on rows left out."""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from tokcast.fits.design import design
from tokcast.fits.estimate import Design, Estimate, fit, predict_log_rate
from tokcast.fits.observations import Observation
from tokcast.fits.priors import BELIEFS, prior_of
from tokcast.fits.scores import Score, host_quantiles, score
from tokcast.fits.splits import folds
from tokcast.predictor.coefficients import SCHEMA, side_of
from tokcast.predictor.prediction import Evidence
from tokcast.predictor.traits import traits_of

Floats = npt.NDArray[np.float64]
LEVELS = (0.8, 0.95)
N_FOLDS = 10
MIN_HOSTS = 8
SMALL = 1e-4


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Log residuals of rows whose chips or models the fit did not see, by evidence."""

    residual: Floats
    hosts: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    sides: tuple[str, ...]

    def of(self, kind: Evidence, side: str | None = None) -> tuple[Floats, list[str]]:
        """Return the residuals and hosts of one class of evidence, on CPUs or GPUs if asked."""
        keep = [
            i
            for i, (e, s) in enumerate(zip(self.evidence, self.sides, strict=True))
            if e == kind and side in (None, s)
        ]
        return self.residual[keep], [self.hosts[i] for i in keep]


@dataclass(frozen=True, slots=True)
class PhaseFit:
    """One phase's effects with their standard errors, and its held-out residuals."""

    estimate: Estimate
    left_out: LeftOut
    n_hosts: int


def evidence_of_left_out(observations: Sequence[Observation]) -> list[Evidence]:
    """Return what is known of each observation's chip once all rows of the chip are gone."""
    chips: dict[tuple[str, str], set[str]] = defaultdict(set)
    for o in observations:
        chips[traits_of(o.host).family, o.run.backend].add(o.host.name)
    return [
        "same chip family"
        if len(chips[traits_of(o.host).family, o.run.backend]) > 1
        else "spec sheet only"
        for o in observations
    ]


def _leave_out(
    observations: Sequence[Observation],
    d: Design,
    start: Estimate,
    groups: Sequence[str],
    progress: Callable[[str], None],
    what: str,
) -> Floats:
    """Return log(measured / predicted) of every row, its group left out of the fit."""
    residual = np.full(len(observations), np.nan)
    splits = list(folds(groups, N_FOLDS))
    fitted = Parallel(n_jobs=-1, return_as="generator")(
        delayed(fit)(d.take(train), start.prior, start) for train, _ in splits
    )
    for k, ((_, test), estimate) in enumerate(zip(splits, fitted, strict=True)):
        progress(f"{what} {k + 1}/{N_FOLDS}")
        predicted = predict_log_rate(d.take(test), estimate.theta)
        residual[test] = d.log_rate[test] - predicted
    return residual


def fit_phase(observations: Sequence[Observation], progress: Callable[[str], None]) -> PhaseFit:
    """Return one phase's fit, with residuals of chips left out and of models left out."""
    d = design(observations)
    phase = observations[0].phase
    progress(f"{phase}: all rows")
    estimate = fit(d, prior_of(d.names, BELIEFS[phase]), errors=True)
    chips = [o.host.name for o in observations]
    models = [o.model_id for o in observations]
    by_chip = _leave_out(observations, d, estimate, chips, progress, f"{phase}: chips")
    by_model = _leave_out(observations, d, estimate, models, progress, f"{phase}: models")
    kinds = evidence_of_left_out(observations)
    known: list[Evidence] = ["same host"] * len(observations)
    sides = tuple(side_of(o.run.backend) for o in observations)
    left_out = LeftOut(
        np.concatenate([by_chip, by_model]),
        tuple(chips + chips),
        tuple(kinds + known),
        sides + sides,
    )
    return PhaseFit(estimate, left_out, len(set(chips)))


def scores(left_out: LeftOut) -> dict[str, Score]:
    """Return the held-out score of each class of evidence."""
    found: dict[str, Score] = {}
    for kind in dict.fromkeys(left_out.evidence):
        residual, hosts = left_out.of(kind)
        found[kind] = score(residual, hosts)
    return found


def _ends(residual: Floats, hosts: Sequence[str]) -> dict[str, list[float]]:
    return {
        f"{level:g}": [round(q, 5) for q in host_quantiles(residual, hosts, level)]
        for level in LEVELS
    }


def intervals_of(left_out: LeftOut) -> dict[str, dict[str, list[float]]]:
    """Return the intervals by "evidence/side" and level.

    Where fewer than MIN_HOSTS hosts speak for a class, both sides together do.
    """
    made = {}
    for kind in dict.fromkeys(left_out.evidence):
        for side in ("CPU", "GPU"):
            residual, hosts = left_out.of(kind, side)
            if len(set(hosts)) < MIN_HOSTS:
                residual, hosts = left_out.of(kind)
            made[f"{kind}/{side}"] = _ends(residual, hosts)
    return made


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
        if abs(value) > SMALL or "|chip" in name or "|family=" in name
    }


def release(
    observations: Sequence[Observation], progress: Callable[[str], None]
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
