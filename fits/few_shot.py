"""How much a few measurements of a host are worth: its own effects from k rows, scored on others.

The update is that of `tokcast calibrate`: the host's own effects, near 0 beforehand, are moved
with all else held at what a fit without the host says, by the fit's own estimator. The rows here
are published ones, of several authors, builds and settings; a calibration on one's own machine
has cleaner ones.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tokcast.fits.calibrate import OWN, SCALE
from tokcast.fits.design import design
from tokcast.fits.estimate import Design, Estimate, Rows, fit, predict_log_rate
from tokcast.fits.observations import Observation
from tokcast.fits.priors import prior_of
from tokcast.fits.scores import ape
from tokcast.predictor.effects import Effect, Shape, chip_effect, own_effects
from tokcast.predictor.host import Host
from tokcast.predictor.ledger import Phase
from tokcast.predictor.terms import Run, Term

Floats = npt.NDArray[np.float64]
SHOTS = (0, 1, 3, 10)
N_DRAWS = 5


def _own(term: Term, phase: Phase, host: Host, run: Run, shape: Shape) -> tuple[Effect, ...]:
    return (
        (chip_effect(phase, host, run.backend), 1.0),
        *own_effects(term, phase, host, run, shape),
    )


def host_design(observations: Sequence[Observation], effects: Mapping[str, float]) -> Design:
    """Return the design of one phase's observations in their hosts' own effects.

    Every other effect is in the terms' seconds: at 0 the design predicts what `effects` do.
    """
    known = design(observations)
    theta = np.array([effects.get(name, 0.0) for name in known.names])
    own = design(observations, labels=_own)
    return replace(own, seconds=own.seconds * np.exp(known.cells @ theta)[known.cell])


def calibrated(d: Design, rows: Rows) -> Floats:
    """Return the own effects (n_effects,) that some rows of a host's design speak for."""
    prior = prior_of(d.names, OWN)
    unknown = np.full(prior.mean.size, np.nan)
    start = Estimate(d.names, prior.mean, unknown, prior, np.array([SCALE]), 0, 0, False)
    alike = np.zeros(rows.size, dtype=np.intp)
    part = replace(d.take(rows), weight=np.ones(rows.size), noise=alike)
    return fit(part, prior, start).theta


def calibrate(
    observations: Sequence[Observation], effects: Mapping[str, float]
) -> dict[str, float]:
    """Return one host's own effects by name from its observations of one phase.

    They add to `effects`, released or of any fit, which stay as they are.
    """
    d = host_design(observations, effects)
    theta = calibrated(d, np.arange(len(observations)))
    return dict(zip(d.names, (float(v) for v in theta), strict=True))


def _chip(o: Observation) -> tuple[str, ...]:
    return (o.host.name, o.run.backend, o.run.runtime)


def _machine(o: Observation) -> tuple[str, ...]:
    author = re.split("[@#]", min(o.sources))[0]
    return (*_chip(o), o.run.stack, author)


# What the rows given back and the others share: a chip under one backend and runtime, or, nearer
# to a machine of one's own, also driver stack and author.
HOSTS = {"chip": _chip, "machine": _machine}


@dataclass(frozen=True, slots=True)
class Shot:
    """The error with k rows of each host given back, in percent; hosts with more than k rows.

    `host` names what counts as one, of HOSTS. `same_hosts` is the mean over those hosts alone
    that have more rows than the largest k.
    """

    host: str
    k: int
    n_hosts: int
    host_mean_mape: float
    median_ape: float
    n_same_hosts: int
    same_hosts: float


def _errors(d: Design, k: int, seed: int) -> Floats:
    """Return absolute percentage errors of a host's rows that were not given back, all draws."""
    n = d.log_rate.size
    found = []
    for draw in range(N_DRAWS if k else 1):
        order = np.random.default_rng((seed, draw)).permutation(n)
        given, rest = np.sort(order[:k]), np.sort(order[k:])
        theta = calibrated(d, given) if k else np.zeros(len(d.names))
        part = d.take(rest)
        found.append(ape(part.log_rate - predict_log_rate(part, theta)))
    return np.concatenate(found)


def error_curve(
    observations: Sequence[Observation],
    effects: Sequence[Mapping[str, float]],
    shots: Sequence[int] = SHOTS,
    host: str = "chip",
) -> list[Shot]:
    """Return the error over k; `effects` are, for each observation, of a fit without its chip."""
    by_host: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for i, o in enumerate(observations):
        by_host[HOSTS[host](o)].append(i)
    errors: dict[int, list[Floats]] = {k: [] for k in shots}
    means: dict[int, list[float]] = {k: [] for k in shots}
    for seed, rows in enumerate(by_host.values()):
        if len(rows) < 2:
            continue
        d = host_design([observations[i] for i in rows], effects[rows[0]])
        for k in shots:
            if len(rows) > k:
                found = _errors(d, k, seed)
                errors[k].append(found)
                if len(rows) > max(shots):
                    means[k].append(float(found.mean()))
    return [
        Shot(
            host,
            k,
            len(errors[k]),
            float(np.mean([e.mean() for e in errors[k]])),
            float(np.median(np.concatenate(errors[k]))),
            len(means[k]),
            float(np.mean(means[k])) if means[k] else float("nan"),
        )
        for k in shots
        if errors[k]
    ]
