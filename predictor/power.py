"""The energy roofline: watts and joules from time, bytes and operations.

    watts = base + energy/byte x bytes/s + energy/operation x operations/s

as in Choi, Bedard, Fowler and Vuduc, "A roofline model of energy" (IPDPS 2013), joined smoothly
to the power that a chip sustains, the capped form of their "Algorithmic time, energy, and power
on candidate HPC compute building blocks" (IPDPS 2014). All is in shares of a chip's reference
power, at its full bandwidth and FP32 rate, so that a chip nobody measured has them too.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tokcast.predictor.host import Host
from tokcast.predictor.traits import traits_of
from tokcast.predictor.work import Phase

Meter = Literal["gpu_board", "gpu_part", "package", "soc"]

# How sharply the power bends at what the chip sustains: the p of the norm that joins both.
BEND = 8.0
# Apple publishes no power. The unit in which its chips' is counted; the fit scales it.
APPLE_W_PER_CORE = 2.0
# A laptop's card is sold at many powers: where a limit so far above the published one is in
# force, it is the card's own. A desktop card whose owner raised the limit stays what it is.
OWN_LIMIT = 1.25
_LAPTOP = ("Laptop", "Max-Q", "Mobile")

# What each meter covers, in words.
COVERS: dict[Meter, str] = {
    "gpu_board": "the card alone, as NVML reads it",
    "gpu_part": "the GPU's part of the chip, as NVML reads it",
    "package": "the chip's package sensor, without memory and supply",
    "soc": "processor and GPU of the chip, without memory and display",
}


@dataclass(frozen=True, slots=True)
class Activity:
    """What a span of time was spent on: seconds and operations by phase, and bytes moved."""

    decode_seconds: float
    prefill_seconds: float
    n_bytes: float
    decode_flops: float
    prefill_flops: float

    @property
    def seconds(self) -> float:
        """Return the whole time."""
        return self.decode_seconds + self.prefill_seconds


@dataclass(frozen=True, slots=True)
class PowerTerms:
    """Shares of the reference power: base by phase, at full bandwidth and rate, and sustained.

    `byte` is what moving bytes at the nameplate bandwidth adds, `decode_op` and `prefill_op` what
    operations at the nameplate FP32 rate add, which kernels may exceed; `cap` is what the chip
    sustains.
    """

    decode_base: float
    byte: float
    decode_op: float
    prefill_base: float
    prefill_op: float
    cap: float

    def drawn(self, features: Sequence[float]) -> tuple[float, float]:
        """Return the base and the moving share that `features_of` an activity add up to."""
        own = (self.decode_base, self.byte, self.decode_op, self.prefill_base, self.prefill_op)
        parts = [share * feature for share, feature in zip(own, features, strict=True)]
        return parts[0] + parts[3], parts[1] + parts[2] + parts[4]


def meter_of(host: Host) -> Meter:
    """Return what a host's own power reading covers."""
    if host.kind == "discrete_gpu":
        return "gpu_board"
    if host.vendor == "NVIDIA":
        return "gpu_part"
    return "soc" if host.kind == "apple_soc" else "package"


def power_family(host: Host) -> str:
    """Return the name of what shares a chip's power: its meter and architecture."""
    return f"{meter_of(host)}|{host.architecture}"


def reference_watts(host: Host, limit_w: float | None = None) -> float | None:
    """Return the power in watts that shares are of, None where nobody publishes it.

    `limit_w` is the limit in force where one is known.
    """
    if host.tdp_w is None:
        cores = host.n_cores if host.kind == "apple_soc" else None
        return APPLE_W_PER_CORE * cores if cores else None
    is_laptop = any(word in host.name for word in _LAPTOP)
    own = is_laptop and limit_w is not None and limit_w > OWN_LIMIT * host.tdp_w
    return limit_w if own else host.tdp_w


def features_of(activity: Activity, host: Host) -> tuple[float, float, float, float, float]:
    """Return what an activity multiplies the first five of `PowerTerms` with.

    Time shares of decode and prefill, and rates over the nameplate's.
    """
    seconds = activity.seconds
    rate = seconds * traits_of(host).fp32_flops_per_s
    return (
        activity.decode_seconds / seconds,
        activity.n_bytes / seconds / host.bytes_per_s,
        activity.decode_flops / rate,
        activity.prefill_seconds / seconds,
        activity.prefill_flops / rate,
    )


@dataclass(frozen=True, slots=True)
class Power:
    """Watts drawn by an activity: with an interval, and how the energy answers to time.

    `time_share` is the elasticity of energy in time: 1 where all energy is proportional to the
    time, less where bytes and operations cost theirs however long they take.
    """

    watts: float
    low: float
    high: float
    time_share: float
    is_capped: bool


def power_of(
    activity: Activity,
    host: Host,
    terms: PowerTerms,
    *,
    ends: tuple[float, float] = (0.0, 0.0),
    limit_w: float | None = None,
    own_w: float | None = None,
) -> Power | None:
    """Return the power of an activity, None for a host without a published power.

    `ends` are log quantiles of the error; no interval reaches above a limit in force. `own_w` is
    the reference power where it was measured.
    """
    reference = own_w or reference_watts(host, limit_w)
    if reference is None:
        return None
    base, moving = terms.drawn(features_of(activity, host))
    free = base + moving
    cap = terms.cap * max(1.0, (limit_w or 0.0) / reference)
    if limit_w is not None:
        cap = min(cap, limit_w / reference)
    share = (free**-BEND + cap**-BEND) ** (-1 / BEND)
    answered = (share / free) ** BEND
    watts = share * reference
    most = limit_w if limit_w is not None else math.inf
    return Power(
        watts=watts,
        low=watts * math.exp(ends[0]),
        high=max(min(watts * math.exp(ends[1]), most), watts),
        time_share=1.0 - answered * moving / free,
        is_capped=free > cap,
    )


@dataclass(frozen=True, slots=True)
class EnergyRoofline:
    """What a byte and an operation cost in joules on a host, and the base power in watts.

    `balance_flops_per_byte` is the intensity at which both cost the same.
    """

    base_watts: float
    sustained_watts: float
    joules_per_byte: float
    joules_per_flop: float

    @property
    def balance_flops_per_byte(self) -> float:
        """Return operations a byte at which bytes and operations cost the same energy."""
        return self.joules_per_byte / self.joules_per_flop


def roofline_of(
    host: Host, terms: PowerTerms, phase: Phase, own_w: float | None = None
) -> EnergyRoofline | None:
    """Return the energy roofline of a host in a phase, None without a published power.

    `own_w` is the reference power where it was measured.
    """
    reference = own_w or reference_watts(host)
    if reference is None:
        return None
    is_decode = phase == "decode"
    op = terms.decode_op if is_decode else terms.prefill_op
    return EnergyRoofline(
        base_watts=reference * (terms.decode_base if is_decode else terms.prefill_base),
        sustained_watts=reference * terms.cap,
        joules_per_byte=reference * terms.byte / host.bytes_per_s,
        joules_per_flop=reference * op / traits_of(host).fp32_flops_per_s,
    )
