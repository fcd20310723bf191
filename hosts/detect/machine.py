"""Detection of this machine, on any system that tokcast runs on."""

import platform
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tokcast.hosts.detect.apple import macos
from tokcast.hosts.detect.cpu import memory_of, processor, with_memory
from tokcast.hosts.detect.facts import Machine
from tokcast.hosts.detect.linux import linux
from tokcast.hosts.detect.nvidia import Nvml, nvml_cards
from tokcast.hosts.detect.probe import Found, Probe, ReadText, Run, read_file, run_tool
from tokcast.hosts.detect.windows import windows
from tokcast.predictor.host import Host


@dataclass(frozen=True, slots=True)
class Detection:
    """The chips found, the fastest accelerator first and the processor last.

    `memory_bytes` is the machine's main memory; `notes` say what could not be read, what was
    assumed, and how to supply it.
    """

    hosts: tuple[Host, ...]
    memory_bytes: float | None
    notes: tuple[str, ...]


def detect(
    run: Run = run_tool,
    read_text: ReadText = read_file,
    system: str | None = None,
    nvml: Nvml = nvml_cards,
) -> Detection:
    """Return what this machine has.

    `run` starts a tool and returns its output, `read_text` reads a file; each returns None where
    that fails, and nothing is raised. `system` is what `platform.system()` returns. Only tools
    that are installed run, each for two seconds at most (PowerShell and system_profiler: eight).
    """
    probe = Probe(run, read_text)
    machine = _machine(probe, system or platform.system(), nvml)
    accelerators = sorted(
        _merged(_with_real_memory(machine)), key=lambda host: host.bytes_per_s, reverse=True
    )
    unified = next((host for host in accelerators if host.kind != "discrete_gpu"), None)
    cpu = _processor(machine, unified)
    notes = (*machine.accelerators.notes, *cpu.notes, *machine.notes)
    return Detection((*accelerators, *cpu.hosts), machine.memory_bytes, tuple(dict.fromkeys(notes)))


def _machine(probe: Probe, system: str, nvml: Nvml) -> Machine:
    if system == "Darwin":
        return macos(probe)
    if system == "Windows":
        return windows(probe, nvml)
    return linux(probe, nvml)


def _with_real_memory(machine: Machine) -> Iterable[Host]:
    """Give APUs the bandwidth of the modules found: their row has the fastest allowed."""
    for host in machine.accelerators.hosts:
        memory = memory_of(host, machine.modules, machine.cpu) if host.kind == "apu" else None
        yield host if memory is None else with_memory(host, memory)


def _merged(hosts: Iterable[Host]) -> list[Host]:
    """Return equal chips as one host with `n_devices`."""
    merged: dict[tuple[str, float | None], Host] = {}
    for host in hosts:
        key = (host.name, host.memory_bytes)
        if key in merged:
            n_devices = merged[key].n_devices + host.n_devices
            host = replace(host, n_devices=n_devices)
        merged[key] = host
    return list(merged.values())


def _processor(machine: Machine, unified: Host | None) -> Found:
    if machine.cpu.n_threads == 0:
        return Found()
    return processor(
        machine.cpu, machine.modules, machine.memory_bytes, machine.how_to_read_memory, unified
    )
