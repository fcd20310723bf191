"""From the flags of `energy train` to the question that a forecast answers."""

import os
from dataclasses import dataclass, replace

from tokcast.cli.energy_recipe import Request, shape_of, with_recipe
from tokcast.cli.options import host_of, number, one_count
from tokcast.cli.predict_energy import EnergyAsked, asked_of
from tokcast.hosts.links import link_bytes_per_s
from tokcast.hosts.quantity import parse_bandwidth
from tokcast.hosts.registry import names
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.training.forecast import TrainQuestion
from tokcast.predictor.training.law import Device, Laws, device_of, processor_of
from tokcast.predictor.training.layout import MAX_DEVICES, Layout, Link, parse
from tokcast.predictor.training.shape import TrainShape
from tokcast.predictor.training.work import BYTES_OF, Step

# What a message between cards takes before its bytes do, and a link where nothing states one.
MESSAGE_SECONDS = 10e-6
# Watts of a core at work where the processor's rated power is not known: 4th-generation EPYC and
# Xeon parts are rated at 3 to 8 a core.
WATTS_A_CORE = 5.0


@dataclass(frozen=True, slots=True)
class Asked:
    """The question, the host it is for, the steps of the whole run, and what was assumed."""

    question: TrainQuestion
    host: Host
    n_steps: int
    notes: tuple[str, ...]
    costs: EnergyAsked


def asked(request: Request, laws: Laws) -> Asked:
    """Return what a request means; raises InputError, one line, for what can't be."""
    path, request = with_recipe(request)
    shape, notes = shape_of(path)
    host, host_notes = host_of(request.host, request.bandwidth, request.tflops, request.memory)
    # "4x A100" says how many as well.
    n_devices = _devices(request, host)
    layout = parse(request.strategy or ("none" if n_devices == 1 else "fsdp"), n_devices)
    step = _step(request, host, shape, layout)
    device, power_notes = _device(request, host, step.precision)
    question = TrainQuestion(
        shape=shape,
        step=step,
        device=device,
        kind="processor" if host.kind == "cpu" else "board",
        layout=layout,
        link=_link(request, host, laws, layout),
        is_here=f"{host.name} ({host.architecture})" == laws.machine,
    )
    if request.speedup is not None:
        question = replace(question, speedup=_speedup(request.speedup, n_devices))
    n_steps = one_count(request.steps or "1000", "--steps")
    costs = asked_of(True, request.price, request.grid, None) or EnergyAsked()
    return Asked(question, host, n_steps, (*notes, *host_notes, *power_notes), costs)


def _devices(request: Request, host: Host) -> int:
    if request.devices is None:
        return host.n_devices
    n_devices = one_count(request.devices, "--devices")
    if n_devices > MAX_DEVICES:
        raise InputError(f"--devices {n_devices}: expected a number from 1 to {MAX_DEVICES}")
    if host.n_devices > 1 and n_devices != host.n_devices:
        raise InputError(
            f"--devices {n_devices} with {host.n_devices} in --host: expected one of the two"
        )
    return n_devices


def _step(request: Request, host: Host, shape: TrainShape, layout: Layout) -> Step:
    n_batch = one_count(request.batch or "8", "--batch")
    n_micro = one_count(request.micro or "1", "--micro")
    length = one_count(request.length or "512", "--length")
    if shape.n_positions and length > shape.n_positions:
        raise InputError(
            f"--length {length}: the model has {shape.n_positions} positions; expected no more"
        )
    parts = n_micro * layout.dp * layout.fsdp
    if n_batch % parts:
        raise InputError(
            f"--batch {n_batch}: {parts} micro-batches of data-parallel devices share it;"
            f" expected a multiple of {parts}"
        )
    if layout.pp > shape.n_layers or layout.tp > shape.n_heads:
        raise InputError(
            f"--strategy {layout}: the model has {shape.n_layers} blocks of {shape.n_heads} heads;"
            " expected no more pipeline stages than blocks nor tensor parts than heads"
        )
    precision = request.precision or ("fp32" if host.kind == "cpu" else "bf16")
    if precision not in BYTES_OF:
        raise InputError(f"--precision {precision!r}: expected one of {', '.join(BYTES_OF)}")
    return Step(n_batch, length, n_micro, precision, bool(request.recompute))


def _device(request: Request, host: Host, precision: str) -> tuple[Device, tuple[str, ...]]:
    if host.kind == "cpu":
        return _processor(request, host, precision)
    if host.kind != "discrete_gpu":
        raise InputError(
            f"{host.name}: no training on such a chip was measured; expected a card or a processor"
        )
    if request.watts is not None:
        host = replace(host, tdp_w=number(request.watts, "--watts", "watts of a device"))
    limit = None
    if request.power_limit is not None:
        limit = number(request.power_limit, "--power-limit", "watts of a device")
        rated = host.tdp_w or limit
        if not 0.3 * rated <= limit <= rated:
            raise InputError(
                f"--power-limit {limit:g}: {host.name} is rated at {rated:g} W; expected"
                f" {0.3 * rated:g} to {rated:g}"
            )
    return device_of(host, precision, limit), _untrained(precision)


def _untrained(precision: str) -> tuple[str, ...]:
    if precision in ("fp32", "tf32"):
        return ()
    return (
        f"no published run trained in {precision}: taken to reach the share of its peak that TF32"
        " does",
    )


def _processor(request: Request, host: Host, precision: str) -> tuple[Device, tuple[str, ...]]:
    if precision != "fp32":
        raise InputError(f"--precision {precision}: a processor's runs are in fp32; expected that")
    if request.power_limit is not None:
        raise InputError("--power-limit: no limits of processors were measured; expected none")
    most = host.n_cores or os.cpu_count() or 1
    threads = one_count(request.threads or "1", "-t")
    if threads > most:
        raise InputError(f"-t {threads}: {host.name} has {most} cores; expected no more")
    if request.watts is not None:
        watts, why = number(request.watts, "--watts", "watts of a device"), "as given"
    elif host.tdp_w:
        watts, why = host.tdp_w * threads / most, f"{threads} of {most} cores of its rated power"
    else:
        watts, why = WATTS_A_CORE * threads, f"{WATTS_A_CORE:g} W a core, its rated power unknown"
    note = f"power is stated, not metered: {watts:.3g} W a device of {threads} thread(s), {why}"
    return processor_of(host, threads, watts), (note,)


def _speedup(text: str, n_devices: int) -> float:
    speedup = number(text, "--speedup", "speedup over one device")
    if speedup > n_devices:
        raise InputError(
            f"--speedup {speedup:g}: more than {n_devices} device(s) can; expected at most that"
        )
    return speedup


def _link(request: Request, host: Host, laws: Laws, layout: Layout) -> Link:
    if request.link is not None:
        return Link(parse_bandwidth(request.link), MESSAGE_SECONDS, overlaps=host.kind != "cpu")
    if host.kind == "cpu":
        return Link(*laws.link, overlaps=False)
    if layout.n_devices == 1:
        return Link(1.0, 0.0)
    if host.name not in names():
        raise InputError(f"{host.name}: no link between cards is known; expected --link GB/s")
    return Link(link_bytes_per_s(host.name), MESSAGE_SECONDS)
