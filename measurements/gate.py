"""Telling disturbed repetitions: other load, throttling, clocks held down.

A gate looks before and after a repetition. It says what disturbed it; it never drops it.
"""

import importlib
import os
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

ReadText = Callable[[str], str | None]
PRESSURE_FILE = "/proc/pressure/cpu"
# Share of a repetition's time in which some task waited for a processor.
MOST_PRESSURE = 0.03


@dataclass(frozen=True, slots=True)
class Reading:
    """What a gate saw over a repetition."""

    pressure: float | None = None
    disturbed: tuple[str, ...] = ()


class Gate(Protocol):
    """Looks at the machine before and after a repetition."""

    def before(self) -> object:
        """Return what `after` needs to compare with."""

    def after(self, start: object, seconds: float) -> Reading:
        """Return what happened since `before`."""


def read_text(path: str) -> str | None:
    """Return a small file's text, None where it can't be read."""
    try:
        with open(path, encoding="ascii", errors="replace") as file:  # noqa: PTH123
            return file.read(4096)
    except OSError:
        return None


def stalled_us(text: str | None) -> int | None:
    """Return the microseconds in which some task was stalled, from the kernel's pressure file."""
    for line in (text or "").splitlines():
        if line.startswith("some "):
            _, _, total = line.rpartition("total=")
            return int(total) if total.isdigit() else None
    return None


def held_open(path: str) -> ReadText:
    """Return a way of reading one small file again and again that opens it only once."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        return read_text
    return lambda _: os.pread(descriptor, 4096, 0).decode("ascii", "replace")


class PressureGate:
    """Linux: the kernel's pressure-stall counter."""

    def __init__(self, read: ReadText = read_text, most: float = MOST_PRESSURE) -> None:
        self._read, self._most = read, most

    def before(self) -> object:
        """Return the counter."""
        return stalled_us(self._read(PRESSURE_FILE))

    def after(self, start: object, seconds: float) -> Reading:
        """Return the share of the time that tasks waited."""
        now = stalled_us(self._read(PRESSURE_FILE))
        if now is None or not isinstance(start, int):
            return Reading()
        share = max(0.0, (now - start) / (seconds * 1e6))
        if share <= self._most:
            return Reading(share)
        return Reading(
            share, (f"other load: tasks waited {100 * min(share, 1):.0f} % of the time",)
        )


class LoadGate:
    """macOS and others: the load average less our own threads, and the thermal state."""

    def __init__(
        self,
        n_cores: int,
        n_threads: int,
        load: Callable[[], float],
        speed_limit: Callable[[], int | None] = lambda: None,
    ) -> None:
        self._cores, self._threads = n_cores, n_threads
        self._load, self._limit = load, speed_limit

    def before(self) -> object:
        """Return nothing: both readings are states."""
        return None

    def after(self, start: object, seconds: float) -> Reading:
        """Return whether more wants to run than there are cores, and whether clocks are held."""
        found = []
        others = self._load() - self._threads
        if others > max(0.5, self._cores - self._threads):
            found.append(f"other load: {others:.1f} tasks beside our own")
        limit = self._limit()
        if limit is not None and limit < 100:
            found.append(f"thermal limit: clock held to {limit} %")
        return Reading(None, tuple(found))


def mac_speed_limit(run: Callable[[Sequence[str]], str] | None = None) -> int | None:
    """Return the percentage `pmset -g therm` holds the clock to, None where it doesn't say."""
    try:
        text = (run or _tool)(["pmset", "-g", "therm"])
    except (OSError, subprocess.SubprocessError):
        return None
    for line in text.splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "CPU_Speed_Limit" and value.strip().isdigit():
            return int(value)
    return None


def _tool(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=2, check=True).stdout


# Bits of nvmlDeviceGetCurrentClocksEventReasons that mean a slower card than usual.
_NVML_REASONS = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "thermal limit (software)",
    0x40: "thermal limit (hardware)",
    0x80: "power brake",
}
# An idle clock before the work started is no disturbance; a held one under load is.
_SLOWEST_SHARE = 0.8


class NvmlGate:
    """NVIDIA: what holds the clocks down, and other processes' use of the card."""

    def __init__(self, nvml: Any, index: int = 0) -> None:
        self._nvml = nvml
        self._handle = nvml.nvmlDeviceGetHandleByIndex(index)

    def _ask(self, *names: str) -> int | None:
        for name in names:
            try:
                return int(getattr(self._nvml, name)(self._handle))
            except (AttributeError, self._nvml.NVMLError):
                continue
        return None

    def _clock(self, name: str) -> int | None:
        try:
            return int(getattr(self._nvml, name)(self._handle, self._nvml.NVML_CLOCK_SM))
        except (AttributeError, self._nvml.NVMLError):
            return None

    def before(self) -> object:
        """Return nothing: all readings are states under load."""
        return None

    def after(self, start: object, seconds: float) -> Reading:
        """Return the throttle reasons in force and a clock far below the highest seen."""
        bits = self._ask(
            "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"
        )
        found = [text for bit, text in _NVML_REASONS.items() if bits and bits & bit]
        now, most = self._clock("nvmlDeviceGetClockInfo"), self._clock("nvmlDeviceGetMaxClockInfo")
        if now and most and found and now < _SLOWEST_SHARE * most:
            found.append(f"SM clock {now} of {most} MHz")
        return Reading(None, tuple(found))


class Gates:
    """Several gates as one."""

    def __init__(self, gates: Iterable[Gate]) -> None:
        self._gates = tuple(gates)

    def before(self) -> object:
        """Return each gate's start."""
        return tuple(gate.before() for gate in self._gates)

    def after(self, start: object, seconds: float) -> Reading:
        """Return all that was seen; the pressure is the highest."""
        starts = start if isinstance(start, tuple) else ()
        seen = [g.after(s, seconds) for g, s in zip(self._gates, starts, strict=True)]
        known = [r.pressure for r in seen if r.pressure is not None]
        return Reading(max(known, default=None), tuple(d for r in seen for d in r.disturbed))


def nvml_library() -> Any | None:
    """Return NVIDIA's management library, started; None without it or without a driver."""
    try:
        library: Any = importlib.import_module("pynvml")
        library.nvmlInit()
    except Exception:
        return None
    return library


def gate_of(n_threads: int, system: str, uses_nvidia: bool = False) -> Gate:
    """Return the gate for this machine."""
    gates: list[Gate] = []
    n_cores = os.cpu_count() or n_threads
    if stalled_us(read_text(PRESSURE_FILE)) is not None:
        gates.append(PressureGate(held_open(PRESSURE_FILE)))
    elif hasattr(os, "getloadavg"):
        limit = mac_speed_limit if system == "Darwin" else lambda: None
        gates.append(LoadGate(n_cores, n_threads, lambda: os.getloadavg()[0], limit))
    nvml = nvml_library() if uses_nvidia else None
    if nvml is not None:
        gates.append(NvmlGate(nvml))
    return Gates(gates)
