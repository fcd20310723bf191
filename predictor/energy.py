"""Joules a token of a prediction, with an interval, from fitted shares of a chip's power."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.power import (
    Activity,
    EnergyRoofline,
    Meter,
    Power,
    PowerTerms,
    meter_of,
    power_family,
    power_of,
    roofline_of,
)
from tokcast.predictor.power_cap import CapCurve, CapTerms, curve_of, nearest
from tokcast.predictor.prediction import Prediction

EnergyEvidence = Literal[
    "measured here",
    "same host",
    "same host, another backend",
    "other hosts, same meter",
    "data sheet only",
]

SCHEMA = 1
# Fewer measured chips than this are no sample of the chips of their kind.
MIN_CHIPS = 3


@dataclass(frozen=True, slots=True)
class EnergyCoefficients:
    """Fitted shares by meter, "meter|architecture" and "chip|backend", and the error left out.

    `intervals` maps evidence to level to (low, high) quantiles of log(measured / predicted)
    watts; `caps` are the terms under a power limit by chip; `n_observations` counts
    configurations by "meter|chip". `digest` names the release.
    """

    digest: str
    meters: Mapping[str, PowerTerms]
    families: Mapping[str, PowerTerms]
    units: Mapping[str, PowerTerms]
    intervals: Mapping[str, Mapping[str, tuple[float, float]]]
    caps: Mapping[str, CapTerms]
    n_observations: Mapping[str, int]

    def terms(self, host: Host, backend: str) -> tuple[PowerTerms, EnergyEvidence]:
        """Return the shares that hold for a host under a backend, and why these."""
        own = self.units.get(f"{host.name}|{backend}")
        if own is not None:
            return own, "same host"
        for name, terms in self.units.items():
            if name.rpartition("|")[0] == host.name:
                return terms, "same host, another backend"
        meter = meter_of(host)
        n_chips = sum(name.startswith(f"{meter}|") for name in self.n_observations)
        found = self.families.get(power_family(host), self.meters[meter])
        return found, "other hosts, same meter" if n_chips >= MIN_CHIPS else "data sheet only"


@dataclass(frozen=True, slots=True)
class OwnPower:
    """What a calibration read on this machine's own meter: the watts that shares are of.

    `intervals` maps a level to (low, high) quantiles of log(measured / predicted) watts of a model
    left out; `source` says what the meter counts.
    """

    reference_watts: float
    intervals: Mapping[str, tuple[float, float]]
    source: str


@dataclass(frozen=True, slots=True)
class Energy:
    """Joules a token of a prediction, with an interval of its level, and what is behind it.

    Joules are what `meter` covers: `COVERS` says in words, and `source` for this machine's own.
    """

    joules_per_token: float
    low: float
    high: float
    level: float
    power: Power
    roofline: EnergyRoofline
    meter: Meter
    evidence: EnergyEvidence
    source: str = ""


def activity_of(p: Prediction) -> Activity:
    """Return the activity of a prediction: its components' bytes and operations."""
    n_bytes = sum(c.bytes for c in p.components)
    flops = sum(c.flops for c in p.components)
    if p.phase == "decode":
        return Activity(p.seconds, 0.0, n_bytes, flops, 0.0)
    return Activity(0.0, p.seconds, n_bytes, 0.0, flops)


def energy_of(
    p: Prediction,
    host: Host,
    backend: str,
    coefficients: EnergyCoefficients,
    limit_w: float | None = None,
    own: OwnPower | None = None,
) -> Energy | None:
    """Return the energy of a prediction, None for a host without a published power.

    The interval joins the error of the power with that of the time, which counts by
    `Power.time_share`, as independent. `limit_w` is a power limit in force; the prediction must
    be that under the limit. `own` is what this machine's meter read.
    """
    terms, evidence = coefficients.terms(host, backend)
    ends = coefficients.intervals[evidence][f"{p.level:g}"]
    own_w = None
    if own is not None:
        own_w, ends, evidence = own.reference_watts, own.intervals[f"{p.level:g}"], "measured here"
    power = power_of(activity_of(p), host, terms, ends=ends, limit_w=limit_w, own_w=own_w)
    roofline = roofline_of(host, terms, p.phase, own_w)
    if power is None or roofline is None:
        return None
    joules = power.watts / p.tok_per_s
    faster, slower = math.log(p.high / p.tok_per_s), math.log(p.tok_per_s / p.low)
    low = math.hypot(min(ends[0], 0.0), power.time_share * faster)
    high = math.hypot(max(ends[1], 0.0), power.time_share * slower)
    return Energy(
        joules_per_token=joules,
        low=joules * math.exp(-low),
        high=joules * math.exp(high),
        level=p.level,
        power=power,
        roofline=roofline,
        meter=meter_of(host),
        evidence=evidence,
        source=own.source if own is not None else "",
    )


def cap_curve(
    p: Prediction, energy: Energy, host: Host, coefficients: EnergyCoefficients
) -> tuple[CapCurve, str] | None:
    """Return speed over a power limit for a prediction without one, and the chip it is taken from.

    None for a chip without a published power, and where nothing like it was swept.
    """
    name = nearest(host, p.phase, coefficients.caps)
    if name is None:
        return None
    share = activity_of(p).n_bytes / p.seconds / host.bytes_per_s
    curve = curve_of(host, coefficients.caps[name], p.phase, share, energy.power.watts)
    return (curve, name) if curve is not None else None


def limited(p: Prediction, curve: CapCurve, limit_w: float) -> Prediction:
    """Return a prediction under a power limit: all of it slower by the same share."""
    left = curve.speed(limit_w)
    return replace(
        p,
        tok_per_s=p.tok_per_s * left,
        low=p.low * left,
        high=p.high * left,
        seconds=p.seconds / left,
        components=tuple(replace(c, seconds=c.seconds / left) for c in p.components),
    )


def from_json(data: Mapping[str, Any]) -> EnergyCoefficients:
    """Return coefficients from their released form; raises InputError for another schema."""
    if data.get("schema") != SCHEMA:
        raise InputError(
            f"energy coefficients of schema {data.get('schema')!r}; expected {SCHEMA}:"
            " run tokcast energy fit"
        )
    return EnergyCoefficients(
        digest=data["digest"],
        meters={name: PowerTerms(**terms) for name, terms in data["meters"].items()},
        families={name: PowerTerms(**terms) for name, terms in data["families"].items()},
        units={name: PowerTerms(**terms) for name, terms in data["units"].items()},
        intervals={
            evidence: {level: (ends[0], ends[1]) for level, ends in levels.items()}
            for evidence, levels in data["intervals"].items()
        },
        caps={name: CapTerms(**terms) for name, terms in data["caps"].items()},
        n_observations=data["n_observations"],
    )


def read(path: Path) -> EnergyCoefficients:
    """Return the coefficients of a JSON file; raises InputError when it can't be read."""
    try:
        return from_json(json.loads(path.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: {error}; expected energy coefficients of tokcast") from error
