"""The energy coefficients that ship: shares on all rows, intervals and scores on rows left out."""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tokcast.fits.energy import HOST_POWER, energy_design, fit_energy, predict_log_share
from tokcast.fits.energy_heldout import (
    HeldEnergy,
    SpeedFits,
    empty,
    leave_out,
    power_terms,
    without_hosts,
    without_models,
)
from tokcast.fits.energy_observations import EnergyObservation
from tokcast.fits.intervals import LEVELS
from tokcast.fits.scores import Score, score
from tokcast.fits.splits import folds
from tokcast.predictor.energy import SCHEMA
from tokcast.predictor.power import PowerTerms, meter_of, reference_watts
from tokcast.predictor.power_cap import CapTerms

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
MODEL_FOLDS = 6
# How much wider, on either side, the interval is of a chip whose kind no left-out chip speaks
# for. A judgement: nothing measured says it.
UNSEEN_KIND_LOG = math.log(1.5)


@dataclass(frozen=True, slots=True)
class LeftOutEnergy:
    """What was said of readings without their model and without their chip, (n,) each."""

    observations: tuple[EnergyObservation, ...]
    models: HeldEnergy
    hosts: HeldEnergy
    backends: HeldEnergy

    @property
    def host_names(self) -> npt.NDArray[np.str_]:
        """Return each reading's chip."""
        return np.array([o.host.name for o in self.observations])

    def of_meters(self, *meters: str) -> Mask:
        """Return which readings are of some meters."""
        return np.array([meter_of(o.host) in meters for o in self.observations])


def left_out_energy(
    observations: Sequence[EnergyObservation],
    speed: SpeedFits,
    progress: Callable[[str], None],
) -> LeftOutEnergy:
    """Return held-out errors: models in folds, then each chip, then each chip's backend."""
    models = list(folds([o.model_id for o in observations], MODEL_FOLDS))
    chips = [o.host.name for o in observations]
    hosts = list(folds(chips, len(set(chips))))
    progress("energy: models left out")
    by_model = leave_out(
        observations, models, partial(without_models, speed, observations), only_known=True
    )
    progress("energy: chips left out")
    by_host = leave_out(
        observations, hosts, partial(without_hosts, speed, observations), only_known=False
    )
    progress("energy: backends left out")
    return LeftOutEnergy(tuple(observations), by_model, by_host, _other_backends(observations))


def _other_backends(observations: Sequence[EnergyObservation]) -> HeldEnergy:
    """Return errors where a chip's shares under another of its backends are taken over."""
    d = energy_design(observations)
    held = empty(len(observations))
    for unit in sorted(set(d.units)):
        chip = unit.rpartition("|")[0]
        others = sorted({u for u in d.units if u != unit and u.rpartition("|")[0] == chip})
        if not others:
            continue
        test = np.flatnonzero([u == unit for u in d.units])
        fitted = fit_energy(d.take(np.flatnonzero([u != unit for u in d.units])))
        fitted.units[unit] = fitted.units[others[0]]
        part = d.take(test)
        held.watts[test] = part.log_share - predict_log_share(fitted, part)
    return held


def _ends(residual: Floats, hosts: npt.NDArray[np.str_]) -> dict[str, list[float]]:
    """Return quantiles of log residuals by level; a chip read n times counts as n ** 0.5.

    There are too few chips for all to count alike, as they do for speed.
    """
    _, inverse, n = np.unique(hosts, return_inverse=True, return_counts=True)
    weight = n[inverse] ** -HOST_POWER
    order = np.argsort(residual)
    middle = np.cumsum(weight[order]) - weight[order] / 2
    found = {}
    for level in LEVELS:
        tails = np.array([(1 - level) / 2, (1 + level) / 2]) * weight.sum()
        low, high = np.interp(tails, middle, residual[order])
        found[f"{level:g}"] = [round(float(low), 5), round(float(high), 5)]
    return found


def intervals_of(left: LeftOutEnergy, use: Mask | None = None) -> dict[str, dict[str, list[float]]]:
    """Return the intervals of the power by evidence and level, from some or all rows.

    A host's two backends speak for a third; a chip of a kind with too few measured chips has the
    interval of the others, widened.
    """
    everything = np.ones(len(left.observations), dtype=bool) if use is None else use
    names, board = left.host_names, left.of_meters("gpu_board")
    known = everything & np.isfinite(left.models.watts)
    other = everything & np.isfinite(left.backends.watts)
    unseen = everything & board & np.isfinite(left.hosts.watts)
    wide = _ends(left.hosts.watts[unseen], names[unseen])
    return {
        "same host": _ends(left.models.watts[known], names[known]),
        "same host, another backend": _ends(
            np.concatenate([left.models.watts[known], left.backends.watts[other]]),
            np.concatenate([names[known], names[other]]),
        ),
        "other hosts, same meter": wide,
        "data sheet only": {
            level: [low - UNSEEN_KIND_LOG, high + UNSEEN_KIND_LOG]
            for level, (low, high) in wide.items()
        },
    }


@dataclass(frozen=True, slots=True)
class EnergyScore:
    """One table line: the error of power over the measured time, and of joules over predicted.

    `tdp_watts` and `tdp_joules` are the published power's, over the same times, where there is
    one. `inside` is the share of readings inside the 80 % interval of joules, or of watts where
    time is not predicted, made from other groups' rows.
    """

    left_out: str
    meter: str
    phase: str
    watts: Score
    tdp_watts: Score | None
    joules: Score | None
    tdp_joules: Score | None
    inside_watts: float
    inside_joules: float | None


def _score(residual: Floats, names: npt.NDArray[np.str_], rows: Mask) -> Score | None:
    found = rows & np.isfinite(residual)
    return score(residual[found], list(names[found])) if found.any() else None


def _tdp_watts(observations: Sequence[EnergyObservation]) -> Floats:
    """Return log(measured / published power), NaN for a chip without one."""
    published = [reference_watts(o.host, o.limit_w) if o.host.tdp_w else None for o in observations]
    return np.array(
        [np.log(o.watts / w) if w else np.nan for o, w in zip(observations, published, strict=True)]
    )


def _inside(
    left: LeftOutEnergy, held: HeldEnergy, evidence: str, groups: npt.NDArray[np.str_]
) -> tuple[Floats, Floats]:
    """Return whether watts and joules lie inside 80 % intervals of the other groups; NaN unsaid."""
    n = len(left.observations)
    watts, joules = np.full(n, np.nan), np.full(n, np.nan)
    for group in np.unique(groups):
        test = groups == group
        low, high = intervals_of(left, ~test)[evidence]["0.8"]
        said = test & np.isfinite(held.watts)
        watts[said] = (held.watts[said] >= low) & (held.watts[said] <= high)
        timed = test & np.isfinite(held.joules)
        down = np.hypot(min(low, 0.0), held.time_share[timed] * held.faster[timed])
        up = np.hypot(max(high, 0.0), held.time_share[timed] * held.slower[timed])
        joules[timed] = (held.joules[timed] >= -down) & (held.joules[timed] <= up)
    return watts, joules


def _percent(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return float(100 * known.mean()) if known.size else None


def energy_scores(left: LeftOutEnergy) -> list[EnergyScore]:
    """Return the score of each kind of left-out row, meter and phase."""
    names = left.host_names
    models = np.array([o.model_id for o in left.observations])
    phases = np.array([o.phase for o in left.observations])
    published = _tdp_watts(left.observations)
    made = []
    for label, held, evidence, groups in (
        ("model", left.models, "same host", models),
        ("chip", left.hosts, "other hosts, same meter", names),
    ):
        in_watts, in_joules = _inside(left, held, evidence, groups)
        for meter in ("package", "soc", "gpu_board", "gpu_part"):
            for phase in ("decode", "prefill", "request"):
                rows = left.of_meters(meter) & (phases == phase) & np.isfinite(held.watts)
                if not rows.any() or (label == "chip" and meter != "gpu_board"):
                    continue
                watts = score(held.watts[rows], list(names[rows]))
                made.append(
                    EnergyScore(
                        label,
                        meter,
                        phase,
                        watts,
                        _score(published, names, rows),
                        _score(held.joules, names, rows),
                        _score(held.tdp_joules, names, rows),
                        _percent(in_watts[rows]) or 0.0,
                        _percent(in_joules[rows]),
                    )
                )
    return made


def release_energy(left: LeftOutEnergy, caps: Mapping[str, CapTerms]) -> dict[str, Any]:
    """Return the coefficients as released JSON."""
    fitted = fit_energy(energy_design(left.observations))
    n = Counter(f"{meter_of(o.host)}|{o.host.name}" for o in left.observations)
    body = {
        "schema": SCHEMA,
        "meters": {m: _rounded(power_terms(v)) for m, v in fitted.meters.items()},
        "families": {f: _rounded(power_terms(v)) for f, v in fitted.families.items()},
        "units": {u: _rounded(power_terms(v)) for u, v in fitted.units.items()},
        "intervals": intervals_of(left),
        "caps": {name: _rounded(terms) for name, terms in caps.items()},
        "n_observations": dict(sorted(n.items())),
    }
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:12]
    return {"digest": digest, **body}


def _rounded(terms: PowerTerms | CapTerms) -> dict[str, float | None]:
    return {k: None if v is None else round(v, 5) for k, v in asdict(terms).items()}
