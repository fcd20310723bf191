"""NVIDIA cards, as the driver reports them."""

import csv
import importlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tokcast.hosts.detect.naming import known
from tokcast.hosts.detect.probe import MIB, Found, Probe, number
from tokcast.predictor.host import Host

QUERY = "--query-gpu=name,memory.total,clocks.max.memory"
_UNIFIED = ("GB10", "Thor", "Orin", "Jetson")
# Names under which the driver reports one form factor only.
_DRIVER_NAMES = {
    "NVIDIA H200": "NVIDIA H200 SXM 141GB",
    "NVIDIA B300 SXM6 AC": "NVIDIA B300 SXM 288GB",
    "NVIDIA Thor": "NVIDIA Jetson AGX Thor T5000",
}


@dataclass(frozen=True, slots=True)
class Card:
    """A card as its driver describes it; None where the driver does not say."""

    name: str
    memory_bytes: float | None = None
    memory_clock_hz: float | None = None
    bus_bits: int | None = None

    @property
    def data_rate_gbps(self) -> float | None:
        """Return the data rate a pin: two transfers a cycle of the clock the driver reports.

        That holds for GDDR5 to GDDR7 and HBM: 10501 MHz are the 21 Gbps of an RTX 4090.
        """
        return None if self.memory_clock_hz is None else 2 * self.memory_clock_hz / 1e9

    @property
    def bytes_per_s(self) -> float | None:
        """Return the nameplate bandwidth, bus x data rate, where the driver tells both."""
        if self.memory_clock_hz is None or self.bus_bits is None:
            return None
        return self.bus_bits / 8 * 2 * self.memory_clock_hz


Nvml = Callable[[], tuple[Card, ...] | None]


def nvidia(probe: Probe, nvml: Nvml, machine_bytes: float | None) -> Found:
    """Return the NVIDIA chips here; equal ones are one host with `n_devices`.

    `machine_bytes` is the memory of the machine, which chips with unified memory use.
    """
    cards = nvml() or nvidia_smi(probe)
    found = Found()
    for card, n_devices in Counter(cards).items():
        # Jetson's driver names the GPU of every board the same; the board's name says which.
        if "nvgpu" not in card.name:
            found += _known(card, n_devices, machine_bytes)
    return found


def nvidia_smi(probe: Probe) -> tuple[Card, ...]:
    """Return what `nvidia-smi` lists, nothing where it is absent or finds no driver."""
    text = probe.run(["nvidia-smi", QUERY, "--format=csv,noheader,nounits"]) or ""
    rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines())]
    return tuple(
        Card(row[0], _scaled(row[1], MIB), _scaled(row[2], 1e6)) for row in rows if len(row) == 3
    )


def nvml_cards() -> tuple[Card, ...] | None:
    """Return what NVIDIA's management library lists; None without the library or a driver."""
    try:
        # Untyped, and absent without the optional dependency.
        pynvml: Any = importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError:
        return None
    try:
        count = pynvml.nvmlDeviceGetCount()
        return tuple(_card(pynvml, pynvml.nvmlDeviceGetHandleByIndex(i)) for i in range(count))
    except pynvml.NVMLError:
        return None
    finally:
        pynvml.nvmlShutdown()


def _card(pynvml: Any, handle: Any) -> Card:
    def asked(function: str, *arguments: Any) -> Any:
        # Older drivers and unified memory lack some answers; each is optional.
        try:
            return getattr(pynvml, function)(handle, *arguments)
        except (AttributeError, pynvml.NVMLError):
            return None

    name = asked("nvmlDeviceGetName")
    memory = asked("nvmlDeviceGetMemoryInfo")
    clock_mhz = asked("nvmlDeviceGetMaxClockInfo", pynvml.NVML_CLOCK_MEM)
    return Card(
        name=name.decode() if isinstance(name, bytes) else str(name or "NVIDIA GPU"),
        memory_bytes=float(memory.total) if memory is not None else None,
        memory_clock_hz=clock_mhz * 1e6 if clock_mhz else None,
        bus_bits=asked("nvmlDeviceGetMemoryBusWidth") or None,
    )


def _known(card: Card, n_devices: int, machine_bytes: float | None) -> Found:
    memory_bytes = card.memory_bytes
    if any(word in card.name for word in _UNIFIED):
        memory_bytes = machine_bytes
    name = _DRIVER_NAMES.get(card.name, card.name)
    found = known(name, memory_bytes, card.data_rate_gbps, n_devices=n_devices)
    bytes_per_s = card.bytes_per_s
    if found.hosts or bytes_per_s is None:
        return found
    source = "the driver: bus width x twice the memory clock"
    host = Host(
        name=card.name,
        vendor="NVIDIA",
        kind="discrete_gpu",
        architecture="",
        bytes_per_s=bytes_per_s,
        memory_bytes=memory_bytes,
        n_devices=n_devices,
        source={"bytes_per_s": source},
    )
    note = f"{card.name} is not in the registry: its bandwidth is from the driver, give --tflops"
    return Found((host,), (note,))


def _scaled(text: str, unit: float) -> float | None:
    value = number(text)
    return None if value is None else value * unit
