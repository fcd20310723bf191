"""The processor as a host: from the registry, else estimated and said so."""

import re
from dataclasses import dataclass, replace
from typing import Any

from tokcast.hosts import registry
from tokcast.hosts.detect.cores import core_design
from tokcast.hosts.detect.memory import Memory, Module, combined
from tokcast.hosts.detect.platforms import Platform, platform_of
from tokcast.hosts.detect.probe import Found
from tokcast.hosts.match import candidates
from tokcast.predictor.host import Host

_FIRMWARE = "memory modules as the firmware describes them"


@dataclass(frozen=True, slots=True)
class Cpu:
    """What the operating system says of the processor; None where it does not."""

    name: str
    n_cores: int
    n_threads: int
    n_sockets: int = 1
    clock_hz: float | None = None
    family: int | None = None
    model: int | None = None
    is_virtual: bool = False
    is_wsl: bool = False


def processor(
    cpu: Cpu,
    modules: tuple[Module, ...],
    machine_bytes: float | None,
    how_to_read_memory: str,
    unified: Host | None = None,
) -> Found:
    """Return the processor as a host, with the bandwidth of the memory that is really there.

    Without readable modules the bandwidth is the platform's maximum, and the note says how to
    do better (`how_to_read_memory`). `unified` is an accelerator that shares its memory.
    """
    platform = platform_of(cpu.name, cpu.family, cpu.model)
    host, notes = _by_name(cpu, platform, unified)
    n_cores = cpu.n_cores // cpu.n_sockets or host.n_cores
    host = replace(host, memory_bytes=machine_bytes, n_cores=n_cores)
    if cpu.n_sockets > 1:
        notes += (f"{cpu.n_sockets} sockets: the figures are those of one",)
    if cpu.is_virtual:
        return _in_virtual_machine(host, cpu, platform, notes)
    memory = memory_of(host, modules, cpu)
    if memory is not None:
        return Found((with_memory(host, memory),), (*notes, f"memory: {memory.description}"))
    if unified is not None:
        host = replace(host, bytes_per_s=unified.bytes_per_s, memory_type=unified.memory_type)
        return Found((host,), notes)
    note = (
        "memory speed not readable: the CPU's bandwidth is its platform's maximum, "
        f"{_gb_per_s(host.bytes_per_s)}; {how_to_read_memory}give --bandwidth"
    )
    return Found((host,), (*notes, note))


def memory_of(host: Host, modules: tuple[Module, ...], cpu: Cpu) -> Memory | None:
    """Return what the modules give on this chip's bus, None where they do not tell."""
    row = registry.facts(host.name) if host.name in registry.names() else {}
    platform = platform_of(cpu.name, cpu.family, cpu.model)
    bus_bits = int(row.get("bus_width_bits") or platform.channels * 64)
    return combined(modules, cpu.n_sockets, bus_bits)


def with_memory(host: Host, memory: Memory) -> Host:
    """Return the host with the bandwidth of the modules found."""
    source = {**host.source, "bytes_per_s": _FIRMWARE}
    kind = memory.type or host.memory_type
    return replace(host, bytes_per_s=memory.bytes_per_s, memory_type=kind, source=source)


def _by_name(cpu: Cpu, platform: Platform, unified: Host | None) -> tuple[Host, tuple[str, ...]]:
    for text in (f"cpu {cpu.name}", cpu.name):
        fitting = [host for host in candidates(text) if host.kind == "cpu"]
        if len(fitting) == 1:
            return fitting[0], ()
    if unified is not None and unified.kind == "apple_soc":
        return _apple(cpu, unified), ()
    rates: dict[str, Any] = {}
    if cpu.clock_hz:
        n_cores = cpu.n_cores // cpu.n_sockets
        flops_per_s = n_cores * cpu.clock_hz * platform.flops_per_cycle
        rates = {"fp32_flops_per_s": flops_per_s, "clock_hz": cpu.clock_hz}
    name = _tidy(cpu.name)
    typical = f"typical of {platform.description}"
    host = Host(
        name=name,
        vendor=next((maker for maker in ("AMD", "Intel") if maker in name), ""),
        kind="cpu",
        architecture=core_design(name, cpu.family, cpu.model),
        bytes_per_s=platform.bytes_per_s,
        **rates,
        memory_type=platform.memory_type,
        source={
            "bytes_per_s": typical,
            "fp32_flops_per_s": f"cores x clock x {platform.flops_per_cycle}, {typical}",
            "clock_hz": "the operating system",
        },
    )
    shared = f", its memory is that of {unified.name}" if unified is not None else ""
    return host, (f"{name} is not in the registry: its figures are {typical}{shared}",)


def _tidy(name: str) -> str:
    """Return a processor's name without marks, clock and filler: `AMD Ryzen 5 2600`."""
    filler = (
        r"\((?:R|TM)\)|\bCPU\b|@.*|\b\w+-Core\b|\bProcessor\b|\bw/.*|\b\d+th Gen\b|with Radeon.*"
    )
    plain = re.sub(filler, " ", name)
    return " ".join(plain.split()) or "processor"


def _apple(cpu: Cpu, gpu: Host) -> Host:
    """Return the processor part of an Apple chip that the registry has as a GPU only.

    Its FP32 rate a core is the lowest of its generation's listed processors.
    """
    listed = [host for host in registry.chips() if host.kind == "cpu" and host.fp32_flops_per_s]
    like = [host for host in listed if host.architecture == gpu.architecture]
    rates = [(host.fp32_flops_per_s or 0) / (host.n_cores or 1) for host in like]
    return Host(
        name=f"{cpu.name} CPU",
        vendor="Apple",
        kind="cpu",
        architecture=gpu.architecture,
        bytes_per_s=gpu.bytes_per_s,
        fp32_flops_per_s=min(rates) * cpu.n_cores if rates else None,
        source={"bytes_per_s": gpu.source.get("bytes_per_s", "")},
        notes=("the processor's clusters cannot draw all of the chip's bandwidth",),
    )


def _in_virtual_machine(host: Host, cpu: Cpu, platform: Platform, notes: tuple[str, ...]) -> Found:
    """Scale a chip to the share of it that a virtual machine has.

    A core keeps about 40 cache lines of 64 bytes in flight and waits about 100 ns for each:
    some 25 GB/s, whatever the chip can do (Little's law); one machine that reports Zen 4
    was measured at 36 GB/s with one thread and 70 GB/s with two.
    """
    published = host.bytes_per_s
    bytes_per_s = min(published, cpu.n_threads * platform.thread_bytes_per_s)
    fp32 = host.fp32_flops_per_s
    chip_cores = registry.chip(host.name).n_cores if host.name in registry.names() else None
    if fp32 and chip_cores:
        fp32 *= min(1.0, cpu.n_cores / chip_cores)
    rule = (
        f"{cpu.n_threads} virtual CPUs x {_gb_per_s(platform.thread_bytes_per_s)} (rule of thumb)"
    )
    scaled = replace(
        host,
        bytes_per_s=bytes_per_s,
        fp32_flops_per_s=fp32,
        fp16_flops_per_s=None,
        int8_ops_per_s=None,
        confidence="low",
        source={**host.source, "bytes_per_s": rule},
    )
    note = (
        f"a virtual machine: its bandwidth is estimated as {_gb_per_s(bytes_per_s)} "
        f"from {rule}, the whole chip has about {_gb_per_s(published)}; "
        "measure it and give --bandwidth"
    )
    return Found((scaled,), (*notes, note))


def _gb_per_s(bytes_per_s: float) -> str:
    return f"{bytes_per_s / 1e9:.0f} GB/s"
