"""What a Linux machine has, natively or under Windows (WSL)."""

import re

from tokcast.hosts.detect import windows
from tokcast.hosts.detect.arc import arc
from tokcast.hosts.detect.cpuinfo import linux_cpu
from tokcast.hosts.detect.facts import Machine
from tokcast.hosts.detect.memory import modules
from tokcast.hosts.detect.naming import known, size
from tokcast.hosts.detect.nvidia import Nvml, nvidia
from tokcast.hosts.detect.pci import AMD, INTEL, NVIDIA, Device, graphics, label_name
from tokcast.hosts.detect.probe import Found, Probe
from tokcast.hosts.detect.radeon import radeon

_HOW_TO_READ_MEMORY = "see `sudo dmidecode -t memory` (channels x 8 bytes x MT/s) and "


def linux(probe: Probe, nvml: Nvml) -> Machine:
    """Return what is known of a Linux machine."""
    memory_bytes, memory_notes = _memory(probe)
    found = nvidia(probe, nvml, memory_bytes) + _board(probe, memory_bytes)
    cpu = linux_cpu(probe)
    if cpu.is_wsl:
        # The Windows outside knows the modules and the cards that WSL does not show.
        report = windows.report(probe, "powershell.exe")
        found += windows.graphics(report, has_nvidia=bool(found.hosts))
        share = f"WSL may use {size(memory_bytes or 0)} of the machine's memory (see .wslconfig)"
        notes = (*memory_notes, share)
        return Machine(found, cpu, windows.modules(report), memory_bytes, "", notes)
    found += _devices(probe, cpu.name, has_nvidia=bool(found.hosts))
    how = _HOW_TO_READ_MEMORY
    return Machine(found, cpu, modules(probe), memory_bytes, how, memory_notes)


def _memory(probe: Probe) -> tuple[float | None, tuple[str, ...]]:
    match = re.search(r"^MemTotal:\s+(\d+) kB", probe.read_text("/proc/meminfo") or "", re.M)
    total = float(match[1]) * 1024 if match else None
    limit = probe.number("/sys/fs/cgroup/memory.max")
    if limit is not None and (total is None or limit < total):
        return limit, (f"this container may use {size(limit)} of memory",)
    return total, ()


def _devices(probe: Probe, cpu_name: str, has_nvidia: bool) -> Found:
    """Return AMD and Intel graphics, and NVIDIA's where its own tools gave no answer."""
    found, unknown = Found(), Found()
    for device in graphics(probe):
        one = _device(probe, device, cpu_name, has_nvidia)
        if one.hosts:
            found += one
        else:
            unknown += one
    # Beside a known card, an unknown one is a processor's own display output.
    return found if found.hosts or has_nvidia else unknown


def _device(probe: Probe, device: Device, cpu_name: str, has_nvidia: bool) -> Found:
    if device.vendor == AMD:
        return radeon(probe, device, cpu_name)
    if device.vendor == INTEL:
        return arc(probe, device)
    if device.vendor == NVIDIA and not has_nvidia:
        name = label_name(device) or f"NVIDIA device {device.device}"
        note = "nvidia-smi gives no answer: NVIDIA's driver is missing or not loaded"
        return known(name) + Found((), (note,))
    return Found()


def _board(probe: Probe, memory_bytes: float | None) -> Found:
    """Return the chip of a board with a GPU that no driver lists: NVIDIA's Jetson."""
    model = probe.line("/proc/device-tree/model")
    if "Jetson" not in model:
        return Found()
    name = re.sub(r"Developer Kit|Engineering Reference", "", model)
    return known(name, memory_bytes, kinds=frozenset({"apu"}))
