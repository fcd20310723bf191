"""Estimating the shares of the energy roofline: meters first, chips shrunk towards them.

The logarithm of each share is that of its meter, plus what the chip's architecture and the chip
under its backend differ by, which Gaussian priors pull to zero; the meter's has a wide prior of
its own. Readings of different meters share nothing. Residuals in log watts count as |x| where
they are large, so that a wrong row cannot pull far, and a chip measured n times as n ** 0.5.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares

from tokcast.fits.energy_observations import EnergyObservation
from tokcast.predictor.power import (
    BEND,
    PowerTerms,
    features_of,
    meter_of,
    power_family,
    reference_watts,
)

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.intp]

NAMES = tuple(f.name for f in fields(PowerTerms))
# Prior centre, and prior widths in log units of a meter's, an architecture's and a chip's
# shares. A chip draws about its published power at most and a quarter of it when busy
# generating; moving bytes at the full bandwidth and prefilling at the full FP32 rate take a
# third of it each; a generated token's operations run at a few percent of that rate.
CENTRE = PowerTerms(0.25, 0.3, 10.0, 0.6, 0.3, 1.0)
METER_WIDTH = np.array([0.6, 0.6, 0.6, 0.6, 0.6, 0.1])
FAMILY_WIDTH = np.array([0.3, 0.3, 0.3, 0.3, 0.3, 0.08])
CHIP_WIDTH = np.array([0.25, 0.25, 0.25, 0.25, 0.25, 0.12])
SCALE = 0.06
HOST_POWER = 0.5
# A limit this far below the reference power holds the chip down: what it draws is the limit's.
HELD_DOWN = 0.97


def is_free(o: EnergyObservation) -> bool:
    """Return whether a reading is of a chip with a published power, not held below it."""
    reference = reference_watts(o.host, o.limit_w)
    return reference is not None and (o.limit_w is None or o.limit_w >= HELD_DOWN * reference)


def unit_of(o: EnergyObservation) -> str:
    """Return the name of what has shares of its own: a chip under a backend."""
    return f"{o.host.name}|{o.run.backend}"


@dataclass(frozen=True, slots=True)
class EnergyDesign:
    """Readings as arrays: features (n, 5), log shares of the reference power, what raises the cap.

    `meters`, `families` and `units` name each row's (n,).
    """

    features: Floats
    log_share: Floats
    raised: Floats
    meters: tuple[str, ...]
    families: tuple[str, ...]
    units: tuple[str, ...]

    def take(self, rows: Rows) -> "EnergyDesign":
        """Return the design of some rows."""
        return EnergyDesign(
            self.features[rows],
            self.log_share[rows],
            self.raised[rows],
            tuple(self.meters[i] for i in rows),
            tuple(self.families[i] for i in rows),
            tuple(self.units[i] for i in rows),
        )


def energy_design(observations: Sequence[EnergyObservation]) -> EnergyDesign:
    """Return the design of readings that `is_free`."""
    references = [reference_watts(o.host, o.limit_w) or np.nan for o in observations]
    limits = [(o.limit_w or 0.0) / r for o, r in zip(observations, references, strict=True)]
    return EnergyDesign(
        features=np.array([features_of(o.activity, o.host) for o in observations]),
        log_share=np.log([o.watts / r for o, r in zip(observations, references, strict=True)]),
        raised=np.maximum(1.0, limits),
        meters=tuple(meter_of(o.host) for o in observations),
        families=tuple(power_family(o.host) for o in observations),
        units=tuple(map(unit_of, observations)),
    )


@dataclass(frozen=True, slots=True)
class EnergyFit:
    """Log shares of each meter, architecture and unit (6,)."""

    meters: dict[str, Floats]
    families: dict[str, Floats]
    units: dict[str, Floats]

    def shares(self, meter: str, family: str, unit: str) -> Floats:
        """Return the log shares that hold for a unit: its own, else the nearest above it."""
        for level, name in ((self.units, unit), (self.families, family), (self.meters, meter)):
            if name in level:
                return level[name]
        return _centre()


def _centre() -> Floats:
    return np.log([getattr(CENTRE, name) for name in NAMES])


def _log_share(log_terms: Floats, features: Floats, raised: Floats) -> Floats:
    """Return log shares of the reference power, (n,); as `power_of` joins them."""
    terms = np.exp(log_terms)
    free = (features * terms[:, :5]).sum(axis=1)
    cap = terms[:, 5] * raised
    return np.asarray(-np.log(free**-BEND + cap**-BEND) / BEND)


@dataclass(frozen=True, slots=True)
class _Levels:
    """Names of each level, and the place of each unit's meter and family, and each row's unit."""

    meters: list[str]
    families: list[str]
    units: list[str]
    meter: Rows
    family: Rows
    row: Rows

    def split(self, v: Floats) -> tuple[Floats, Floats, Floats]:
        """Return what a vector of all parameters holds for each level, (n_names, 6)."""
        n_meter, n_family = len(self.meters), len(self.families)
        parts = v.reshape(-1, len(NAMES))
        return parts[:n_meter], parts[n_meter : n_meter + n_family], parts[n_meter + n_family :]


def _levels(d: EnergyDesign) -> _Levels:
    above = dict(zip(d.units, zip(d.meters, d.families, strict=True), strict=True))
    meters, families, units = sorted(set(d.meters)), sorted(set(d.families)), sorted(above)
    return _Levels(
        meters,
        families,
        units,
        np.array([meters.index(above[u][0]) for u in units]),
        np.array([families.index(above[u][1]) for u in units]),
        np.array([units.index(u) for u in d.units]),
    )


def fit_energy(d: EnergyDesign) -> EnergyFit:
    """Return the shares that best explain the readings: least squares from the prior's centre."""
    levels, n = _levels(d), Counter(d.units)
    weight = np.array([n[u] ** (-HOST_POWER / 2) for u in d.units])

    def losses(v: Floats) -> Floats:
        of_meter, of_family, of_unit = levels.split(v)
        log_terms = (_centre() + of_meter)[levels.meter] + of_family[levels.family] + of_unit
        predicted = _log_share(log_terms[levels.row], d.features, d.raised)
        z = (d.log_share - predicted) / SCALE
        robust = np.sign(z) * np.sqrt(2 * (np.sqrt(1 + z**2) - 1))
        pulls = (of_meter / METER_WIDTH, of_family / FAMILY_WIDTH, of_unit / CHIP_WIDTH)
        return np.concatenate([robust * weight, *(p.ravel() for p in pulls)])

    n_names = len(levels.meters) + len(levels.families) + len(levels.units)
    found = least_squares(losses, np.zeros(n_names * len(NAMES)))
    of_meter, of_family, of_unit = levels.split(found.x)
    log_meters = _centre() + of_meter
    meter_of_family = dict(zip(levels.family, levels.meter, strict=True))
    log_families = {
        name: log_meters[meter_of_family[i]] + of_family[i]
        for i, name in enumerate(levels.families)
    }
    log_units = log_meters[levels.meter] + of_family[levels.family] + of_unit
    return EnergyFit(
        meters=dict(zip(levels.meters, log_meters, strict=True)),
        families=log_families,
        units=dict(zip(levels.units, log_units, strict=True)),
    )


def predict_log_share(fitted: EnergyFit, d: EnergyDesign) -> Floats:
    """Return the log shares of the reference power that a fit predicts, (n,)."""
    names = zip(d.meters, d.families, d.units, strict=True)
    return _log_share(np.array([fitted.shares(*each) for each in names]), d.features, d.raised)
