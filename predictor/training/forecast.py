"""What a training run will take: seconds, joules, memory, and how sure that is."""

import math
from dataclasses import dataclass
from typing import Literal

from tokcast.predictor.training.law import Device, Kind, Laws, Quantity, features
from tokcast.predictor.training.layout import Layout, Link, efficiency
from tokcast.predictor.training.shape import TrainShape
from tokcast.predictor.training.work import Step, flops, held_bytes, traffic_bytes

TrainEvidence = Literal["same host", "spec sheet only"]
LEVEL = 0.8


@dataclass(frozen=True, slots=True)
class TrainQuestion:
    """A step of a model on devices of one kind; `is_here`: this processor ran the sweep.

    `speedup` over one device is measured, above 0 and at most the number of devices; None has it
    modelled from the layout and the link.
    """

    shape: TrainShape
    step: Step
    device: Device
    kind: Kind
    layout: Layout
    link: Link
    is_here: bool = False
    speedup: float | None = None


@dataclass(frozen=True, slots=True)
class Range:
    """A value with the interval that holds the truth `LEVEL` of the time."""

    value: float
    low: float
    high: float

    def times(self, factor: float) -> "Range":
        """Return the range of so many times the value."""
        return Range(self.value * factor, self.low * factor, self.high * factor)


@dataclass(frozen=True, slots=True)
class TrainForecast:
    """One step: its seconds and its joules over all devices, and what they come from.

    `efficiency` is speedup over one device by the number of devices; `device_bytes` is what each
    must hold. `is_metered`: joules come from a law of metered ones, not from stated watts.
    """

    seconds: Range
    joules: Range
    efficiency: float
    flops: float
    bytes: float
    device_bytes: float
    evidence: TrainEvidence
    is_metered: bool

    @property
    def watts(self) -> float:
        """Return the mean power of all devices together."""
        return self.joules.value / self.seconds.value


def forecast(q: TrainQuestion, laws: Laws) -> TrainForecast:
    """Return what one step takes.

    The step alone on one device comes first; what its layout then loses follows from how long
    that is. Raises KeyError where no law of the kind was released.
    """
    timed = laws.laws[q.kind, "seconds"]
    alone = math.exp(timed.log_cost(features(q.shape, q.step, q.device, 1.0))) * q.step.n_micro
    if q.speedup is None:
        at = efficiency(alone, q.shape, q.step, q.layout, q.link)
    else:
        at = q.speedup / q.layout.n_devices
    ran = f"{q.device.name}/{q.step.precision}"
    is_usual = not q.layout.is_modelled and q.shape.n_experts == 1
    is_measured = ran in laws.measured and is_usual
    known = is_measured if q.kind == "board" else q.is_here
    evidence: TrainEvidence = "same host" if known else "spec sheet only"
    spent = _cost(q, laws, "seconds", at, evidence)
    is_metered = (q.kind, "joules") in laws.laws
    joules = _cost(q, laws, "joules", at, evidence) if is_metered else spent
    return TrainForecast(
        seconds=spent.times(1.0 / q.layout.n_devices),
        joules=joules.times(q.device.rated_watts),
        efficiency=at,
        flops=flops(q.shape, q.step),
        bytes=traffic_bytes(q.shape, q.step),
        device_bytes=held_bytes(q.shape, q.step, q.layout.n_shards, q.layout.n_split),
        evidence=evidence,
        is_metered=is_metered,
    )


def _cost(
    q: TrainQuestion, laws: Laws, quantity: Quantity, at: float, evidence: TrainEvidence
) -> Range:
    law = laws.laws[q.kind, quantity]
    value = math.exp(law.log_cost(features(q.shape, q.step, q.device, at))) * q.step.n_micro
    several = f"{evidence}, several"
    is_spread = q.layout.n_devices > 1 and several in law.intervals
    low, high = law.intervals[several if is_spread else evidence][f"{LEVEL:g}"]
    return Range(value, value * math.exp(low), value * math.exp(high))
