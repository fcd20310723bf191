"""Energy counters: a fake powercap tree, a fake NVML, a fake Apple monitor."""

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tokcast.measurements.meters import (
    Apple,
    Counter,
    Nvml,
    Polled,
    Rapl,
    amd_power,
    idle_watts,
)


def zone(root: Path, name: str, kind: str, energy: int, most: int = 1000_000_000) -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    (folder / "name").write_text(kind + "\n")
    (folder / "energy_uj").write_text(f"{energy}\n")
    (folder / "max_energy_range_uj").write_text(f"{most}\n")
    return folder / "energy_uj"


def test_packages_and_memory_are_counted_but_no_core_twice(tmp_path: Path) -> None:
    package = zone(tmp_path, "intel-rapl:0", "package-0", 5_000_000)
    zone(tmp_path, "intel-rapl:0:0", "core", 1)
    memory = zone(tmp_path, "intel-rapl:0:1", "dram", 100)
    zone(tmp_path, "intel-rapl:1", "psys", 100)
    meter = Rapl(tmp_path)
    assert meter
    assert meter.source == "RAPL package-0, dram"
    assert meter.joules() == 0.0
    package.write_text("8000000\n")
    memory.write_text("500100\n")
    assert meter.joules() == 3.5


def test_a_counter_that_wraps_goes_on(tmp_path: Path) -> None:
    file = zone(tmp_path, "intel-rapl:0", "package-0", 999_000_000)
    counter = Counter(file, 1_000_000_000)
    assert counter.joules() == 0.0
    file.write_text("2000000")
    assert counter.joules() == 3.0
    file.write_text("3000000")
    assert counter.joules() == 4.0


def test_a_counter_without_a_range_does_not_guess_a_wrap(tmp_path: Path) -> None:
    file = zone(tmp_path, "intel-rapl:0", "package-0", 900)
    counter = Counter(file, None)
    assert counter.joules() == 0.0
    file.write_text("100")
    assert counter.joules() is None


def test_no_tree_or_no_right_to_read_it_is_no_meter(tmp_path: Path) -> None:
    assert not Rapl(tmp_path / "absent")
    (zone(tmp_path, "intel-rapl:0", "package-0", 1)).write_text("")
    assert not Rapl(tmp_path)


def test_nvidia_counts_millijoules() -> None:
    class Library:
        NVMLError = RuntimeError

        def __init__(self) -> None:
            self.left = [1500, 4500]

        def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
            return index

        def nvmlDeviceGetTotalEnergyConsumption(self, _: Any) -> int:
            if not self.left:
                raise self.NVMLError("not supported")
            return self.left.pop(0)

    meter = Nvml(Library())
    assert (meter.joules(), meter.joules(), meter.joules()) == (1.5, 4.5, None)


def test_apple_adds_the_parts_it_tells() -> None:
    parts = SimpleNamespace(cpu_total_mj=1000, gpu_mj=2500, dram_mj=None, ane_mj=0)
    assert Apple(SimpleNamespace(get_cumulative_energy=lambda: parts)).joules() == 3.5


def test_power_is_summed_up() -> None:
    times = iter([0.0, 1.0, 3.0])
    meter = Polled(lambda: 50.0, "fake", clock=lambda: next(times))
    assert meter.joules() == 50.0
    assert meter.joules() == 150.0
    assert Polled(lambda: None, "fake").joules() is None


def test_an_amd_card_is_found(tmp_path: Path) -> None:
    (tmp_path / "hwmon0").mkdir()
    (tmp_path / "hwmon0" / "name").write_text("nvme\n")
    (tmp_path / "hwmon1").mkdir()
    (tmp_path / "hwmon1" / "name").write_text("amdgpu\n")
    assert amd_power(tmp_path) is None
    (tmp_path / "hwmon1" / "power1_average").write_text("35000000\n")
    assert amd_power(tmp_path) == tmp_path / "hwmon1" / "power1_average"


def test_the_idle_draw_is_apart() -> None:
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    meter = Polled(lambda: 20.0, "fake", clock=lambda: now[0])
    assert idle_watts(meter, 0.5, clock=lambda: now[0], sleep=sleep) == 20.0
    none = Polled(lambda: None, "fake", clock=lambda: now[0])
    assert idle_watts(none, 0.5, clock=lambda: now[0], sleep=sleep) is None


class RecordedNvml:
    """Answers of one card's total-energy counter in millijoules, None where NVML failed."""

    NVMLError = RuntimeError

    def __init__(self, trace: list[int | None]) -> None:
        self.left = list(trace)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetTotalEnergyConsumption(self, _: Any) -> int:
        value = self.left.pop(0)
        if value is None:
            raise self.NVMLError("GPU is lost")
        return value


def test_a_trace_of_nvml_gives_watts() -> None:
    """A second of idle at 62.1 W, then two of load at 331.4 and 334.0 W."""
    meter = Nvml(RecordedNvml([81_234_500_000, 81_234_562_100, 81_234_893_500, 81_235_227_500]))
    joules = [meter.joules() or 0.0 for _ in range(4)]
    watts = [round(b - a, 1) for a, b in itertools.pairwise(joules)]
    assert watts == [62.1, 331.4, 334.0]


def test_a_meter_that_goes_missing_half_way_gives_none() -> None:
    meter = Nvml(RecordedNvml([1_000, 2_000, None]))
    assert (meter.joules(), meter.joules(), meter.joules()) == (1.0, 2.0, None)
