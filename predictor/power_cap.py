"""Speed and energy under a power limit.

A limit lowers clocks. Down to the knee the voltage falls with them and a watt less costs little
speed; below it only the clock falls, and what the chip draws at any clock is left:

    speed(w) = (w / drawn) ** bend                 from the knee to what is drawn without a limit
    speed(w) = speed(knee) (w - base) / (knee - base)      below the knee

so that energy a token, w / speed, is least at the knee. The knee lies higher the more a token
keeps the chip busy: at base + a share of the reference power times the share of the memory
bandwidth in use when generating, at base + a constant share in prefill.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tokcast.predictor.host import Host
from tokcast.predictor.work import Phase

STEP_W = 10.0
# Limits are set between these shares of the published power; boards refuse others.
LOWEST_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class CapTerms:
    """Shares of a chip's published power, and what of the speed is left at the knee.

    `decode` is for the whole bandwidth in use; None where no sweep of the phase is known.
    """

    base: float
    decode: float | None
    prefill: float | None
    speed_at_knee: float
    launch_year: int


@dataclass(frozen=True, slots=True)
class CapCurve:
    """Speed under a limit relative to none, for one workload on one chip; watts."""

    base_watts: float
    knee_watts: float
    drawn_watts: float
    speed_at_knee: float

    def speed(self, limit_w: float) -> float:
        """Return the share of the speed that is left under a limit."""
        if limit_w >= self.drawn_watts:
            return 1.0
        if limit_w >= self.knee_watts:
            steps = math.log(self.drawn_watts / self.knee_watts)
            bend = math.log(1 / self.speed_at_knee) / steps if steps > 0 else 0.0
            return float((limit_w / self.drawn_watts) ** bend)
        left = (limit_w - self.base_watts) / (self.knee_watts - self.base_watts)
        return self.speed_at_knee * max(left, 0.02)

    def energy(self, limit_w: float) -> float:
        """Return the energy a token under a limit relative to none."""
        watts = min(limit_w, self.drawn_watts)
        return watts / self.drawn_watts / self.speed(limit_w)

    def best(self, lowest_w: float, highest_w: float) -> float:
        """Return the limit between two with the least energy a token: the knee, to 10 W."""
        return min(max(round(self.knee_watts / STEP_W) * STEP_W, lowest_w), highest_w)


def curve_of(
    host: Host, terms: CapTerms, phase: Phase, bandwidth_share: float, drawn_watts: float
) -> CapCurve | None:
    """Return the curve of a workload, None without a published power or a sweep of its phase.

    `bandwidth_share` is that of the nameplate bandwidth in use without a limit, `drawn_watts`
    what is drawn then.
    """
    slope = terms.decode if phase == "decode" else terms.prefill
    if host.tdp_w is None or slope is None:
        return None
    moving = slope * (bandwidth_share if phase == "decode" else 1.0)
    knee = min((terms.base + moving) * host.tdp_w, drawn_watts)
    base = min(terms.base * host.tdp_w, 0.9 * knee)
    return CapCurve(base, knee, drawn_watts, terms.speed_at_knee)


def nearest(host: Host, phase: Phase, known: Mapping[str, CapTerms]) -> str | None:
    """Return the swept chip whose terms a host takes: itself, else the nearest in launch year."""

    def has(name: str) -> bool:
        terms = known[name]
        return (terms.decode if phase == "decode" else terms.prefill) is not None

    if host.name in known and has(host.name):
        return host.name
    if host.kind != "discrete_gpu" or host.launch_year is None:
        return None
    year = host.launch_year
    found = sorted(filter(has, known), key=lambda n: (abs(known[n].launch_year - year), n))
    return found[0] if found else None
