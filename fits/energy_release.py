"""The energy coefficients that ship: shares on all rows, intervals on rows left out."""

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
from tokcast.fits.energy_calibrated import Installations
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
from tokcast.fits.splits import folds
from tokcast.predictor.energy import SCHEMA
from tokcast.predictor.power import PowerTerms, meter_of
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
    known_speeds: Installations,
    progress: Callable[[str], None],
) -> LeftOutEnergy:
    """Return held-out errors: models in folds, then each chip, then each chip's backend."""
    models = list(folds([o.model_id for o in observations], MODEL_FOLDS))
    chips = [o.host.name for o in observations]
    hosts = list(folds(chips, len(set(chips))))
    progress("energy: models left out")
    by_model = leave_out(
        observations,
        models,
        partial(without_models, speed, observations),
        only_known=True,
        known_speeds=known_speeds,
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
        read = zip(observations, d.units, strict=True)
        test = np.flatnonzero([u == unit and not o.is_knee for o, u in read])
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


def release_energy(left: LeftOutEnergy, caps: Mapping[str, CapTerms]) -> dict[str, Any]:
    """Return the coefficients as released JSON."""
    fitted = fit_energy(energy_design(left.observations))
    read = [o.host for o in left.observations if not o.is_knee]
    n = Counter(f"{meter_of(host)}|{host.name}" for host in read)
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
