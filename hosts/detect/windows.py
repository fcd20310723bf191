"""What Windows says of a machine, asked from Windows or from inside WSL."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tokcast.hosts.detect.cpu import Cpu
from tokcast.hosts.detect.facts import Machine
from tokcast.hosts.detect.memory import Module, from_windows
from tokcast.hosts.detect.naming import known
from tokcast.hosts.detect.nvidia import Nvml, nvidia
from tokcast.hosts.detect.probe import Found, Probe, number

Report = Mapping[str, Any]

# One process for everything: starting PowerShell takes longer than its answers. The registry
# key holds each display adapter's memory in 64 bits; AdapterRAM stops at 4 GiB.
_SCRIPT = r"""
$ErrorActionPreference = 'SilentlyContinue'
$class = 'HKLM:\SYSTEM\CurrentControlSet\Control\Class\{4d36e968-e325-11ce-bfc1-08002be10318}\0*'
@{
  cpu = @(Get-CimInstance Win32_Processor |
    Select-Object Name, Caption, NumberOfCores, NumberOfLogicalProcessors, MaxClockSpeed)
  gpu = @(Get-CimInstance Win32_VideoController | Select-Object Name)
  vram = @(Get-ItemProperty $class |
    Select-Object DriverDesc, 'HardwareInformation.qwMemorySize')
  memory = @(Get-CimInstance Win32_PhysicalMemory | Select-Object Capacity, Speed,
    ConfiguredClockSpeed, SMBIOSMemoryType, DataWidth, DeviceLocator, BankLabel)
  system = @(Get-CimInstance Win32_ComputerSystem |
    Select-Object Manufacturer, Model, TotalPhysicalMemory)
} | ConvertTo-Json -Depth 4 -Compress
"""


def windows(probe: Probe, nvml: Nvml) -> Machine:
    """Return what is known of a Windows machine."""
    answer = report(probe, "powershell")
    system = _first(answer, "system")
    memory_bytes = number(system.get("TotalPhysicalMemory"))
    found = nvidia(probe, nvml, memory_bytes)
    found += graphics(answer, has_nvidia=bool(found.hosts))
    notes = () if answer else ("PowerShell gives no answer: the processor is not known",)
    is_virtual = "virtual" in str(system.get("Model", "")).casefold()
    cpu = _cpu(answer, is_virtual)
    return Machine(found, cpu, modules(answer), memory_bytes, "", notes)


def report(probe: Probe, shell: str) -> Report:
    """Return the answers of Windows' management classes, empty where there are none."""
    text = probe.run([shell, "-NoProfile", "-NonInteractive", "-Command", _SCRIPT])
    try:
        answer = json.loads(text or "{}")
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def graphics(answer: Report, has_nvidia: bool) -> Found:
    """Return the display adapters other than those NVIDIA's own tools have listed."""
    sizes = {
        row.get("DriverDesc"): number(row.get("HardwareInformation.qwMemorySize"))
        for row in _rows(answer, "vram")
    }
    found, unknown = Found(), Found()
    for row in _rows(answer, "gpu"):
        name = str(row.get("Name", ""))
        if (has_nvidia and "NVIDIA" in name) or not _is_hardware(name):
            continue
        one = known(name, sizes.get(name))
        if one.hosts:
            found += one
        else:
            unknown += one
    # Beside a known card, an unknown one is a processor's own display output.
    return found if found.hosts or has_nvidia else unknown


def modules(answer: Report) -> tuple[Module, ...]:
    """Return the machine's memory modules."""
    return from_windows(_rows(answer, "memory"))


def _cpu(answer: Report, is_virtual: bool) -> Cpu:
    rows = _rows(answer, "cpu")
    first = rows[0] if rows else {}
    clock_mhz = number(first.get("MaxClockSpeed"))
    # "AMD64 Family 25 Model 33 Stepping 0"
    cpuid = re.search(r"Family (\d+) Model (\d+)", str(first.get("Caption", "")))
    return Cpu(
        name=str(first.get("Name", "processor")).strip(),
        n_cores=int(sum(number(row.get("NumberOfCores")) or 0 for row in rows)),
        n_threads=int(sum(number(row.get("NumberOfLogicalProcessors")) or 0 for row in rows)),
        n_sockets=max(1, len(rows)),
        clock_hz=clock_mhz * 1e6 if clock_mhz else None,
        family=int(cpuid[1]) if cpuid else None,
        model=int(cpuid[2]) if cpuid else None,
        is_virtual=is_virtual,
    )


def _is_hardware(name: str) -> bool:
    return not any(word in name for word in ("Basic", "Remote", "Virtual", "Parsec", "Hyper-V"))


def _rows(answer: Report, key: str) -> Sequence[Mapping[str, Any]]:
    """Return a key's rows; PowerShell gives a single row without its list."""
    rows = answer.get(key)
    rows = [rows] if isinstance(rows, dict) else rows
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _first(answer: Report, key: str) -> Mapping[str, Any]:
    rows = _rows(answer, key)
    return rows[0] if rows else {}
