"""Scores of predicted placements on what the fit did not see, beside simpler predictors."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from tokcast.fits.intervals import LEVELS
from tokcast.fits.offload import PlacedFit, interval_of
from tokcast.fits.placed_design import Timed
from tokcast.fits.scores import Score, score
from tokcast.predictor.coefficients import Coefficients
from tokcast.predictor.ledger import Phase
from tokcast.predictor.placement.speed import evidence, least_seconds
from tokcast.predictor.roofline import Question, tokens_of

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.bool_]
# Plans whose speeds differ by less than this have no order to get right.
CLEAR = 1.1
# A machine with so many models measured is one whose models can be left out in turn.
MANY_MODELS = 5


@dataclass(frozen=True, slots=True)
class PlacedScore:
    """Held-out error of one set of rows, and that of other predictors on the same rows.

    `out` says what was left out; `held` maps levels to the percentage of rows inside the range
    of a fit without their machine, a mean over machines.
    """

    phase: Phase
    rows: str
    out: str
    ours: Score
    baselines: dict[str, Score]
    held: dict[str, float]


@dataclass(frozen=True, slots=True)
class Order:
    """Pairs of plans of one file whose measured speeds differ clearly, and how many came right."""

    phase: Phase
    rows: str
    n_pairs: int
    n_right: int


def _machines(rows: Sequence[Timed]) -> npt.NDArray[np.str_]:
    return np.array([r.run.machine for r in rows])


def _sets(one: PlacedFit) -> list[tuple[str, Rows, bool]]:
    """Return (name, rows, whether models are left out) of each set that is scored."""
    machines = _machines(one.rows)
    two = np.char.startswith(machines, "2x ")
    found: list[tuple[str, Rows, bool]] = []
    for machine in np.unique(machines):
        own = machines == machine
        models = {r.run.model for r, keep in zip(one.rows, own, strict=True) if keep}
        if len(models) >= MANY_MODELS and one.of("cpu")[own].all() and own.sum() > 50:
            name = machine.partition(" + ")[0]
            found.append((f"offloaded, {name}", own, True))
    found += [
        ("offloaded, any", one.of("cpu"), False),
        ("two cards", one.of("cards") & two, False),
        ("more cards", one.of("cards") & ~two, False),
        ("by rows", one.of("rows"), False),
    ]
    return [entry for entry in found if entry[1].any()]


def _log_nameplate(rows: Sequence[Timed]) -> Floats:
    """Return log tokens/s of bytes over bandwidth and operations over peaks, device by device."""
    seconds = [least_seconds(r.times, r.run.placement.devices) for r in rows]
    return np.log([tokens_of(r.run.workload) for r in rows]) - np.log(seconds)


def _log_unfitted(rows: Sequence[Timed]) -> Floats:
    """Return log tokens/s of the released times alone, hand-overs for nothing."""
    seconds = [sum(a.seconds for a in r.times.values()) for r in rows]
    return np.log([tokens_of(r.run.workload) for r in rows]) - np.log(seconds)


def _baselines(one: PlacedFit) -> dict[str, Floats]:
    """Return each simpler predictor's log(measured / predicted), (n_rows,).

    "peaks": each device's bytes over its bandwidth or operations over its peak, one after the
    other; "scaled": that times the median efficiency of other machines; "unfitted": the released
    times of whole models, hand-overs for nothing.
    """
    measured = np.log([r.run.tok_per_s for r in one.rows])
    nameplate = measured - _log_nameplate(one.rows)
    machines = _machines(one.rows)
    scaled = np.array(nameplate)
    for machine in np.unique(machines):
        own = machines == machine
        scaled[own] -= np.median(nameplate[~own]) if (~own).any() else 0.0
    return {
        "peaks": nameplate,
        "scaled": scaled,
        "unfitted": measured - _log_unfitted(one.rows),
    }


def placed_scores(phase: Phase, one: PlacedFit, coefficients: Coefficients) -> list[PlacedScore]:
    """Return the scores of each set of rows of a fit."""
    beside = _baselines(one)
    found = []
    for name, rows, by_model in _sets(one):
        hosts = list(_machines(one.rows)[rows])
        residual = (one.by_model if by_model else one.by_machine)[rows]
        found.append(
            PlacedScore(
                phase=phase,
                rows=name,
                out="model" if by_model else "machine",
                ours=score(residual, hosts),
                baselines={key: score(r[rows], hosts) for key, r in beside.items()},
                held=_held(one, rows, residual, coefficients),
            )
        )
    return found


def _held(
    one: PlacedFit, rows: Rows, residual: Floats, coefficients: Coefficients
) -> dict[str, float]:
    """Return the share of rows inside a range made without their machine, in percent.

    Machines count alike. As in a prediction, the range is no narrower than that of whole models.
    """
    machines = _machines(one.rows)
    weights = Counter(machines[rows])
    inside = {f"{level:g}": 0.0 for level in LEVELS}
    ends_of: dict[tuple[str, str], dict[str, tuple[float, float]]] = {}
    for i, error in zip(np.flatnonzero(rows), residual, strict=True):
        others = one.of(one.rows[i].kind) & (machines != machines[i])
        key = (machines[i], one.rows[i].kind)
        if key not in ends_of:
            ends_of[key] = interval_of(one, others)
        for level, ends in ends_of[key].items():
            run = one.rows[i].run
            p = run.placement
            q = Question(run.workload, p.devices[0].host, run.run)
            kind = evidence(coefficients, q, p.devices, one.rows[i].times)
            base = coefficients.interval(q.workload.phase, kind, run.run.backend, float(level))
            if min(ends[0], base[0]) <= error <= max(ends[1], base[1]):
                inside[level] += 100 / weights[machines[i]] / len(weights)
    return inside


def orders(phase: Phase, one: PlacedFit) -> list[Order]:
    """Return how often the faster of two plans of a file was told, its model left out."""
    found = []
    for name, rows, _ in _sets(one):
        n_pairs, n_right = _order(one, rows)
        if n_pairs:
            found.append(Order(phase, name, n_pairs, n_right))
    return found


def _order(one: PlacedFit, rows: Rows) -> tuple[int, int]:
    plans: dict[tuple[str, str], dict[object, list[tuple[float, float]]]] = {}
    for i in np.flatnonzero(rows):
        run = one.rows[i].run
        options = run.placement.options
        load = run.workload
        plan = (options, load.n_ubatch if load.phase == "prefill" else 0)
        place = (run.machine, f"{run.file} {load.n_prompt} {load.n_depth} {run.run}")
        measured = float(np.log(run.tok_per_s))
        both = (measured, measured - float(one.by_model[i]))
        plans.setdefault(place, {}).setdefault(plan, []).append(both)
    n_pairs = n_right = 0
    for of_file in plans.values():
        means = [np.mean(values, axis=0) for values in of_file.values()]
        for (a, told_a), (b, told_b) in combinations(means, 2):
            if abs(a - b) > np.log(CLEAR):
                n_pairs += 1
                n_right += int((a > b) == (told_a > told_b))
    return n_pairs, n_right
