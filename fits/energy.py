"""Estimating the shares of the energy roofline: meters first, chips shrunk towards them.

The logarithm of each share is that of its meter, plus what the chip's architecture and the chip
under its backend differ by, which Gaussian priors pull to zero; the meter's has a wide prior of
its own. Most of that difference is common to a chip's shares, because a published power says how
far a maker let the clocks go: an RTX 3090 is always at its limit where an RTX 4090 is not. It is
a level of its own, wider than what single shares differ by. Readings of different meters share
nothing. Residuals in log watts count as |x| where they are large, so that a wrong row cannot
pull far, and a chip measured n times as n ** 0.5.
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
# shares, and of the level by which the latter two move all but the cap. A chip draws about its
# published power at most and a quarter of it when busy generating; moving bytes at the full
# bandwidth and prefilling at the full FP32 rate take a third of it each; a generated token's
# operations run at a few percent of that rate.
CENTRE = PowerTerms(0.25, 0.3, 10.0, 0.6, 0.3, 1.0)
METER_WIDTH = np.array([0.6, 0.6, 0.6, 0.6, 0.6, 0.1])
FAMILY_WIDTH = np.array([0.2, 0.2, 0.2, 0.2, 0.2, 0.06])
CHIP_WIDTH = np.array([0.15, 0.15, 0.15, 0.15, 0.15, 0.12])
LEVEL_WIDTH = 0.3
LEVELLED = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.0])
SCALE = 0.06
HOST_POWER = 0.5
# A limit this far below the reference power holds down a chip that draws as much: what it draws
# is the limit's. What a limit above the published power does is the firmware's affair.
HELD_DOWN, RAISED = 0.97, 1.05


def is_free(o: EnergyObservation) -> bool:
    """Return whether a reading is of a chip as it is sold, held below no limit of its owner's."""
    reference = reference_watts(o.host, o.limit_w)
    if reference is None or o.limit_w is None:
        return reference is not None
    if o.watts < HELD_DOWN * o.limit_w:
        return True
    return HELD_DOWN * reference <= o.limit_w <= RAISED * reference


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
    """Return the design of readings that `is_free`, and of what knees say, which nothing caps."""
    references = [reference_watts(o.host, o.limit_w) or np.nan for o in observations]
    limits = [(o.limit_w or 0.0) / r for o, r in zip(observations, references, strict=True)]
    return EnergyDesign(
        features=np.array([features_of(o.activity, o.host) for o in observations]),
        log_share=np.log([o.watts / r for o, r in zip(observations, references, strict=True)]),
        raised=np.where([o.is_knee for o in observations], np.inf, np.maximum(1.0, limits)),
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

    @property
    def n_parameters(self) -> int:
        """Return how many numbers `split` takes: shares of all, levels of all but meters."""
        n_below = len(self.families) + len(self.units)
        return len(NAMES) * (len(self.meters) + n_below) + n_below

    def split(self, v: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
        """Return what a vector of all parameters holds.

        Shares of meters, families and units, (n_names, 6), then levels of the latter two.
        """
        n_meter, n_family = len(self.meters), len(self.families)
        n_below = n_family + len(self.units)
        parts, levels = v[:-n_below].reshape(-1, len(NAMES)), v[-n_below:]
        return (
            parts[:n_meter],
            parts[n_meter : n_meter + n_family],
            parts[n_meter + n_family :],
            levels[:n_family],
            levels[n_family:],
        )

    def log_terms(self, v: Floats) -> tuple[Floats, Floats, Floats]:
        """Return the log shares of meters, families and units, (n_names, 6)."""
        of_meter, of_family, of_unit, family_level, unit_level = self.split(v)
        meters = _centre() + of_meter
        families = of_family + np.outer(family_level, LEVELLED)
        units = of_unit + np.outer(unit_level, LEVELLED)
        meter_of_family = dict(zip(self.family, self.meter, strict=True))
        above = meters[[meter_of_family[i] for i in range(len(self.families))]]
        return meters, above + families, meters[self.meter] + families[self.family] + units

    def pulls(self, v: Floats) -> list[Floats]:
        """Return how far each parameter is from its prior, in the prior's widths."""
        of_meter, of_family, of_unit, family_level, unit_level = self.split(v)
        pulled = (of_meter / METER_WIDTH, of_family / FAMILY_WIDTH, of_unit / CHIP_WIDTH)
        levels = (family_level / LEVEL_WIDTH, unit_level / LEVEL_WIDTH)
        return [p.ravel() for p in (*pulled, *levels)]


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
        _, _, log_units = levels.log_terms(v)
        predicted = _log_share(log_units[levels.row], d.features, d.raised)
        z = (d.log_share - predicted) / SCALE
        robust = np.sign(z) * np.sqrt(2 * (np.sqrt(1 + z**2) - 1))
        return np.concatenate([robust * weight, *levels.pulls(v)])

    found = least_squares(losses, np.zeros(levels.n_parameters))
    log_meters, log_families, log_units = levels.log_terms(found.x)
    return EnergyFit(
        meters=dict(zip(levels.meters, log_meters, strict=True)),
        families=dict(zip(levels.families, log_families, strict=True)),
        units=dict(zip(levels.units, log_units, strict=True)),
    )


def predict_log_share(fitted: EnergyFit, d: EnergyDesign) -> Floats:
    """Return the log shares of the reference power that a fit predicts, (n,)."""
    names = zip(d.meters, d.families, d.units, strict=True)
    return _log_share(np.array([fitted.shares(*each) for each in names]), d.features, d.raised)
