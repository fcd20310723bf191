"""Intel graphics on Linux."""

import json

from tokcast.hosts.detect.naming import known
from tokcast.hosts.detect.pci import Device, label_name, largest_window_bytes, marketing_name
from tokcast.hosts.detect.probe import Found, Probe


def arc(probe: Probe, device: Device) -> Found:
    """Return the chip of one Intel device, told by PCI id and by its memory.

    The kernel does not report the memory of Arc cards; the address window does with resizable
    BAR, else `xpu-smi` is asked.
    """
    name = marketing_name(device) or label_name(device) or f"Intel graphics {device.device}"
    memory_bytes = largest_window_bytes(probe, device) or _from_xpu_smi(probe)
    return known(name, memory_bytes)


def _from_xpu_smi(probe: Probe) -> float | None:
    text = probe.run(["xpu-smi", "discovery", "-d", "0", "-j"])
    try:
        answer = json.loads(text or "{}")
        return float(answer["memory_physical_size_byte"]) or None
    except (ValueError, KeyError, TypeError):
        return None
