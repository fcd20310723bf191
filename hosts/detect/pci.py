"""Graphics devices on the PCI bus, whatever driver they have."""

import csv
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tokcast.hosts.detect.probe import Probe

NVIDIA, AMD, INTEL = "10de", "1002", "8086"
_MOST_CARDS = 17
_LSPCI = re.compile(
    r"^(?P<slot>\S+) [^\[]*\[03[0-9a-f]{2}\]: (?P<label>.*)"
    r" \[(?P<vendor>[0-9a-f]{4}):(?P<device>[0-9a-f]{4})\](?: \(rev (?P<revision>[0-9a-f]{2})\))?"
)


@dataclass(frozen=True, slots=True)
class Device:
    """A graphics device; `folder` is where the kernel describes it, empty if only lspci does."""

    vendor: str
    device: str
    revision: str
    folder: str = ""
    label: str = ""


def graphics(probe: Probe) -> tuple[Device, ...]:
    """Return the graphics devices, from the kernel's tree or else from `lspci -nn`."""
    return _from_kernel(probe) or _from_lspci(probe)


def marketing_name(device: Device) -> str | None:
    """Return the name under which the device is sold, where the packaged list has it."""
    for revision in (device.revision, "*"):
        name = _names().get((device.vendor, device.device, revision))
        if name is not None:
            return name
    return None


def label_name(device: Device) -> str | None:
    """Return what the PCI database has in brackets: `GeForce RTX 3090` of `GA102 [...]`."""
    bracketed = re.findall(r"\[([^\]]+)\]", device.label)
    return bracketed[-1] if bracketed and bracketed[-1] != "AMD/ATI" else None


def largest_window_bytes(probe: Probe, device: Device) -> float | None:
    """Return the largest address window of a device: its memory, if resizable BAR is on.

    Each line of the kernel's `resource` file is first address, last address and flags. A window
    of 256 MiB only says that resizable BAR is off, and None is returned.
    """
    text = probe.read_text(f"{device.folder}/resource") if device.folder else None
    sizes = [0]
    for line in (text or "").splitlines():
        fields = line.split()
        if len(fields) == 3 and all(re.fullmatch("0x[0-9a-f]+", field) for field in fields):
            sizes.append(int(fields[1], 16) - int(fields[0], 16) + 1)
    return float(max(sizes)) if max(sizes) > 2**28 else None


def _from_kernel(probe: Probe) -> tuple[Device, ...]:
    devices = []
    for index in range(_MOST_CARDS):
        folder = f"/sys/class/drm/card{index}/device"
        vendor = probe.line(f"{folder}/vendor").removeprefix("0x")
        if vendor:
            device = probe.line(f"{folder}/device").removeprefix("0x")
            revision = probe.line(f"{folder}/revision").removeprefix("0x")
            devices.append(Device(vendor, device, revision, folder))
    return tuple(devices)


def _from_lspci(probe: Probe) -> tuple[Device, ...]:
    lines = (probe.run(["lspci", "-nn"]) or "").splitlines()
    found = (match for line in lines if (match := _LSPCI.match(line)))
    return tuple(
        Device(m["vendor"], m["device"], m["revision"] or "", label=m["label"]) for m in found
    )


@cache
def _names() -> dict[tuple[str, str, str], str]:
    path = Path(__file__).parent.parent / "data" / "pci.csv"
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {
        (row["vendor"], row["device"], revision): row["name"]
        for row in rows
        for revision in row["revisions"].split()
    }
