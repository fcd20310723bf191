"""The processor as a Linux kernel describes it."""

import re
from collections.abc import Sequence

from tokcast.hosts.detect.cpu import Cpu
from tokcast.hosts.detect.probe import Probe, number
from tokcast.hosts.match import candidates

_VIRTUAL_VENDORS = re.compile(
    r"qemu|amazon ec2|google|vmware|xen|openstack|innotek|parallels|bochs|digitalocean"
    r"|alibaba|hetzner",
    re.IGNORECASE,
)
# Arm's own cores by part number (Main ID Register); cpuinfo has no name for them.
_ARM_PARTS = {
    "0xd03": "Cortex-A53",
    "0xd05": "Cortex-A55",
    "0xd07": "Cortex-A57",
    "0xd08": "Cortex-A72",
    "0xd0b": "Cortex-A76",
    "0xd0c": "Neoverse-N1",
    "0xd40": "Neoverse-V1",
    "0xd41": "Cortex-A78",
    "0xd42": "Cortex-A78AE",
    "0xd49": "Neoverse-N2",
    "0xd4f": "Neoverse-V2",
    "0xd80": "Cortex-A520",
    "0xd81": "Cortex-A720",
    "0xd85": "Cortex-X925",
    "0xd87": "Cortex-A725",
}


def linux_cpu(probe: Probe) -> Cpu:
    """Return the processor in `/proc/cpuinfo`, named by the device tree where that has no name."""
    blocks = _blocks(probe.read_text("/proc/cpuinfo") or "")
    first = blocks[0] if blocks else {}
    cores = {(b.get("physical id"), b.get("core id", str(i))) for i, b in enumerate(blocks)}
    is_wsl = "microsoft" in probe.line("/proc/version").casefold()
    return Cpu(
        name=_name(probe, blocks),
        n_cores=len(cores),
        n_threads=len(blocks),
        n_sockets=max(1, len({block.get("physical id") for block in blocks})),
        clock_hz=_clock_hz(probe, first),
        family=_integer(first.get("cpu family")),
        model=_integer(first.get("model")),
        is_virtual=not is_wsl and _is_virtual(probe, first),
        is_wsl=is_wsl,
    )


def _blocks(text: str) -> list[dict[str, str]]:
    blocks = []
    for block in text.split("\n\n"):
        pairs = (line.partition(":") for line in block.splitlines())
        fields = {key.strip(): value.strip() for key, _, value in pairs}
        if "processor" in fields:
            blocks.append(fields)
    return blocks


def _name(probe: Probe, blocks: Sequence[dict[str, str]]) -> str:
    for block in blocks[:1]:
        if "model name" in block:
            return block["model name"]
    board = re.sub(r" Rev [\d.]+$", "", probe.line("/proc/device-tree/model"))
    compatible = probe.line("/proc/device-tree/compatible").split("\0")[-1]
    for text in (board, compatible.replace(",", " ")):
        if any(host.kind == "cpu" for host in candidates(text)):
            return text
    parts = dict.fromkeys(_ARM_PARTS.get(block.get("CPU part", ""), "") for block in blocks)
    return " and ".join(sorted(filter(None, parts), reverse=True)) or board or "processor"


def _clock_hz(probe: Probe, first: dict[str, str]) -> float | None:
    highest_khz = probe.number("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq")
    if highest_khz is not None:
        return highest_khz * 1e3
    mhz = number(first.get("cpu MHz"))
    return mhz * 1e6 if mhz else None


def _is_virtual(probe: Probe, first: dict[str, str]) -> bool:
    maker = probe.line("/sys/class/dmi/id/sys_vendor")
    product = probe.line("/sys/class/dmi/id/product_name")
    if _VIRTUAL_VENDORS.search(maker) or "Virtual Machine" in product:
        return True
    return "hypervisor" in first.get("flags", "").split()


def _integer(text: str | None) -> int | None:
    value = number(text)
    return None if value is None else int(value)
