"""Hosts on the command line: named, given by numbers or a file, detected; `hosts`, `doctor`."""

import json
import os
from pathlib import Path

import pytest
from cli_tools import MODEL, RTX, good, predicted, refused, run

from tokcast.hosts.detect import Detection
from tokcast.hosts.registry import chip

pytestmark = pytest.mark.usefixtures("empty_home", "eighty_columns")


# Named, given, detected
@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("rtx4090", "NVIDIA GeForce RTX 4090"),
        ("4090", "NVIDIA GeForce RTX 4090"),
        ("NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4090"),
        ("m4 max 40-core", "Apple M4 Max 40-core GPU"),
        ("7900 xtx", "AMD Radeon RX 7900 XTX"),
    ],
)
def test_spellings_of_hosts(typed: str, name: str) -> None:
    assert predicted(MODEL, "--host", typed, "-d", "0")["host"]["name"] == name


@pytest.mark.parametrize(
    ("host", "backend"),
    [
        ("RTX 4090", "CUDA"),
        ("7900 XTX", "ROCm"),
        ("Ryzen AI Max+ 395", "Vulkan"),
        ("M4 Max 40-core", "Metal"),
        ("Arc B580", "Vulkan"),
        ("Xeon X5660", "CPU"),
    ],
)
def test_the_usual_backend_of_a_host(host: str, backend: str) -> None:
    result = run("predict", MODEL, "--host", host, "-d", "0", "-o", "json")
    assert json.loads(result.out)["host"]["backend"] == backend


def test_a_host_from_numbers() -> None:
    data = predicted(MODEL, "--bandwidth", "400", "--tflops", "30", "--memory", "24G", "-d", "0")
    assert data["host"]["bytes_per_s"] == 400e9
    assert data["host"]["memory_bytes"] == 24 * 2**30
    assert data["provenance"]["evidence"] == "spec sheet only"
    assert "backend Vulkan assumed; --backend says otherwise" in data["warnings"]
    unknown = good("predict", MODEL, "--bandwidth", "400", "--backend", "cuda")
    assert "this host's memory is not known (--memory)" in " ".join(unknown.split())
    assert "no compute rate given" in unknown
    assert "assumed; --backend" not in unknown


def test_a_host_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "host.toml"
    path.write_text(
        'chip = "My card"\nvendor = "NVIDIA"\nbytes_per_s = 500e9\nmemory_bytes = 16e9\n'
    )
    data = predicted(MODEL, "--host", path, "-d", "0")
    assert (data["host"]["name"], data["host"]["backend"]) == ("My card", "CUDA")
    assert f"{path} gives no source for bytes_per_s" in data["warnings"]
    assert "unknown key 'bandwith'" in refused_toml(path, "bandwith = 5")
    assert "not a TOML host file" in refused_toml(path, "= 5")


def refused_toml(path: Path, text: str) -> str:
    path.write_text(text)
    return refused("predict", MODEL, "--host", path)


def test_a_bandwidth_known_better() -> None:
    slow, fast = (
        predicted(MODEL, *RTX, "--bandwidth", b, "-d", "0", "-p", "0") for b in ("500", "1TB/s")
    )
    assert slow["predictions"][0]["tok_per_s"] < fast["predictions"][0]["tok_per_s"]
    assert slow["host"]["name"] == fast["host"]["name"] == "NVIDIA GeForce RTX 4090"


def detection(monkeypatch: pytest.MonkeyPatch, *hosts: str) -> None:
    found = Detection(tuple(chip(h) for h in hosts), 32 * 2.0**30, ("one thing is unsure",))
    monkeypatch.setattr("tokcast.hosts.detect.detect", lambda: found)


def test_without_a_host_this_machine_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    detection(monkeypatch, "NVIDIA GeForce RTX 3090", "Intel Xeon X5660")
    data = predicted(MODEL, "-d", "0")
    assert data["host"]["name"] == "NVIDIA GeForce RTX 3090"
    assert "one thing is unsure" in data["warnings"]


def test_a_machine_that_is_not_recognised(monkeypatch: pytest.MonkeyPatch) -> None:
    detection(monkeypatch)
    assert refused("predict", MODEL) == (
        "this machine was not recognised; give --host NAME or --bandwidth GB/s"
    )
    result = run("hosts", "detect")
    assert (result.code, result.err) == (1, "")
    assert result.out.startswith("No chip was recognised")
    doctor = run("doctor")
    assert doctor.code == 1
    assert ": problems: 1\n" in doctor.out


def test_this_very_machine_is_looked_at() -> None:
    """Whatever is found here, it is said in words and data."""
    result = run("hosts", "detect", "-o", "json")
    data = json.loads(result.out)
    assert result.code == (0 if data["hosts"] else 1)
    assert set(data) == {"hosts", "memory_bytes", "notes"}


# The commands on hosts
def test_hosts_detect(monkeypatch: pytest.MonkeyPatch) -> None:
    detection(monkeypatch, "NVIDIA GeForce RTX 3090")
    assert (
        good("hosts", "detect")
        == """\
NVIDIA GeForce RTX 3090 would run the model; the machine has 32.00 GiB of memory

chip                     GB/s  TFLOPS  memory  confidence
NVIDIA GeForce RTX 3090   936     142  24 GiB  high

Note: one thing is unsure.
"""
    )


def test_hosts_list() -> None:
    everything = json.loads(good("hosts", "list", "-o", "json"))["hosts"]
    assert len(everything) >= 1010
    assert len({h["name"] for h in everything}) == len(everything)
    some = good("hosts", "list", "RTX 4090").splitlines()
    assert some[0].endswith(" chips with 'RTX 4090' in the name")
    assert some[3].startswith("NVIDIA GeForce RTX 4090 ")
    assert good("hosts", "list", "x5660").startswith("1 chip with")
    # In no name, and yet a chip: what `--host` takes is found too.
    assert good("hosts", "list", "dgx spark").startswith("1 chip for 'dgx spark'\n")
    none = run("hosts", "list", "abacus")
    assert (none.code, none.out, none.err) == (1, "0 chips with 'abacus' in the name\n", "")
    assert max(map(len, good("hosts", "list").splitlines())) <= 80


def test_hosts_show_gives_sources() -> None:
    text = good("hosts", "show", "rtx 4090")
    assert text.startswith("NVIDIA GeForce RTX 4090: graphics card, Ada\n")
    assert "memory bandwidth 1,008 GB/s" in " ".join(text.split())
    assert "Source: " in text
    data = json.loads(good("hosts", "show", "rtx 4090", "-o", "json"))
    assert set(data["source"]) >= {"bytes_per_s", "matrix_fp16_flops_per_s"}
    assert good("hosts", "show", "2x 3090").startswith("2x NVIDIA GeForce RTX 3090: ")


def test_doctor(monkeypatch: pytest.MonkeyPatch) -> None:
    detection(monkeypatch, "NVIDIA GeForce RTX 3090")
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    text = good("doctor")
    assert text.startswith("tokcast ")
    assert text.splitlines()[0].endswith(": ready to predict")
    assert "hf_secret" not in text
    # A path is not broken, so that it can be copied.
    assert all(len(line) <= 80 or os.sep in line for line in text.splitlines())
    checks = json.loads(good("doctor", "-o", "json"))["checks"]
    assert {c["status"] for c in checks} <= {"ok", "note", "problem"}
    assert {"coefficients", "chips", "catalogue", "chip", "HF_TOKEN"} <= {
        c["check"] for c in checks
    }
