"""What a card would draw if nothing held it down, told from where its energy a token is least.

A card at its limit says only that it would draw more. Under a sweep of limits the knee is where
the voltage has come down to its least; from there to the highest clocks both rise, and the power
to about twice the knee's. Sweeps of the RTX 3090 still gain speed at 1.84 times their knee, and
those of the RTX 4090 end, whatever is run, at a plateau of the firmware's at 1.5 times.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from tokcast.fits.energy_observations import EnergyObservation
from tokcast.fits.power_cap import MIN_LIMITS

KNEE_TO_TOP = 2.0


def knee_readings(observations: Iterable[EnergyObservation]) -> list[EnergyObservation]:
    """Return a reading without a limit for each sweep whose knee was seen.

    Its speed is that at the published power; there are as many as sweeps, all `is_knee`.
    """
    sweeps: dict[tuple[str, ...], list[EnergyObservation]] = defaultdict(list)
    for o in observations:
        if o.limit_w is not None and o.host.tdp_w is not None:
            sweeps[o.source, o.host.name, o.model_id, o.phase].append(o)
    return [knee for swept in sweeps.values() if (knee := _knee(swept)) is not None]


def _knee(swept: list[EnergyObservation]) -> EnergyObservation | None:
    limits = {o.limit_w for o in swept}
    best = min(swept, key=lambda o: o.joules_per_token)
    lowest = min(o.limit_w or 0.0 for o in swept)
    usual = [o for o in swept if (o.limit_w or 0.0) <= (o.host.tdp_w or 0.0)]
    if len(limits) < MIN_LIMITS or best.limit_w == lowest or not usual:
        return None
    fastest = max(usual, key=lambda o: o.limit_w or 0.0)
    return replace(fastest, watts=KNEE_TO_TOP * best.watts, limit_w=None, is_knee=True)
