"""Memory modules as the firmware describes them, and the bandwidth they give."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tokcast.hosts.detect.probe import Probe

_UDEV_FILE = "/run/udev/data/+dmi:id"
# Type codes of the SMBIOS specification (DSP0134), table "Memory Device: Type".
_SMBIOS_TYPES = {
    24: "DDR3",
    26: "DDR4",
    29: "LPDDR3",
    30: "LPDDR4",
    34: "DDR5",
    35: "LPDDR5",
}
_CHANNEL_PATTERNS = (
    r"P(?P<a>\d+)_Node(?P<b>\d+)_Channel(?P<c>\d+)",
    r"(?:Controller(?P<a>\d+)\W*)?(?:P(?P<b>\d+)\W+)?CHANNEL[ _-]?(?P<c>[A-Z0-9])",
    r"(?:CPU(?P<a>\d+)_)?C(?P<c>\d+)D\d",
    r"(?:P(?P<a>\d+)[-_])?DIMM[ _]?(?P<c>[A-L])\d?\b",
    r"DDR\d[-_](?P<c>[A-L])\d",
)


@dataclass(frozen=True, slots=True)
class Module:
    """One populated memory device: its type, transfers a second, width and place."""

    type: str
    transfers_per_s: float | None
    width_bits: int | None
    place: str

    @property
    def channel(self) -> str | None:
        """Return the channel that the place names, None where it names none."""
        for pattern in _CHANNEL_PATTERNS:
            match = re.search(pattern, self.place, re.IGNORECASE)
            if match:
                return "/".join(str(part) for part in match.groups())
        return None


@dataclass(frozen=True, slots=True)
class Memory:
    """Bandwidth of a set of modules, in words too."""

    bytes_per_s: float
    type: str
    description: str


def modules(probe: Probe) -> tuple[Module, ...]:
    """Return the modules of a Linux machine: from udev's database, else from dmidecode.

    Udev (systemd 248 and later) keeps the firmware's memory table where every user can read
    it; dmidecode needs root.
    """
    text = probe.read_text(_UDEV_FILE)
    found = from_udev(text) if text else ()
    return found or from_dmidecode(probe.run(["dmidecode", "-t", "memory"]) or "")


def from_udev(text: str) -> tuple[Module, ...]:
    """Return the modules in lines such as `E:MEMORY_DEVICE_0_SPEED_MTS=5600`."""
    devices: dict[str, dict[str, str]] = {}
    for number, key, value in re.findall(r"^E:\s*MEMORY_DEVICE_(\d+)_(\w+)=(.*)$", text, re.M):
        devices.setdefault(number, {})[key] = value.strip()
    populated = (d for d in devices.values() if _integer(d.get("SIZE")) and d.get("PRESENT") != "0")
    return tuple(
        Module(
            type=device.get("TYPE", ""),
            transfers_per_s=_rate(device.get("CONFIGURED_SPEED_MTS") or device.get("SPEED_MTS")),
            width_bits=_integer(device.get("DATA_WIDTH")),
            place=f"{device.get('BANK_LOCATOR', '')} {device.get('LOCATOR', '')}",
        )
        for device in populated
    )


def from_dmidecode(text: str) -> tuple[Module, ...]:
    """Return the modules in the output of `dmidecode -t memory`."""
    found = []
    for block in text.split("\nMemory Device\n")[1:]:
        facts = dict(re.findall(r"^\s+([\w ]+): *(.*?)\s*$", block.split("\n\n")[0], re.M))
        if not re.match(r"\d", facts.get("Size", "")):
            continue
        speed = facts.get("Configured Memory Speed") or facts.get("Configured Clock Speed")
        if not _integer(speed):
            speed = facts.get("Speed")
        found.append(
            Module(
                type=facts.get("Type", ""),
                transfers_per_s=_rate(speed),
                width_bits=_integer(facts.get("Data Width")),
                place=f"{facts.get('Bank Locator', '')} {facts.get('Locator', '')}",
            )
        )
    return tuple(found)


def from_windows(rows: Iterable[Mapping[str, object]]) -> tuple[Module, ...]:
    """Return the modules in rows of the Windows class Win32_PhysicalMemory."""
    return tuple(
        Module(
            type=_SMBIOS_TYPES.get(_integer(row.get("SMBIOSMemoryType")) or 0, ""),
            transfers_per_s=_rate(row.get("ConfiguredClockSpeed") or row.get("Speed")),
            width_bits=_integer(row.get("DataWidth")),
            place=f"{row.get('BankLabel', '')} {row.get('DeviceLocator', '')}",
        )
        for row in rows
        if _integer(row.get("Capacity"))
    )


def from_macos(rows: Iterable[Mapping[str, object]]) -> tuple[Module, ...]:
    """Return the modules in `system_profiler`'s SPMemoryDataType items of an Intel Mac."""
    return tuple(
        Module(
            type=str(row.get("dimm_type", "")),
            transfers_per_s=_rate(row.get("dimm_speed")),
            width_bits=None,
            place=str(row.get("_name", "")).replace("/", " "),
        )
        for row in rows
        if _integer(row.get("dimm_size"))
    )


def combined(modules: Sequence[Module], n_sockets: int, bus_bits: int | None) -> Memory | None:
    """Return one socket's bandwidth: width of the channels x transfers a second of the slowest.

    Modules on one channel do not add up, soldered LPDDR chips do. Where the firmware names no
    channels each module counts as one, but never more than the chip's bus of `bus_bits`. None
    without a speed.
    """
    speeds = [module.transfers_per_s for module in modules if module.transfers_per_s]
    if not speeds:
        return None
    widths: dict[str, int] = {}
    for index, module in enumerate(modules):
        shared = None if module.type.startswith("LPDDR") else module.channel
        key = shared or f"module {index}"
        widths[key] = max(widths.get(key, 0), module.width_bits or 64)
    width = sum(widths.values()) // n_sockets
    if bus_bits:
        width = min(width, bus_bits)
    # Firmware tools older than the memory print "<OUT OF SPEC>" for its type.
    kind = next((m.type for m in modules if re.match(r"(LP)?DDR\d", m.type)), "")
    mt_per_s = f"{min(speeds) / 1e6:.0f}"
    speed = f"{kind}-{mt_per_s}" if kind else f"{mt_per_s} MT/s"
    return Memory(
        bytes_per_s=width / 8 * min(speeds),
        type=kind,
        description=f"{speed} on {width} bits",
    )


def _integer(value: object) -> int | None:
    match = re.match(r"\s*(\d+)", str(value))
    return int(match[1]) if match else None


def _rate(value: object) -> float | None:
    mt_per_s = _integer(value)
    return mt_per_s * 1e6 if mt_per_s else None
