"""A machine's own power from the meter that ran while it was calibrated.

All terms of the energy roofline are in shares of one reference power (`predictor.power`), which
a data sheet gives roughly and a meter exactly: the update moves that one number.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean, median
from typing import Any

from tokcast.fits.calibrate import LEVELS, Point, interval_of
from tokcast.fits.energy_released import released_energy
from tokcast.predictor.coefficients import Coefficients
from tokcast.predictor.energy import activity_of
from tokcast.predictor.host import Host
from tokcast.predictor.power import Meter, meter_of, power_of
from tokcast.predictor.roofline import Question, predict, tokens_of
from tokcast.predictor.terms import Run

# By the first word of a meter's source: what it can stand for. A card's energy says nothing of
# the processor beside it, nor the other way round.
_COUNTS: Mapping[str, tuple[Meter, ...]] = {
    "NVML": ("gpu_board", "gpu_part"),
    "Apple": ("soc",),
    "amdgpu": ("gpu_board", "package"),
    "RAPL": ("package",),
}
# Fewer models than this leave none to be left out.
FEWEST_MODELS = 2


def own_power(
    points: Sequence[Point], host: Host, run: Run, coefficients: Coefficients
) -> dict[str, Any] | None:
    """Return the reference watts of a host as its meter has them, and the error left out.

    None where no meter ran, it counted something else, or one model alone was read.
    """
    meter = meter_of(host)
    read = [
        p
        for p in points
        if p.joules_per_token and meter in _COUNTS.get(p.meter.partition(" ")[0], ())
    ]
    references: dict[str, list[float]] = defaultdict(list)
    for p in read:
        references[p.model].append(_log_reference(p, host, run, coefficients))
    if len(references) < FEWEST_MODELS:
        return None
    models = {name: fmean(values) for name, values in references.items()}
    left_out = [
        own - median(other for m, other in models.items() if m != name)
        for name, own in models.items()
    ]
    error = math.sqrt(fmean(e**2 for e in left_out))
    ends = {f"{level:g}": interval_of(error, len(models), level) for level in LEVELS}
    return {
        "reference_watts": round(math.exp(median(models.values())), 3),
        "intervals": {level: [round(x, 5) for x in pair] for level, pair in ends.items()},
        "error": round(error, 5),
        "n_models": len(models),
        "source": read[0].meter,
    }


def _log_reference(p: Point, host: Host, run: Run, coefficients: Coefficients) -> float:
    """Return the log of the reference watts under which a reading is what the terms predict."""
    terms, _ = released_energy().terms(host, run.backend)
    predicted = predict(p.spec, Question(p.workload, host, run), coefficients)
    timed = replace(predicted, tok_per_s=p.tok_per_s, seconds=tokens_of(p.workload) / p.tok_per_s)
    share = power_of(activity_of(timed), host, terms, own_w=1.0)
    if share is None or p.joules_per_token is None:
        raise ValueError(f"{p.model}: no power of a host with one")
    return math.log(p.joules_per_token * p.tok_per_s / share.watts)
