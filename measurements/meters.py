"""Energy counters: joules so far, where the machine has one.

NVIDIA's total-energy counter, Apple's (through zeus-apple-silicon), the powercap tree (RAPL) and
AMD's power, summed up. Finding none is not an error.
"""

import importlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from tokcast.measurements.gate import nvml_library

POWERCAP = Path("/sys/class/powercap")
HWMON = Path("/sys/class/hwmon")


class Meter(Protocol):
    """A cumulative energy counter."""

    @property
    def source(self) -> str:
        """Return what is counted, in words."""

    def joules(self) -> float | None:
        """Return joules since some moment, None when it can't be read now."""


class Counter:
    """A counter in microjoules that starts again at its range."""

    def __init__(self, path: Path, range_uj: int | None) -> None:
        self._path, self._range = path, range_uj
        self._last: int | None = None
        self._total = 0

    def joules(self) -> float | None:
        """Return joules since the first reading; one wrap between readings is made up for."""
        try:
            now = int(self._path.read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None
        if self._last is not None:
            step = now - self._last
            if step < 0:
                if self._range is None:
                    return None
                step += self._range
            self._total += step
        self._last = now
        return self._total / 1e6


class Rapl:
    """Processor packages of the powercap tree, and their memory where it is apart."""

    def __init__(self, root: Path = POWERCAP) -> None:
        self._counters: dict[str, Counter] = {}
        for zone in sorted(root.glob("*-rapl:*")) if root.is_dir() else ():
            name = _text(zone / "name")
            # A package holds its cores' energy already; memory is counted apart from it.
            if zone.name.count(":") == 1 or name == "dram":
                counter = Counter(zone / "energy_uj", _int(zone / "max_energy_range_uj"))
                if name != "psys" and counter.joules() is not None:
                    self._counters[f"{zone.name} {name}"] = counter

    def __bool__(self) -> bool:
        return bool(self._counters)

    @property
    def source(self) -> str:
        """Return which zones are counted."""
        return "RAPL " + ", ".join(name.split(" ", 1)[1] for name in self._counters)

    def joules(self) -> float | None:
        """Return the sum of all zones, None when one of them can't be read."""
        found = [counter.joules() for counter in self._counters.values()]
        return None if any(j is None for j in found) else sum(j or 0.0 for j in found)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _int(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.isdigit() else None


class Nvml:
    """NVIDIA's total-energy counter, which Volta and later keep in millijoules."""

    source = "NVML total energy"

    def __init__(self, nvml: Any, index: int = 0) -> None:
        self._nvml = nvml
        self._handle = nvml.nvmlDeviceGetHandleByIndex(index)

    def joules(self) -> float | None:
        """Return the card's joules since the driver was loaded."""
        try:
            return float(self._nvml.nvmlDeviceGetTotalEnergyConsumption(self._handle)) / 1e3
        except self._nvml.NVMLError:
            return None


class Apple:
    """Apple silicon's processor, GPU and memory, as the IOReport library counts them."""

    source = "Apple IOReport (processor, GPU, memory)"
    _PARTS = ("cpu_total_mj", "gpu_mj", "dram_mj", "ane_mj")

    def __init__(self, monitor: Any) -> None:
        self._monitor = monitor

    def joules(self) -> float | None:
        """Return joules since this process started counting."""
        try:
            found = self._monitor.get_cumulative_energy()
        except Exception:
            return None
        parts = [getattr(found, name, None) for name in self._PARTS]
        return sum(float(p) for p in parts if p is not None) / 1e3


class Polled:
    """Power read over and over in a thread, and summed up: for chips without a counter."""

    def __init__(
        self,
        watts: Callable[[], float | None],
        source: str,
        every_s: float = 0.02,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._watts, self.source, self._every, self._clock = watts, source, every_s, clock
        self._lock = threading.Lock()
        self._total, self._at = 0.0, clock()

    def start(self) -> "Polled":
        """Start reading."""
        threading.Thread(target=self._poll, daemon=True).start()
        return self

    def _poll(self) -> None:
        while self.joules() is not None:
            time.sleep(self._every)

    def joules(self) -> float | None:
        """Return joules so far; each reading stands for the time since the one before."""
        now_w = self._watts()
        if now_w is None:
            return None
        with self._lock:
            now = self._clock()
            self._total += now_w * (now - self._at)
            self._at = now
            return self._total


def amd_power(root: Path = HWMON) -> Path | None:
    """Return the file that holds an AMD GPU's power in microwatts."""
    for folder in sorted(root.glob("hwmon*")) if root.is_dir() else ():
        if _text(folder / "name") == "amdgpu":
            for name in ("power1_average", "power1_input"):
                if _int(folder / name) is not None:
                    return folder / name
    return None


def _nvidia() -> Meter | None:
    library = nvml_library()
    if library is None:
        return None
    meter = Nvml(library)
    return meter if meter.joules() is not None else None


def _apple() -> Meter | None:
    try:
        module: Any = importlib.import_module("zeus_apple_silicon")
        meter = Apple(module.AppleEnergyMonitor())
    except Exception:
        return None
    return meter if meter.joules() is not None else None


def _rapl() -> Meter | None:
    return Rapl() or None


def _amd() -> Meter | None:
    file = amd_power()
    if file is None:
        return None

    def watts() -> float | None:
        micro = _int(file)
        return None if micro is None else micro / 1e6

    return Polled(watts, "amdgpu power, polled").start()


def open_meter() -> Meter | None:
    """Return the counter nearest to the work: NVIDIA, Apple, AMD, else the processor's."""
    for find in (_nvidia, _apple, _amd, _rapl):
        meter = find()
        if meter is not None:
            return meter
    return None


def idle_watts(
    meter: Meter,
    seconds: float,
    clock: Callable[[], float] = time.perf_counter,
    sleep: Callable[[float], None] = time.sleep,
) -> float | None:
    """Return the power drawn while nothing of ours runs, None when it can't be read."""
    first, start = meter.joules(), clock()
    sleep(seconds)
    last, end = meter.joules(), clock()
    if first is None or last is None or end <= start:
        return None
    return (last - first) / (end - start)
