"""Live readings: with fakes, and what a machine without meters says."""

# ruff: noqa: N802 -- the fake has the names of NVIDIA's library

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the web page needs fastapi and uvicorn")

from fastapi import FastAPI
from web_tools import Site, problem, site

from tokcast.cli.web import problems, routes_meters
from tokcast.cli.web.config import Config
from tokcast.cli.web.engine import Engine
from tokcast.cli.web.library import Library
from tokcast.cli.web.meters import Absent, Apple, Nvml, Rapl, status


class FakeError(Exception):
    pass


@dataclass
class Memory:
    used: int = 3 << 30
    total: int = 24 << 30


@dataclass
class Load:
    gpu: int = 87


@dataclass
class FakeNvml:
    """Two cards, the second of which does not tell its power."""

    NVMLError: type = FakeError
    NVML_CLOCK_SM: int = 1
    NVML_CLOCK_MEM: int = 2
    n: int = 2
    starts: int = 0
    broken: bool = False
    missing: set[str] = field(default_factory=set)

    def nvmlInit(self) -> None:
        self.starts += 1
        if self.broken:
            raise FakeError("driver not loaded")

    def nvmlDeviceGetCount(self) -> int:
        if self.n < 0:
            raise FakeError("GPU is lost")
        return self.n

    def nvmlDeviceGetHandleByIndex(self, i: int) -> int:
        return i

    def nvmlDeviceGetName(self, handle: int) -> object:
        return b"Old card" if handle else "NVIDIA GeForce RTX 4090"

    def nvmlDeviceGetClockInfo(self, handle: int, kind: int) -> int:
        return {1: 2520, 2: 10501}[kind]

    def nvmlDeviceGetPowerUsage(self, handle: int) -> int:
        if handle:
            raise FakeError("not supported")
        return 312_500

    def nvmlDeviceGetEnforcedPowerLimit(self, handle: int) -> int:
        return 450_000

    def nvmlDeviceGetMemoryInfo(self, handle: int) -> Memory:
        return Memory()

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Load:
        return Load()

    def nvmlDeviceGetTemperature(self, handle: int, sensor: int) -> int:
        return 61


def test_nvml_tells_clocks_power_and_memory() -> None:
    library = FakeNvml()
    meter = Nvml(library)
    first, second = meter.read()
    assert first == {
        "name": "NVIDIA GeForce RTX 4090",
        "clock_hz": 2.52e9,
        "memory_clock_hz": pytest.approx(10.501e9),
        "power_w": 312.5,
        "power_limit_w": 450.0,
        "memory_used_bytes": 3 << 30,
        "memory_bytes": 24 << 30,
        "load": pytest.approx(0.87),
        "temperature_c": 61,
    }
    assert (second["name"], second["power_w"]) == ("Old card", None)
    meter.read()
    assert library.starts == 1


@pytest.mark.parametrize(
    ("library", "reason"),
    [
        (FakeNvml(broken=True), "no NVIDIA device here: driver not loaded"),
        (FakeNvml(n=-1), "the NVIDIA driver does not answer: GPU is lost"),
    ],
)
def test_nvml_says_why_there_is_nothing(library: FakeNvml, reason: str) -> None:
    with pytest.raises(Absent, match=reason):
        Nvml(library).read()


def test_nvml_without_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert status(Nvml()) == {
        "meter": "nvml",
        "available": False,
        "devices": [],
        "reason": "nvidia-ml-py is not installed (tokcast[nvidia])",
    }


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def zone(root: Path, name: str, label: str, microjoules: int) -> Path:
    folder = root / name
    folder.mkdir(exist_ok=True)
    (folder / "name").write_text(f"{label}\n")
    (folder / "energy_uj").write_text(f"{microjoules}\n")
    (folder / "max_energy_range_uj").write_text("1000000000\n")
    return folder


def test_rapl_gives_watts_from_the_second_reading_on(tmp_path: Path) -> None:
    clock = Clock()
    meter = Rapl(tmp_path, clock)
    zone(tmp_path, "intel-rapl:0", "package-0", 990_000_000)
    assert meter.read() == [
        {"name": "package-0", "zone": "intel-rapl:0", "energy_j": 990.0, "power_w": None}
    ]
    clock.now += 2.0
    # The counter has passed its span of 1000 J and started again.
    zone(tmp_path, "intel-rapl:0", "package-0", 30_000_000)
    (reading,) = meter.read()
    assert reading["power_w"] == pytest.approx(20.0)


def test_rapl_says_why_there_is_nothing(tmp_path: Path) -> None:
    with pytest.raises(Absent, match="no energy counters under"):
        Rapl(tmp_path).read()
    (zone(tmp_path, "intel-rapl:0", "package-0", 5) / "energy_uj").unlink()
    with pytest.raises(Absent, match="read by root only"):
        Rapl(tmp_path).read()


@dataclass
class FakeMonitor:
    gpu_mj: int = 0

    @dataclass
    class Metrics:
        gpu_mj: int
        cpu_total_mj: int = 500
        dram_mj: int | None = None

    def get_cumulative_energy(self) -> Metrics:
        self.gpu_mj += 4000
        return self.Metrics(self.gpu_mj)


def test_apple_gives_watts_from_the_second_reading_on() -> None:
    clock = Clock()
    meter = Apple(FakeMonitor(), clock)
    assert {r["name"]: r["power_w"] for r in meter.read()} == {"cpu": None, "gpu": None}
    clock.now += 2.0
    assert {r["name"]: r["power_w"] for r in meter.read()} == {"cpu": 0.0, "gpu": 2.0}


def test_apple_elsewhere() -> None:
    with pytest.raises(Absent, match="no Apple silicon here"):
        Apple().read()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Site]:
    config = Config(n_streams=1)
    zone(tmp_path, "intel-rapl:0", "package-0", 1_000_000)
    app = FastAPI()
    problems.install(app)
    others = (Rapl(tmp_path), Apple(FakeMonitor()))
    engine = Engine(config, Library(config, {}))
    app.include_router(routes_meters.router(engine, Nvml(FakeNvml()), others))
    with site(app=app) as found:
        yield found


def events(text: str) -> list[dict[str, object]]:
    blocks = text.strip().split("\n\n")
    assert all(block.startswith("event: reading\ndata: ") for block in blocks)
    return [json.loads(block.split("data: ", 1)[1]) for block in blocks]


def test_status_and_stream_over_http(server: Site) -> None:
    told = server.get("nvml/status").json()
    assert told["available"] is True
    assert [d["name"] for d in told["devices"]] == ["NVIDIA GeForce RTX 4090", "Old card"]
    streamed = server.get("nvml/stream", params={"n": 3, "seconds": 0.2})
    assert streamed.headers["content-type"].startswith("text/event-stream")
    assert events(streamed.text) == [told] * 3
    every = server.get("meters/status").json()["meters"]
    assert [m["meter"] for m in every] == ["nvml", "rapl", "apple"]
    (reading,) = events(server.get("meters/stream", params={"n": 1}).text)
    assert {m["meter"]: m["available"] for m in reading["meters"]} == {  # type: ignore[attr-defined]
        "nvml": True,
        "rapl": True,
        "apple": True,
    }


def test_streams_are_counted(server: Site) -> None:
    with server.client.stream("GET", "/api/v1/nvml/stream?seconds=1&n=5") as one:
        texts = one.iter_text()
        next(texts)
        assert "streams at once" in problem(server.get("nvml/stream?n=1"), 503)


def test_a_machine_without_devices_says_so() -> None:
    with site() as found:
        told = found.get("nvml/status").json()
        if not told["available"]:
            assert told["reason"]
            assert told["devices"] == []
        assert found.get("nvml/stream", params={"n": 1}).status_code == 200
        problem(found.get("nvml/stream", params={"seconds": 0}), 422)
