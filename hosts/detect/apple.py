"""What a Mac has: Apple's chips, or Intel's with AMD graphics."""

import json
import re
from collections.abc import Mapping
from typing import Any

from tokcast.hosts.detect.cpu import Cpu
from tokcast.hosts.detect.facts import Machine
from tokcast.hosts.detect.memory import from_macos
from tokcast.hosts.detect.naming import known, size
from tokcast.hosts.detect.probe import MIB, Found, Probe, number


def macos(probe: Probe) -> Machine:
    """Return what is known of a Mac."""
    facts = _sysctl(probe)
    profile = _profile(probe)
    memory_bytes = number(facts.get("hw.memsize"))
    cpu = Cpu(
        name=facts.get("machdep.cpu.brand_string", "processor"),
        n_cores=_integer(facts.get("hw.physicalcpu")) or 0,
        n_threads=_integer(facts.get("hw.logicalcpu")) or 0,
        clock_hz=number(facts.get("hw.cpufrequency_max")),
        family=_integer(facts.get("machdep.cpu.family")),
        model=_integer(facts.get("machdep.cpu.model")),
    )
    found = Found()
    for row in _rows(profile, "SPDisplaysDataType"):
        found += _graphics(row, memory_bytes, probe)
    modules = from_macos(_module_rows(profile))
    return Machine(found, cpu, modules, memory_bytes, "see About This Mac, Memory, and ")


def _graphics(row: Mapping[str, Any], memory_bytes: float | None, probe: Probe) -> Found:
    model = str(row.get("sppci_model") or row.get("_name") or "graphics")
    if not model.startswith("Apple"):
        return known(model, _vram(row))
    cores = number(row.get("sppci_cores"))
    name = f"{model} {cores:.0f}-core GPU" if cores else model
    found = known(name, memory_bytes, kinds=frozenset({"apple_soc"}))
    return Found(found.hosts, found.notes + _wired_limit(probe))


def _wired_limit(probe: Probe) -> tuple[str, ...]:
    limit = number(probe.run(["sysctl", "-n", "iogpu.wired_limit_mb"]))
    return (f"the GPU may use {size(limit * MIB)} (iogpu.wired_limit_mb)",) if limit else ()


def _vram(row: Mapping[str, Any]) -> float | None:
    match = re.match(r"(\d+) (MB|GB)", str(row.get("spdisplays_vram", "")))
    return float(match[1]) * MIB * (1024 if match[2] == "GB" else 1) if match else None


def _sysctl(probe: Probe) -> dict[str, str]:
    text = probe.run(["sysctl", "hw", "machdep.cpu"]) or ""
    return dict(re.findall(r"^([\w.]+): (.*)$", text, re.M))


def _profile(probe: Probe) -> dict[str, Any]:
    text = probe.run(["system_profiler", "-json", "SPDisplaysDataType", "SPMemoryDataType"])
    try:
        answer = json.loads(text or "{}")
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _module_rows(profile: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    groups = _rows(profile, "SPMemoryDataType")
    return [item for group in groups for item in _rows(group, "_items")]


def _rows(table: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    rows = table.get(key)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _integer(text: str | None) -> int | None:
    value = number(text)
    return None if value is None else int(value)
