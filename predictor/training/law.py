"""The law of training cost: log-linear in compute, memory traffic and efficiency.

    cost = a * C^alpha * M^beta * eta^gamma * (power limit / rated power)^...

C and M are the seconds that a step's operations and bytes take at one device's published peaks,
eta is speedup over one device by the number of devices. The cost is device-seconds, or joules by
watts of rated power. Both are fitted in logs, where alpha + beta is one effect ("size") and alpha
another, because a step done twice costs twice: size is 1 but for overhead. Named effects of one
chip ("|NAME") are shrunk towards 0; a chip without them is predicted from the others.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.training.shape import TrainShape
from tokcast.predictor.training.work import Step, flops, traffic_bytes

Kind = Literal["board", "processor"]
Quantity = Literal["seconds", "joules"]
SCHEMA = 1
# Powers of log(power limit / rated power); its curve has one minimum and an end.
CAP_POWERS = (1, 2, 3)


@dataclass(frozen=True, slots=True)
class Device:
    """One device's published peaks: operations/s at a precision, bytes/s, rated watts.

    `watts` is the limit it runs at. `is_matrix`: the peak is that of matrix units.
    """

    name: str
    flops_per_s: float
    bytes_per_s: float
    rated_watts: float
    watts: float
    is_matrix: bool = False


def device_of(host: Host, precision: str, watts: float | None = None) -> Device:
    """Return a card as the law sees it; TF32 runs at half the rate of 16 bits.

    Raises InputError where a figure is not published.
    """
    if host.tdp_w is None:
        raise InputError(f"{host.name}: no rated power is known; expected --watts")
    if precision == "fp32":
        rate, is_matrix = host.fp32_flops_per_s, False
    else:
        tensor = host.matrix_fp32acc_flops_per_s
        rate, is_matrix = (tensor or host.fp16_flops_per_s), tensor is not None
        if precision == "tf32" and rate is not None:
            rate = rate / 2
    if not rate:
        raise InputError(
            f"{host.name}: no rate of {precision} is known; expected another --precision, or"
            " --tflops"
        )
    return Device(host.name, rate, host.bytes_per_s, host.tdp_w, watts or host.tdp_w, is_matrix)


def processor_of(host: Host, n_threads: int, watts: float) -> Device:
    """Return some cores of a processor as one device, with their share of its bandwidth.

    `watts` is stated, not metered. Raises InputError where the processor's rate is not known.
    """
    if not host.fp32_flops_per_s or not host.n_cores:
        raise InputError(f"{host.name}: no FP32 rate is known; expected --tflops")
    share = n_threads / host.n_cores
    return Device(host.name, host.fp32_flops_per_s * share, host.bytes_per_s * share, watts, watts)


@dataclass(frozen=True, slots=True)
class Law:
    """Effects of one kind of device and quantity, and the held-out error as log quantiles.

    `intervals` maps evidence, "same host, several" where several devices err otherwise than one,
    to level to (low, high); `exponents` maps alpha, beta and gamma to
    (value, standard error).
    """

    effects: Mapping[str, float]
    intervals: Mapping[str, Mapping[str, tuple[float, float]]]
    exponents: Mapping[str, tuple[float, float]]

    def log_cost(self, found: Mapping[str, float]) -> float:
        """Return the logarithm of the cost, of device-seconds or of joules by rated watts."""
        return sum(self.effects.get(name, 0.0) * value for name, value in found.items())


def features(shape: TrainShape, step: Step, device: Device, efficiency: float) -> dict[str, float]:
    """Return the values by which a law's effects are multiplied, those of the chip included.

    Of one micro-batch: the law is of a pass over the model, and a step is `step.n_micro` of them.
    """
    compute = math.log(flops(shape, step) / step.n_micro / device.flops_per_s)
    memory = math.log(traffic_bytes(shape, step) / step.n_micro / device.bytes_per_s)
    limit = math.log(device.watts / device.rated_watts)
    found = {
        "level": 1.0,
        "compute": compute - memory,
        "size": memory,
        "efficiency": math.log(efficiency),
        "matrix": float(device.is_matrix),
        **{f"limit{k}": limit**k for k in CAP_POWERS},
    }
    own = {f"{name}|{device.name}": found[name] for name in OWN}
    return found | own


OWN = ("level", *(f"limit{k}" for k in CAP_POWERS))


@dataclass(frozen=True, slots=True)
class Laws:
    """All fitted laws, and what is known of links between processes of one machine.

    `measured` has "chip/precision" of the boards. `link` is (bytes/s, seconds a message) of two
    processes; `machine` names the processor that the sweep ran on.
    """

    digest: str
    laws: Mapping[tuple[Kind, Quantity], Law]
    measured: frozenset[str]
    link: tuple[float, float]
    machine: str


def from_json(data: Mapping[str, Any]) -> Laws:
    """Return laws from their released form; raises InputError for another schema."""
    if data.get("schema") != SCHEMA:
        raise InputError(
            f"training laws of schema {data.get('schema')!r}; expected {SCHEMA}: run"
            " tokcast energy train-fit"
        )
    laws = {
        (kind, quantity): Law(
            body["effects"],
            {
                evidence: {level: (low, high) for level, (low, high) in levels.items()}
                for evidence, levels in body["intervals"].items()
            },
            {name: (value, error) for name, (value, error) in body["exponents"].items()},
        )
        for kind, quantities in data["laws"].items()
        for quantity, body in quantities.items()
    }
    bytes_per_s, latency_s = data["link"]
    measured = frozenset(data["measured"])
    return Laws(data["digest"], laws, measured, (bytes_per_s, latency_s), data["machine"])
