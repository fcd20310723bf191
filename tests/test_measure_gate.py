"""What disturbs a repetition, told by fake files, load figures and a fake NVML."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from tokcast.measurements.gate import (
    Gates,
    LoadGate,
    NvmlGate,
    PressureGate,
    gate_of,
    mac_speed_limit,
    stalled_us,
)

PSI = "some avg10=0.00 avg60=0.10 avg300=0.05 total={}\nfull avg10=0.00 avg60=0.00 total=7\n"


def test_the_stall_counter_is_read() -> None:
    assert stalled_us(PSI.format(123456)) == 123456
    assert stalled_us("full avg10=0.00 total=7\n") is None
    assert stalled_us("some avg10=0.00 total=?\n") is None
    assert stalled_us(None) is None


def pressure(*totals: int | None) -> PressureGate:
    texts: Iterator[str | None] = iter([None if t is None else PSI.format(t) for t in totals])
    return PressureGate(lambda _: next(texts))


def test_pressure_is_the_share_of_the_time() -> None:
    gate = pressure(1_000_000, 1_010_000)
    assert gate.after(gate.before(), 1.0).pressure == 0.01
    gate = pressure(1_000_000, 1_250_000)
    reading = gate.after(gate.before(), 0.5)
    assert reading.pressure == 0.5
    assert reading.disturbed == ("other load: tasks waited 50 % of the time",)


def test_no_pressure_file_says_nothing() -> None:
    gate = pressure(None, None)
    assert gate.after(gate.before(), 1.0) == Gates(()).after((), 1.0)


def test_load_beyond_our_own_threads_disturbs() -> None:
    assert LoadGate(8, 4, lambda: 5.0).after(None, 1.0).disturbed == ()
    assert LoadGate(8, 8, lambda: 10.0).after(None, 1.0).disturbed == (
        "other load: 2.0 tasks beside our own",
    )
    held = LoadGate(8, 4, lambda: 4.0, lambda: 70).after(None, 1.0).disturbed
    assert held == ("thermal limit: clock held to 70 %",)


def test_the_macs_thermal_state_is_read() -> None:
    text = "Note: No thermal warning\nCPU Power notify\n\tCPU_Speed_Limit \t= 85\n"
    assert mac_speed_limit(lambda _: text) == 85
    assert mac_speed_limit(lambda _: "Note: No thermal warning\n") is None

    def absent(_: object) -> str:
        raise FileNotFoundError("pmset")

    assert mac_speed_limit(absent) is None


class FakeNvml:
    NVMLError = RuntimeError
    NVML_CLOCK_SM = 1

    def __init__(self, reasons: int, clock: int) -> None:
        self.reasons, self.clock = reasons, clock

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Any:
        return SimpleNamespace(index=index)

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, _: Any) -> int:
        return self.reasons

    def nvmlDeviceGetClockInfo(self, _: Any, __: int) -> int:
        return self.clock

    def nvmlDeviceGetMaxClockInfo(self, _: Any, __: int) -> int:
        return 2000


def test_throttle_reasons_and_a_held_clock_disturb() -> None:
    assert NvmlGate(FakeNvml(0x1, 300)).after(None, 1.0).disturbed == ()
    found = NvmlGate(FakeNvml(0x04 | 0x40, 1200)).after(None, 1.0).disturbed
    assert found == ("power cap", "thermal limit (hardware)", "SM clock 1200 of 2000 MHz")


def test_several_gates_are_one() -> None:
    both = Gates([pressure(0, 20_000), LoadGate(2, 2, lambda: 4.0)])
    reading = both.after(both.before(), 1.0)
    assert reading.pressure == 0.02
    assert reading.disturbed == ("other load: 2.0 tasks beside our own",)


def test_this_machine_has_a_gate() -> None:
    gate = gate_of(1, "Linux")
    pressure_now = gate.after(gate.before(), 1.0).pressure
    assert pressure_now is None or pressure_now >= 0
