"""Live clocks, power and memory of this machine's devices, as far as they tell.

Every meter's `read` returns one mapping a device, or raises Absent with the reason. Watts that
a counter of joules gives are means since the reading before.
"""

import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

POWERCAP = Path("/sys/class/powercap")
Reading = dict[str, Any]


class Absent(Exception):  # noqa: N818
    """There is nothing to read, and why."""


class Meter(Protocol):
    """Something that can be read again and again."""

    name: str

    def read(self) -> list[Reading]:
        """Return one mapping a device; raise Absent without any."""


class Nvml:
    """NVIDIA's management library, through the optional `nvidia-ml-py`."""

    name = "nvml"

    def __init__(self, library: Any = None) -> None:
        self._given = library
        self._library: Any = None

    def read(self) -> list[Reading]:
        """Return clocks, power, memory and load of every card."""
        nvml = self._started()
        try:
            n = nvml.nvmlDeviceGetCount()
            return [_card(nvml, nvml.nvmlDeviceGetHandleByIndex(i)) for i in range(n)]
        except nvml.NVMLError as error:
            raise Absent(f"the NVIDIA driver does not answer: {error}") from None

    def _started(self) -> Any:
        if self._library is not None:
            return self._library
        library = self._given
        if library is None:
            library = _optional("pynvml", "nvidia-ml-py is not installed (tokcast[nvidia])")
        try:
            library.nvmlInit()
        except library.NVMLError as error:
            raise Absent(f"no NVIDIA device here: {error}") from None
        self._library = library
        return library


def _optional(module: str, reason: str) -> Any:
    """Return a library that need not be there; raise Absent without it."""
    try:
        return import_module(module)
    except ImportError:
        raise Absent(reason) from None


def _card(nvml: Any, handle: Any) -> Reading:
    def told(ask: Callable[[], Any]) -> Any:
        """Return a figure, None where this card or driver has none."""
        try:
            return ask()
        except nvml.NVMLError:
            return None

    def scaled(value: float | None, factor: float) -> float | None:
        return None if value is None else value * factor

    memory = told(lambda: nvml.nvmlDeviceGetMemoryInfo(handle))
    load = told(lambda: nvml.nvmlDeviceGetUtilizationRates(handle))
    name = told(lambda: nvml.nvmlDeviceGetName(handle))
    core = told(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))
    ram = told(lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM))
    return {
        "name": name.decode("utf-8", "replace") if isinstance(name, bytes) else name,
        "clock_hz": scaled(core, 1e6),
        "memory_clock_hz": scaled(ram, 1e6),
        "power_w": scaled(told(lambda: nvml.nvmlDeviceGetPowerUsage(handle)), 1e-3),
        "power_limit_w": scaled(told(lambda: nvml.nvmlDeviceGetEnforcedPowerLimit(handle)), 1e-3),
        "memory_used_bytes": memory.used if memory else None,
        "memory_bytes": memory.total if memory else None,
        "load": scaled(load.gpu if load else None, 0.01),
        "temperature_c": told(lambda: nvml.nvmlDeviceGetTemperature(handle, 0)),
    }


class Rapl:
    """The energy counters of Intel and AMD processors under Linux."""

    name = "rapl"

    def __init__(self, root: Path = POWERCAP, clock: Callable[[], float] = time.monotonic) -> None:
        self._root = root
        self._clock = clock
        self._last: dict[str, tuple[float, float]] = {}

    def read(self) -> list[Reading]:
        """Return joules of every domain, and mean watts since the last reading."""
        zones = sorted(self._root.glob("intel-rapl:*"))
        if not zones:
            raise Absent(f"no energy counters under {self._root} (virtual machines have none)")
        found = []
        for zone in zones:
            try:
                found.append(self._zone(zone))
            except (OSError, ValueError):
                continue
        if not found:
            raise Absent("the energy counters may be read by root only")
        return found

    def _zone(self, zone: Path) -> Reading:
        now = self._clock()
        joules = int((zone / "energy_uj").read_text()) * 1e-6
        span = int((zone / "max_energy_range_uj").read_text()) * 1e-6
        before = self._last.get(zone.name)
        self._last[zone.name] = (now, joules)
        watts = None
        if before is not None and now > before[0]:
            # The counter starts again from 0 at its span.
            watts = ((joules - before[1]) % span) / (now - before[0])
        label = (zone / "name").read_text().strip()
        return {"name": label, "zone": zone.name, "energy_j": joules, "power_w": watts}


class Apple:
    """Apple's energy counters, through the optional `zeus-apple-silicon`."""

    name = "apple"
    _FIELDS = ("cpu_total_mj", "gpu_mj", "dram_mj", "ane_mj")

    def __init__(self, monitor: Any = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._monitor = monitor
        self._clock = clock
        self._last: tuple[float, dict[str, float]] | None = None

    def read(self) -> list[Reading]:
        """Return joules of processor, GPU, memory and neural engine, and mean watts."""
        if self._monitor is None:
            reason = "no Apple silicon here, or zeus-apple-silicon is not installed"
            self._monitor = _optional("zeus_apple_silicon", reason).AppleEnergyMonitor()
        now, metrics = self._clock(), self._monitor.get_cumulative_energy()
        found = {f: getattr(metrics, f, None) for f in self._FIELDS}
        joules = {name: value * 1e-3 for name, value in found.items() if value is not None}
        before, self._last = self._last, (now, joules)
        return [_apple(name, value, now, before) for name, value in joules.items()]


def _apple(
    field: str, joules: float, now: float, before: tuple[float, dict[str, float]] | None
) -> Reading:
    watts = None
    if before is not None and field in before[1] and now > before[0]:
        watts = max(joules - before[1][field], 0.0) / (now - before[0])
    name = field.removesuffix("_mj").removesuffix("_total")
    return {"name": name, "energy_j": joules, "power_w": watts}


def status(meter: Meter) -> Reading:
    """Return a meter's reading, or that there is none and why."""
    try:
        return {"meter": meter.name, "available": True, "devices": meter.read(), "reason": ""}
    except Absent as absent:
        return {"meter": meter.name, "available": False, "devices": [], "reason": str(absent)}
