"""AMD graphics on Linux: cards, and APUs that share the machine's memory."""

import re
from dataclasses import replace

from tokcast.hosts.detect.naming import known, size
from tokcast.hosts.detect.pci import AMD, Device, label_name, marketing_name
from tokcast.hosts.detect.probe import Found, Probe

_IDS_FILE = "/usr/share/libdrm/amdgpu.ids"


def radeon(probe: Probe, device: Device, cpu_name: str) -> Found:
    """Return the chip of one AMD device, told by PCI revision, or by ROCm, and by its memory.

    The name of an APU's CPU (`... AI MAX+ 395 w/ Radeon 8060S`) decides between APUs with the
    same graphics. An APU's memory is what its GPU can address: carve-out plus GTT.
    """
    vram = probe.number(f"{device.folder}/mem_info_vram_total")
    gtt = probe.number(f"{device.folder}/mem_info_gtt_total")
    name = marketing_name(device) or _name(probe, device) or "AMD graphics device " + device.device
    apu = _apu(name, cpu_name)
    if not apu.hosts:
        return known(name, vram, kinds=frozenset({"discrete_gpu"}))
    if vram is None or gtt is None:
        return apu
    note = (
        f"the GPU can use {size(vram + gtt)}: {size(vram)} set aside by the firmware and "
        f"{size(gtt)} of shared memory (GTT); both limits can be raised"
    )
    hosts = tuple(replace(host, memory_bytes=vram + gtt) for host in apu.hosts)
    return Found(hosts, (*apu.notes, note))


def _apu(name: str, cpu_name: str) -> Found:
    apu = frozenset({"apu"})
    by_graphics = known(name, kinds=apu)
    if not by_graphics.hosts:
        return Found()
    by_cpu = known(cpu_name, kinds=apu) if cpu_name else Found()
    return by_cpu if by_cpu.hosts else by_graphics


def _name(probe: Probe, device: Device) -> str | None:
    return _from_driver_list(probe, device) or _from_rocm(probe, device) or label_name(device)


def _from_driver_list(probe: Probe, device: Device) -> str | None:
    """Return the name in the list that AMD's user-space driver ships, newer than ours perhaps."""
    for line in (probe.read_text(_IDS_FILE) or "").splitlines():
        fields = [field.strip() for field in line.split(",", 2)]
        if [field.lower() for field in fields[:2]] == [device.device, device.revision]:
            return fields[2] if len(fields) == 3 else None
    return None


def _from_rocm(probe: Probe, device: Device) -> str | None:
    """Return ROCm's marketing name of the agent with this device's id."""
    agents = re.split(r"\nAgent \d+", probe.run(["rocminfo"]) or "")
    for agent in agents:
        chip_id = re.search(r"Chip ID:\s+\d+\(0x([0-9a-f]+)\)", agent)
        name = re.search(r"Marketing Name:[ \t]+(\S.*?)\s*\n", agent)
        if chip_id and name and chip_id[1] == device.device and device.vendor == AMD:
            return name[1]
    return None
