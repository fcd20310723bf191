"""`tokcast predict`: what is asked for, and what is read."""

import json
from pathlib import Path

import pytest
from cli_tools import MODEL, RTX, good, labels, predicted, refused, small
from http_server import Page, hub, serve
from model_files import mlx_files, split_gguf
from oracles import GEMMA, real

pytestmark = pytest.mark.usefixtures("empty_home", "eighty_columns")


def test_default_tests() -> None:
    assert labels(MODEL, *RTX) == [
        "pp512",
        "tg128",
        "pp512 @ d4096",
        "tg128 @ d4096",
        "pp512 @ d16384",
        "tg128 @ d16384",
    ]


def test_lists_sweep() -> None:
    found = labels(MODEL, *RTX, "-p", "64,1k", "-n", "32,0", "-d", "0,8k")
    assert found == [
        "pp64",
        "pp1024",
        "tg32",
        "pp64 @ d8192",
        "pp1024 @ d8192",
        "tg32 @ d8192",
    ]


def test_one_phase_alone() -> None:
    assert labels(MODEL, *RTX, "-p", "0", "-d", "0") == ["tg128"]
    assert labels(MODEL, *RTX, "-n", "0", "-d", "0") == ["pp512"]
    text = good("predict", MODEL, *RTX, "-p", "0", "-d", "0")
    assert "reading" not in text
    assert "llama-bench -m MODEL -p 0 -n 128 -d 0" in text


def test_a_model_of_a_short_context_is_not_asked_beyond_it(tmp_path: Path) -> None:
    assert labels(small(tmp_path / "a.gguf", context=2048), *RTX) == ["pp512", "tg128"]
    assert labels(small(tmp_path / "b.gguf", context=8192), *RTX)[-1] == "tg128 @ d4096"
    tiny = predicted(small(tmp_path / "c.gguf", context=256), *RTX)
    assert tiny["warnings"][-1] == "trained for a context of 256, but 512 asked for"


def test_a_depth_beyond_the_context_is_a_warning() -> None:
    data = predicted(MODEL, *RTX, "-d", "200k", "--memory", "80G")
    assert "trained for a context of 131072, but 205312 asked for" in data["warnings"]
    assert [p["n_depth"] for p in data["predictions"]] == [204800, 204800]


def test_models_come_in_the_order_of_arguments(tmp_path: Path) -> None:
    a, b = small(tmp_path / "a.gguf", "A"), small(tmp_path / "b.gguf", "B")
    data = json.loads(good("predict", a, "-m", b, "-m", MODEL, *RTX, "-o", "json"))
    assert list(data) == ["results"]
    assert {d["model"]["name"] for d in data["results"]} == {"A", "B", "Llama 3.1 8B"}
    rates = [d["predictions"][1]["tok_per_s"] for d in data["results"]]
    assert rates == sorted(rates, reverse=True)


def test_hf_never_means_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").mkdir()
    small(tmp_path / "own" / "model")
    monkeypatch.chdir(tmp_path)
    assert "Small F16" in good("predict", "own/model", *RTX)
    assert "offline" in refused("predict", "-hf", "own/model", *RTX, "--offline")


def test_a_model_of_the_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = small(tmp_path / "m-Q4_K_M.gguf", "Remote").read_bytes() + bytes(4096)
    with serve() as server:
        hub(server, "own/model", {"m-Q4_K_M.gguf": body})
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        text = good("predict", "-hf", "own/model:Q4_K_M", *RTX)
    assert text.startswith("Remote F16 on ")


def test_a_model_of_a_web_server(tmp_path: Path) -> None:
    body = small(tmp_path / "m.gguf", "Remote").read_bytes() + bytes(4096)
    with serve({"/m.gguf": Page(body)}) as server:
        text = good("predict", f"{server.url}/m.gguf", *RTX)
    assert text.startswith("Remote F16 on ")
    assert "Check it: llama-bench -m MODEL " in text


def test_an_mlx_folder(tmp_path: Path) -> None:
    for name, body in mlx_files().items():
        (tmp_path / name).write_bytes(body)
    data = predicted(tmp_path, "--host", "M4 Max 40-core")
    assert data["model"]["format"] == "mlx"
    assert (data["host"]["runtime"], data["host"]["backend"]) == ("mlx", "MLX")


def test_a_model_in_parts(tmp_path: Path) -> None:
    for part, body in enumerate(split_gguf(3), start=1):
        (tmp_path / f"m-{part:05}-of-00003.gguf").write_bytes(body)
    text = good("inspect", tmp_path / "m-00002-of-00003.gguf")
    assert " in 3 files" in text
    (tmp_path / "m-00003-of-00003.gguf").unlink()
    assert "m-00003-of-00003.gguf" in refused("predict", tmp_path / "m-00001-of-00003.gguf", *RTX)


def test_the_whole_real_file() -> None:
    text = good("predict", real(GEMMA), *RTX)
    assert text.startswith("Gemma 3 270m Q4_K_M on NVIDIA GeForce RTX 4090 (llama.cpp, CUDA)\n")
    assert "types" not in text
    types = good("inspect", real(GEMMA)).split("\n\n")[1]
    # Labelled Q4_K_M, but rows of 640 are no multiple of 256: two thirds are Q8_0 and Q5_0.
    assert [line.split()[0] for line in types.splitlines()] == [
        "type",
        "Q8_0",
        "Q5_0",
        "Q4_K",
        "Q6_K",
        "F32",
    ]
