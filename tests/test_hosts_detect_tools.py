"""Running tools and reading files without ever hanging or failing, and NVIDIA's library."""

import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tokcast.hosts.detect import detect, probe
from tokcast.hosts.detect.nvidia import Card, nvml_cards
from tokcast.hosts.detect.probe import number, read_file, run_tool

needs_sh = pytest.mark.skipif(sys.platform == "win32", reason="writes shell scripts")


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    def write(script: str) -> list[str]:
        path = tmp_path / "tokcast-test-tool"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return [path.name, "argument"]

    return write


@needs_sh
def test_a_tool_is_heard(tool: Any) -> None:
    assert run_tool(tool("echo heard $1")) == "heard argument\n"


@needs_sh
def test_a_failing_tool_is_not_heard(tool: Any) -> None:
    assert run_tool(tool("echo no driver; exit 9")) is None


@needs_sh
def test_bytes_that_are_no_text_are_replaced(tool: Any) -> None:
    assert run_tool(tool(r"printf 'a\377b'")) == "a\ufffdb"


@needs_sh
def test_a_hanging_tool_is_given_up(tool: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "_TIMEOUT_S", 0.2)
    started = time.monotonic()
    assert run_tool(tool("exec sleep 20")) is None
    assert time.monotonic() - started < 10


@needs_sh
def test_a_tool_that_cannot_start_is_given_up(tool: Any, tmp_path: Path) -> None:
    command = tool("")
    (tmp_path / command[0]).write_bytes(b"\x7fELF not really")
    assert run_tool(command) is None


def test_an_absent_tool_is_no_answer() -> None:
    assert run_tool(["tokcast-no-such-tool"]) is None


def test_files_that_cannot_be_read_are_no_answer(tmp_path: Path) -> None:
    assert read_file(str(tmp_path / "none")) is None
    assert read_file(str(tmp_path)) is None
    assert read_file("nul\0byte") is None
    (tmp_path / "some").write_bytes(b"a\xffb")
    assert read_file(str(tmp_path / "some")) == "a\ufffdb"


@pytest.mark.parametrize(
    ("text", "value"),
    [("42", 42), (" 4.5\n", 4.5), ("[N/A]", None), ("-1", None), ("²", None), ("nan", None)],
)
def test_plain_numbers_only(text: str, value: float | None) -> None:
    assert number(text) == value


def test_this_machine_is_detected() -> None:
    """Whatever runs the tests, its processor comes last and has a bandwidth."""
    found = detect()
    assert found.hosts[-1].kind == "cpu"
    assert found.hosts[-1].bytes_per_s > 1e9
    assert found.memory_bytes is not None
    assert found.memory_bytes > 2**28


class NVMLError(Exception):
    pass


def fake_nvml(**functions: Any) -> SimpleNamespace:
    """Return a stand-in for the module of nvidia-ml-py with one card."""

    def not_supported(*_: Any) -> Any:
        raise NVMLError("Not Supported")

    card = {
        "nvmlInit": lambda: None,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetCount": lambda: 1,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetName": lambda _: "NVIDIA GeForce RTX 4090",
        "nvmlDeviceGetMemoryInfo": lambda _: SimpleNamespace(total=25757220864),
        "nvmlDeviceGetMaxClockInfo": lambda _, kind: {2: 10501}[kind],
        "nvmlDeviceGetMemoryBusWidth": lambda _: 384,
    }
    given = {name: value or not_supported for name, value in functions.items()}
    return SimpleNamespace(NVMLError=NVMLError, NVML_CLOCK_MEM=2, **{**card, **given})


def test_nvml_lists_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml())
    assert nvml_cards() == (Card("NVIDIA GeForce RTX 4090", 25757220864, 10501e6, 384),)
    host = detect(lambda _: None, lambda _: None, "Linux").hosts[0]
    assert (host.name, host.memory_bytes) == ("NVIDIA GeForce RTX 4090", 25757220864)


def test_what_nvml_does_not_answer_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    silent = fake_nvml(
        nvmlDeviceGetName=lambda _: b"NVIDIA GB10",
        nvmlDeviceGetMemoryInfo=None,
        nvmlDeviceGetMaxClockInfo=None,
        nvmlDeviceGetMemoryBusWidth=None,
    )
    monkeypatch.setitem(sys.modules, "pynvml", silent)
    assert nvml_cards() == (Card("NVIDIA GB10"),)


@pytest.mark.parametrize("function", ["nvmlInit", "nvmlDeviceGetCount"])
def test_nvml_without_a_driver_is_no_answer(function: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml(**{function: None}))
    assert nvml_cards() is None


def test_nvml_not_installed_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert nvml_cards() is None


def test_nominal_bandwidth_of_a_card() -> None:
    """384 bits at twice 10501 MHz: the 1008 GB/s of an RTX 4090."""
    card = Card("RTX 4090", memory_clock_hz=10501e6, bus_bits=384)
    assert card.bytes_per_s == pytest.approx(1008.1e9, rel=1e-4)
    assert card.data_rate_gbps == pytest.approx(21.0, rel=1e-3)
