"""Estimating what placements add: effects on all placed runs, errors on machines and models."""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import t as student

from tokcast.fits.estimate import Design, Estimate, fit, predict_log_rate
from tokcast.fits.intervals import LEVELS, MIN_HOSTS
from tokcast.fits.placed_design import BELIEFS, Timed, design
from tokcast.fits.priors import prior_of
from tokcast.fits.scores import host_quantiles
from tokcast.predictor.ledger import Phase
from tokcast.predictor.placement.company import SCHEMA

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.bool_]
Progress = Callable[[str], None]
PHASES: tuple[Phase, ...] = ("decode", "prefill")
# Shared rows were measured on builds of 2023 alone: they have effects, and a fit, of their own.
KINDS = (("cpu", "cards"), ("rows",))
SMALL = 1e-4
# Machines differ by a fifth where whole models are measured; so much is taken to be known before.
USUAL_SPREAD, USUAL_MACHINES = 0.2, 3


@dataclass(frozen=True, slots=True)
class PlacedFit:
    """One phase's fit of some kinds of placement, and residuals of what it did not see.

    `by_machine` and `by_model` are log(measured / predicted) (n_rows,) with the row's machine, or
    its model on this machine, left out.
    """

    rows: tuple[Timed, ...]
    estimate: Estimate
    by_machine: Floats
    by_model: Floats

    def of(self, kind: str) -> Rows:
        """Return which rows are of a kind."""
        return np.array([r.kind == kind for r in self.rows])


def fit_placed(rows: Sequence[Timed], progress: Progress) -> dict[Phase, list[PlacedFit]]:
    """Return each phase's fits."""
    found: dict[Phase, list[PlacedFit]] = {}
    for phase in PHASES:
        for kinds in KINDS:
            own = tuple(r for r in rows if r.run.workload.phase == phase and r.kind in kinds)
            if own:
                progress(f"{phase}: {' and '.join(kinds)}")
                found.setdefault(phase, []).append(_fit(own))
    return found


def _fit(rows: tuple[Timed, ...]) -> PlacedFit:
    d = design(rows)
    estimate = fit(d, prior_of(d.names, BELIEFS), errors=True)
    machines = [r.run.machine for r in rows]
    models = [f"{r.run.machine}: {r.run.model}" for r in rows]
    return PlacedFit(rows, estimate, _left_out(d, machines), _left_out(d, models))


def _left_out(d: Design, groups: Sequence[str]) -> Floats:
    """Return log(measured / predicted) of every row, its group left out of the fit."""
    names = np.asarray(groups)
    residual = np.full(names.size, np.nan)
    prior = prior_of(d.names, BELIEFS)
    for name in np.unique(names):
        train, test = np.flatnonzero(names != name), np.flatnonzero(names == name)
        if train.size:
            part = d.take(test)
            theta = fit(d.take(train), prior).theta
            residual[test] = part.log_rate - predict_log_rate(part, theta)
    return residual


def released_form(fits: dict[Phase, list[PlacedFit]], base: str) -> dict[str, Any]:
    """Return the coefficients as they are released: no machine's own effects among them."""
    effects: dict[str, float] = {}
    intervals: dict[str, dict[str, tuple[float, float]]] = {}
    counts: dict[str, int] = {}
    for phase, of_phase in fits.items():
        for one in of_phase:
            for name, value in zip(one.estimate.names, one.estimate.theta, strict=True):
                if "|machine=" not in name and abs(value) > SMALL:
                    effects[name] = round(float(value), 5)
            for kind in sorted({r.kind for r in one.rows}):
                rows = one.of(kind)
                counts[f"{phase}/{kind}"] = int(rows.sum())
                backends = Counter(r.run.run.backend for r in one.rows if r.kind == kind)
                counts |= {f"{phase}/{kind}/{name}": n for name, n in sorted(backends.items())}
                intervals[f"{phase}/{kind}"] = interval_of(one, rows)
    body = {"base": base, "effects": effects, "intervals": intervals, "n_observations": counts}
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:12]
    return {"schema": SCHEMA, "digest": digest, **body}


def interval_of(one: PlacedFit, rows: Rows) -> dict[str, tuple[float, float]]:
    """Return the intervals of a new machine's speed: quantiles where enough machines were seen.

    Of fewer, the spread between them is drawn to what is usual, as if `USUAL_MACHINES` more had
    shown it, and Student's t stands for how few they are.
    """
    machines = [r.run.machine for r, keep in zip(one.rows, rows, strict=True) if keep]
    residual = one.by_machine[rows]
    n = len(set(machines))
    if n >= MIN_HOSTS:
        ends = {level: host_quantiles(residual, machines, level) for level in LEVELS}
    else:
        spread = _spread(residual, machines)
        ends = {}
        for level in LEVELS:
            half = float(student.ppf(0.5 + level / 2, USUAL_MACHINES + n - 1)) * spread
            ends[level] = (-half, half)
    return {f"{level:g}": (round(low, 4), round(high, 4)) for level, (low, high) in ends.items()}


def _spread(residual: Floats, machines: Sequence[str]) -> float:
    """Return the standard deviation of a new machine's log residuals."""
    names = np.asarray(machines)
    by_machine = [residual[names == name] for name in np.unique(names)]
    n = len(by_machine)
    between = sum(float(np.mean(r)) ** 2 for r in by_machine)
    between = (USUAL_MACHINES * USUAL_SPREAD**2 + between) / (USUAL_MACHINES + n)
    within = float(np.mean([np.var(r) for r in by_machine]))
    return float(np.sqrt(between * (1 + 1 / n) + within))
