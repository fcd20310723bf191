"""How well energy is predicted for models and chips left out, beside the published power."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokcast.fits.energy_heldout import HeldEnergy
from tokcast.fits.energy_observations import EnergyObservation
from tokcast.fits.energy_release import Floats, LeftOutEnergy, Mask, intervals_of
from tokcast.fits.scores import Score, score
from tokcast.predictor.power import reference_watts


@dataclass(frozen=True, slots=True)
class EnergyScore:
    """One table line: the error of power over the measured time, and of joules over predicted.

    `tdp_watts` and `tdp_joules` are the published power's, over the same times, where there is
    one; `calibrated` and `tdp_calibrated` both over the time that other models on the same
    installation tell, where a model is left out. `inside` is the share of readings inside the
    80 % interval of joules, or of watts where time is not predicted, made from other groups' rows.
    """

    left_out: str
    meter: str
    phase: str
    watts: Score
    tdp_watts: Score | None
    joules: Score | None
    tdp_joules: Score | None
    calibrated: Score | None
    tdp_calibrated: Score | None
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
                        _score(held.calibrated, names, rows),
                        _score(held.tdp_calibrated, names, rows),
                        _percent(in_watts[rows]) or 0.0,
                        _percent(in_joules[rows]),
                    )
                )
    return made
