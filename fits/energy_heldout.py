"""Energy predicted by fits that did not see the model or the chip: of power, and of speed too."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from tokcast.fits.design import design
from tokcast.fits.energy import (
    NAMES,
    EnergyFit,
    energy_design,
    fit_energy,
    predict_log_share,
    unit_of,
)
from tokcast.fits.energy_calibrated import Installations, calibrated_seconds
from tokcast.fits.energy_observations import EnergyObservation
from tokcast.fits.estimate import Estimate, fit, used_effects
from tokcast.fits.heldout import Fitter
from tokcast.fits.kept import Store
from tokcast.fits.observations import Observation, spec_of
from tokcast.fits.priors import BELIEFS, prior_of
from tokcast.fits.released import released
from tokcast.fits.splits import Rows
from tokcast.predictor.coefficients import Coefficients
from tokcast.predictor.ledger import Workload
from tokcast.predictor.power import (
    Activity,
    Power,
    PowerTerms,
    meter_of,
    power_family,
    power_of,
    reference_watts,
)
from tokcast.predictor.prediction import Prediction
from tokcast.predictor.roofline import Question, predict

Floats = npt.NDArray[np.float64]
Progress = Callable[[str], None]
# Runtimes that the speed fit knows; elsewhere only the power is scored, over the measured time.
TIMED = frozenset({"llama.cpp", "mlx"})


@dataclass(frozen=True, slots=True)
class SpeedFits:
    """The speed fits of both phases on all rows, from which those without some are made."""

    observations: dict[str, list[Observation]]
    fitters: dict[str, Fitter]
    everything: dict[str, Estimate]

    def without(self, is_out: Callable[[Observation], bool]) -> Coefficients:
        """Return the speed coefficients of the rows that are not left out."""
        effects: dict[str, float] = {}
        for phase, rows in self.observations.items():
            d, start = self.fitters[phase].design, self.everything[phase]
            train = np.flatnonzero([not is_out(o) for o in rows])
            part = d.take(train)
            theta = fit(part, start.prior, start).theta
            effects |= {d.names[i]: float(theta[i]) for i in used_effects(part)}
        return replace(released(), effects=effects)


def speed_fits(observations: Sequence[Observation], store: Store, progress: Progress) -> SpeedFits:
    """Return the speed fits of both phases, from kept ones as far as they go."""
    rows = {p: [o for o in observations if o.phase == p] for p in ("decode", "prefill")}
    designs = {p: design(r) for p, r in rows.items()}
    fitters = {
        p: Fitter(d, prior_of(d.names, BELIEFS[p]), store, progress) for p, d in designs.items()
    }
    return SpeedFits(rows, fitters, {p: f.everything() for p, f in fitters.items()})


@dataclass(frozen=True, slots=True)
class HeldEnergy:
    """What fits without a row's group said of it, (n,) each, NaN where nothing was said.

    `watts` is log(measured / predicted) power over the measured time; `joules` that of joules a
    token over the predicted time, with the `time_share` of the energy and the log ends of the
    time's interval. `tdp_joules` is the residual of the published power times the same time.
    `calibrated` and `tdp_calibrated` are both over the time that other models on the same
    installation tell.
    """

    watts: Floats
    joules: Floats
    tdp_joules: Floats
    time_share: Floats
    faster: Floats
    slower: Floats
    calibrated: Floats
    tdp_calibrated: Floats


def empty(n: int) -> HeldEnergy:
    """Return a result in which nothing was said of n rows."""
    return HeldEnergy(*(np.full(n, np.nan) for _ in fields(HeldEnergy)))


def power_terms(log_terms: Floats) -> PowerTerms:
    """Return fitted log shares as the predictor takes them."""
    return PowerTerms(**dict(zip(NAMES, map(float, np.exp(log_terms)), strict=True)))


def _timed(
    o: EnergyObservation, coefficients: Coefficients
) -> list[tuple[Workload, float, Prediction]]:
    spec = spec_of(o.model_id, o.file_type)
    if spec is None:
        raise AssertionError("an observation has a model")
    asked = ((load, n, Question(load, o.host, o.run)) for load, n in o.loads)
    return [(load, n, predict(spec, q, coefficients)) for load, n, q in asked]


def _seconds(o: EnergyObservation, timed: Sequence[tuple[Workload, float, Prediction]]) -> Activity:
    """Return a row's activity over its predicted time."""
    seconds = {"decode": 0.0, "prefill": 0.0}
    for load, n, p in timed:
        # Files with their own mix of types are larger or smaller than the catalogue's.
        seconds[load.phase] += n * p.seconds * (o.size_ratio if load.phase == "decode" else 1.0)
    return replace(o.activity, decode_seconds=seconds["decode"], prefill_seconds=seconds["prefill"])


def _residuals(o: EnergyObservation, activity: Activity, power: Power) -> tuple[float, float]:
    """Return log(measured / predicted) joules over a time, and those of the published power."""
    measured = np.log(o.watts * o.activity.seconds / activity.seconds)
    published = reference_watts(o.host, o.limit_w) if o.host.tdp_w else None
    tdp = measured - np.log(published) if published else np.nan
    return float(measured - np.log(power.watts)), float(tdp)


def _say(
    held: HeldEnergy,
    i: int,
    o: EnergyObservation,
    fitted: EnergyFit,
    c: Coefficients,
    calibrated_s: float,
) -> None:
    """Note what is predicted of the energy of one row with predicted and with calibrated time."""
    timed = _timed(o, c)
    activity = _seconds(o, timed)
    terms = power_terms(fitted.shares(meter_of(o.host), power_family(o.host), unit_of(o)))
    power = power_of(activity, o.host, terms, limit_w=o.limit_w)
    if power is None:
        return
    held.joules[i], held.tdp_joules[i] = _residuals(o, activity, power)
    held.time_share[i] = power.time_share
    _, _, longest = max(timed, key=lambda part: part[1] * part[2].seconds)
    held.faster[i] = np.log(longest.high / longest.tok_per_s)
    held.slower[i] = np.log(longest.tok_per_s / longest.low)
    if np.isnan(calibrated_s):
        return
    main = "decode_seconds" if o.phase == "decode" else "prefill_seconds"
    sharper = replace(activity, **{main: calibrated_s})
    power = power_of(sharper, o.host, terms, limit_w=o.limit_w)
    if power is not None:
        held.calibrated[i], held.tdp_calibrated[i] = _residuals(o, sharper, power)


def leave_out(
    observations: Sequence[EnergyObservation],
    splits: Sequence[tuple[Rows, Rows]],
    speed: Callable[[Rows], Coefficients] | None,
    *,
    only_known: bool,
    known_speeds: Installations | None = None,
) -> HeldEnergy:
    """Return what each split's fit says of its test rows.

    `speed` gives the speed coefficients that go with a split's test rows, None where time is not
    to be predicted. With `only_known`, rows of units that the training rows lack are passed over.
    `known_speeds` are those that calibrate a row's installation, without the row's model.
    """
    d = energy_design(observations)
    held = empty(len(observations))
    for train, test in splits:
        fitted = fit_energy(d.take(train))
        known = [i for i in test if not only_known or d.units[i] in fitted.units]
        asked = [i for i in known if not observations[i].is_knee]
        if not asked:
            continue
        part = d.take(np.array(asked))
        held.watts[asked] = part.log_share - predict_log_share(fitted, part)
        timed = [i for i in asked if observations[i].run.runtime in TIMED]
        if speed is None or not timed:
            continue
        coefficients = speed(np.array(asked))
        rows = [observations[i] for i in timed]
        sharper = calibrated_seconds(rows, known_speeds or {}, coefficients)
        for i, o, seconds in zip(timed, rows, sharper, strict=True):
            _say(held, i, o, fitted, coefficients, seconds)
    return held


def without_models(
    fits: SpeedFits, observations: Sequence[EnergyObservation], rows: Rows
) -> Coefficients:
    """Return speed coefficients that saw none of the models of some rows."""
    models = {observations[i].model_id for i in rows}
    return fits.without(lambda o: o.model_id in models)


def without_hosts(
    fits: SpeedFits, observations: Sequence[EnergyObservation], rows: Rows
) -> Coefficients:
    """Return speed coefficients that saw none of the chips of some rows."""
    hosts = {observations[i].host.name for i in rows}
    return fits.without(lambda o: o.host.name in hosts)
