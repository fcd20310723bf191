"""Energy and laws as a user types them, and what is refused."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from cli_tools import good, run

import tokcast

ASK = ("predict", "llama-3.1-8b@Q4_K_M", "--host", "RTX 4090", "-d", "0")


def test_energy_is_there_when_asked_for_only() -> None:
    assert "J/token" not in good(*ASK)
    said = json.loads(good(*ASK, "-o", "json"))
    assert "energy" not in said
    said = json.loads(good(*ASK, "--energy", "-o", "json"))
    for p in said["predictions"]:
        e = p["energy"]
        assert e["low"] < e["joules_per_token"] < e["high"]
        assert e["joules_per_token"] == pytest.approx(e["watts"] / p["tok_per_s"])
        assert e["meter"] == "gpu_board"


def test_energy_is_said_beside_a_workloads_tasks() -> None:
    said = good(*ASK[:4], "--workload", "chat", "--tasks", "20", "--energy")
    assert "\n1,000 answers of 512 + 128 tokens: " in said


def test_a_thousand_answers_by_hand() -> None:
    said = json.loads(good(*ASK, "--price", "0.30", "--grid", "DE", "-o", "json"))
    prefill, decode = (p["energy"]["joules_per_token"] for p in said["predictions"])
    answers = said["energy"]["thousand_answers"]
    assert answers["joules"] == pytest.approx(1000 * (512 * prefill + 128 * decode))
    kwh = answers["joules"] / 3.6e6
    assert answers["cost"] == pytest.approx(0.30 * kwh)
    assert answers["co2_grams"] == pytest.approx(380.95 * kwh)


def test_a_limit_slows_and_saves() -> None:
    free = json.loads(good(*ASK, "-p", "0", "--energy", "-o", "json"))["predictions"][0]
    held = json.loads(good(*ASK, "-p", "0", "--power-limit", "270", "-o", "json"))
    (p,) = held["predictions"]
    assert p["tok_per_s"] < free["tok_per_s"]
    assert p["energy"]["joules_per_token"] < free["energy"]["joules_per_token"]
    assert p["energy"]["watts"] <= 270
    assert held["energy"]["power_limit_w"] == 270
    best = held["energy"]["least_energy_limits"][0]
    assert 0 < best["energy"] < 1


def test_python_says_the_same() -> None:
    answer = tokcast.predict("llama-3.1-8b@Q4_K_M", host="RTX 4090", n_depth=0, price=0.3)
    said = json.loads(good(*ASK, "--energy", "-o", "json"))
    assert answer.energy is not None
    assert [e.joules_per_token for e in answer.energy.energies] == [
        p["energy"]["joules_per_token"] for p in said["predictions"]
    ]


def test_several_models_have_a_column() -> None:
    text = good("predict", "llama-3.1-8b@Q4_K_M", "qwen3-8b@Q8_0", "--host", "RTX 4090", "--energy")
    assert "J/token" in text


def test_a_host_without_a_power_says_so() -> None:
    text = good("predict", "qwen3-8b@Q4_K_M", "--bandwidth", "400", "--energy", "-d", "0")
    assert "no power is published" in text


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((*ASK, "--price", "-1"), "--price '-1': expected what a kWh costs"),
        ((*ASK, "--price", "cheap"), "--price 'cheap': expected what a kWh costs"),
        ((*ASK, "--grid", "XX"), "--grid 'XX': expected grams of CO2 a kWh"),
        ((*ASK, "--grid", "-5"), "--grid '-5': expected grams of CO2 a kWh"),
        ((*ASK, "--power-limit", "0"), "--power-limit '0': expected watts"),
        ((*ASK, "--power-limit", "20"), "--power-limit 20: expected 135 to 675 W"),
        (
            ("predict", "qwen3-8b@Q4_K_M", "--host", "M4 Max 40-core", "--power-limit", "40"),
            "--power-limit 40: no limit was measured on a chip like Apple M4 Max",
        ),
        (("scaling", "--params", "many"), "--params 'many': expected parameters such as 8B"),
        (("scaling", "--backend", "Abacus"), "--backend 'Abacus': no law; expected one of"),
        (("scaling", "--params", "8B", "--bits", "0"), "--bits '0': expected bits a weight"),
        (("scaling", "--plot", "x.png"), "--plot x.png: expected a file name that ends with .svg"),
        (("scaling", "--save", "/nowhere/x.json"), "its folder is missing"),
        (("energy", "evaluate", "--save", "/nowhere/x.json"), "its folder is missing"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], expected: str) -> None:
    found = run(*arguments)
    assert found.code == 2
    assert expected in found.err
    assert found.err.count("\n") == 1


def test_laws_are_asked_with_a_warning_outside_the_data(tmp_path: Path) -> None:
    drawn = tmp_path / "laws.svg"
    text = good(
        *("scaling", "--backend", "CUDA", "--params", "8B", "--bandwidth", "90000"),
        *("--plot", str(drawn)),
    )
    assert "warning: bandwidth 9e+13 lies outside the data" in " ".join(text.split())
    assert ET.parse(drawn).getroot().tag.endswith("svg")
    said = json.loads(good("scaling", "--params", "8B", "--bandwidth", "1008", "-o", "json"))
    cuda = next(a for a in said["asked"] if a["group"] == "CUDA")
    assert cuda["warnings"] == []
    assert cuda["low"] < cuda["value"] < cuda["high"]
