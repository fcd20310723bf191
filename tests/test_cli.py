"""The command line as a user meets it: real files, real hosts, real coefficients."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_tools import Result, good, refused, run, save, small
from http_server import Page, hub, serve
from model_files import mlx_files, split_gguf
from oracles import GEMMA, real
from small_models import dense, header, outside, tensor

from tokcast.cli import app, startup
from tokcast.hosts.detect import Detection
from tokcast.hosts.registry import chip
from tokcast.predictor.catalogue import names

TOKCAST = Path(sys.executable).with_name("tokcast")
MODEL = "llama-3.1-8b@Q4_K_M"
RTX = ("--host", "RTX 4090")
GEOMETRY = {
    "n_context",
    "weights_bytes",
    "kv_bytes",
    "recurrent_bytes",
    "compute_bytes",
    "device_bytes",
    "host_bytes",
    "need_bytes",
    "available_bytes",
    "fits",
    "largest_context",
}


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Eighty columns, and a home in which nothing lies."""
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("HOME", "USERPROFILE", "TOKCAST_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    for name in ("HF_HOME", "HF_TOKEN", "HF_ENDPOINT", "HF_HUB_OFFLINE", "LLAMA_CACHE"):
        monkeypatch.delenv(name, raising=False)


def predicted(*args: str | Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(good("predict", *args, "-o", "json"))
    return data


def labels(*args: str | Path) -> list[str]:
    rows = good("predict", *args, "-o", "jsonl").splitlines()
    return [json.loads(row)["test"] for row in rows]


def script(*args: str, **kwargs: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TOKCAST, *args], capture_output=True, text=True, timeout=60, check=False, **kwargs
    )


# The installed script


def test_the_script_predicts() -> None:
    done = script("predict", MODEL, *RTX, "--offline")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        "Llama 3.1 8B Q4_K_M on NVIDIA GeForce RTX 4090 (llama.cpp, CUDA)\n"
    )


def test_the_script_fails_in_one_line() -> None:
    done = script("predict", "no such model", *RTX)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("tokcast: ")
    assert done.stderr.count("\n") == 1


def test_a_reader_that_leaves_is_no_error() -> None:
    command = f"{TOKCAST} hosts list | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=60, check=True
    )
    first, status = done.stdout.splitlines()
    assert (first.split()[1:], status, done.stderr) == (["chips"], "0", "")


def test_a_terminal_without_the_characters() -> None:
    done = script(
        "predict", MODEL, *RTX, "-o", "md", env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert done.returncode == 0
    assert r"\xb1" in done.stdout


def test_light_commands_import_nothing_heavy(tmp_path: Path) -> None:
    """A prediction from a file needs neither numbers' nor network's libraries."""
    heavy = (
        "numpy scipy pandas statsmodels gguf httpx rich pydantic psutil platformdirs ssl "
        "urllib.request concurrent.futures email"
    )
    code = (
        "import sys; from tokcast.cli.app import main\n"
        "try: main()\n"
        "finally: print([m for m in sys.argv[1].split() if m in sys.modules], file=sys.stderr)"
    )
    code = code.replace("sys.argv[1]", repr(heavy))
    path = small(tmp_path / "small.gguf")
    done = subprocess.run(
        [sys.executable, "-c", code, "predict", str(path), *RTX],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "[]\n")


# Help, version, usage


def test_the_version() -> None:
    name, number = good("--version").split()
    assert name == "tokcast"
    assert number[0].isdigit()


@pytest.mark.parametrize(
    "command",
    ["", "predict", "inspect", "doctor", "fit", "evaluate", "hosts", "hosts list", "hosts show"],
)
def test_help_fits_the_screen_and_leaks_no_types(command: str) -> None:
    short, long = (good(*command.split(), flag) for flag in ("-h", "--help"))
    assert short == long
    assert short.startswith(f"Usage: tokcast {command}".rstrip())
    assert max(map(len, short.splitlines())) <= 80
    assert "list[" not in short
    assert "..." not in short.partition("Commands:")[2]


@pytest.mark.parametrize("command", [[], ["hosts"]])
def test_a_command_that_needs_another_word_shows_its_help(command: list[str]) -> None:
    result = run(*command)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("Usage: tokcast")
    assert "Commands:" in result.err


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (["predict", MODEL, "--hots", "x"], "No such option: --hots (Possible options: --host"),
        (["bogus"], "No such command 'bogus'; see tokcast -h"),
        (["hosts", "bogus"], "No such command 'bogus'; see tokcast hosts -h"),
        (["hosts", "show"], "Missing argument 'NAME'; see tokcast hosts show -h"),
        (["inspect"], "Missing argument 'MODEL'; see tokcast inspect -h"),
        (["predict", MODEL, "-d"], "Option '-d' requires an argument; see tokcast"),
        (["hosts", "list", "a", "\x1b[31m"], "Got unexpected extra argument"),
    ],
)
def test_usage_errors_take_one_line(args: list[str], line: str) -> None:
    assert refused(*args).startswith(line)


def test_typer_without_its_inner_parts_still_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("typer._coercion.RuntimeParam")
    monkeypatch.setattr(app, "hide_types", lambda command: None)
    assert labels(MODEL, *RTX, "-d", "0") == ["pp512", "tg128"]
    assert labels("-m", MODEL, *RTX, "-d", "0", "-n", "0") == ["pp512"]
    assert refused("predict") == (
        "no model given; expected a file, owner/repo[:quant] or name@FILETYPE"
    )


def test_every_parameter_is_passed_through() -> None:
    """An option of another kind would silently arrive as text."""
    command = app.typer.main.get_command(app.application())
    kinds = {p.type_descriptor.annotation for p in startup._parameters(command)}
    assert kinds <= set(startup.PLAIN)


def test_defects_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokcast.hosts.registry.chips", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        run("hosts", "list")


def test_an_interrupt_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tokcast.hosts.registry.chips", interrupted)
    result = run("hosts", "list")
    assert (result.code, result.out, result.err) == (130, "", "")


# predict: what is asked for


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


# predict: what comes out


@pytest.mark.parametrize("host", ["RTX 4090", "M4 Max 40-core", "Ryzen AI Max+ 395"])
@pytest.mark.parametrize("model", ["llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v3"])
def test_a_default_prediction_fits_one_screen(model: str, host: str) -> None:
    text = run("predict", f"{model}@Q4_K_M", "--host", host).out
    assert len(text.splitlines()) <= 24
    assert max(map(len, text.splitlines())) <= 80


def test_every_model_of_the_catalogue_has_a_title_of_one_line() -> None:
    models = [f"{name}@Q4_K_M" for name in names()]
    numbers = ("--bandwidth", "1792", "--memory", "96G", "--backend", "CUDA")
    text = good("predict", *models, *numbers, "-d", "0,32k")
    table = text.split("\n\n")[1].splitlines()
    assert len(table) == 1 + len(models)
    assert max(map(len, table)) <= 80
    fits = [line.split()[-1] for line in table[1:]]
    assert fits == sorted(fits, reverse=True)


@pytest.mark.parametrize("columns", ["20", "40", "60", "80", "100", "1000"])
def test_narrow_and_wide_screens(columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    one = good("predict", MODEL, *RTX)
    several = good("predict", MODEL, "qwen3-30b-a3b@Q4_K_M", *RTX, "-d", "0")
    limit = min(max(int(columns), 60), 100)
    for line in (*one.splitlines()[:-1], *several.splitlines()):
        assert len(line) <= limit


def test_json_is_the_documented_one() -> None:
    data = predicted(MODEL, *RTX, "-d", "0")
    assert set(data) == {"model", "host", "predictions", "memory", "provenance", "warnings"}
    assert set(data["memory"]) == GEOMETRY
    assert set(data["provenance"]) == {"coefficients", "calibrated", "evidence"}
    assert data["provenance"]["calibrated"] is False
    assert data["model"]["n_params"] == 8_030_261_312
    assert data["host"]["bytes_per_s"] == 1008e9
    for p in data["predictions"]:
        assert p["phase"] in ("prefill", "decode")
        assert p["bound"] in ("memory", "compute", "overhead")
        assert p["low"] <= p["tok_per_s"] <= p["high"]
        tokens = p["n_prompt"] or 1
        assert p["seconds"] == pytest.approx(tokens / p["tok_per_s"])
    assert good("predict", MODEL, *RTX, "-o", "json").isascii()


def test_all_formats_agree() -> None:
    data = predicted(MODEL, *RTX)
    rows = [json.loads(r) for r in good("predict", MODEL, *RTX, "-o", "jsonl").splitlines()]
    cells = good("predict", MODEL, *RTX, "-o", "csv").splitlines()
    marks = good("predict", MODEL, *RTX, "-o", "md").splitlines()
    rates = [p["tok_per_s"] for p in data["predictions"]]
    assert rates == [r["tok_per_s"] for r in rows]
    column = cells[0].split(",").index("tok_per_s")
    assert rates == [float(line.split(",")[column]) for line in cells[1:]]
    assert [f"{r:.2f}" for r in rates] == [m.split("|")[7].split()[0] for m in marks[2:]]


def test_a_model_that_does_not_fit_is_still_predicted() -> None:
    result = run("predict", "llama-3.1-70b@Q4_K_M", *RTX, "-d", "0")
    assert (result.code, result.err) == (1, "")
    assert "  Does not fit: " in result.out
    assert "pp512" in result.out
    several = run("predict", "llama-3.1-70b@Q4_K_M", MODEL, *RTX, "-d", "0")
    assert several.code == 0


def test_more_memory_changes_the_answer_and_no_speed() -> None:
    small_card, large_card = (
        run("predict", "llama-3.1-70b@Q4_K_M", *RTX, "--memory", size, "-o", "json", "-d", "0")
        for size in ("24G", "48G")
    )
    assert (small_card.code, large_card.code) == (1, 0)
    one, other = json.loads(small_card.out), json.loads(large_card.out)
    assert one["predictions"] == other["predictions"]


def test_context_counts_in_memory_only() -> None:
    short, long = (predicted(MODEL, *RTX, "-d", "0", "-c", c) for c in ("4k", "64k"))
    assert short["predictions"] == long["predictions"]
    assert long["memory"]["kv_bytes"] == 16 * short["memory"]["kv_bytes"]


def test_cache_types_and_flash_attention_reach_the_memory() -> None:
    f16 = predicted(MODEL, *RTX, "-d", "16k")["memory"]
    q8 = predicted(MODEL, *RTX, "-d", "16k", "-ctk", "q8_0", "-ctv", "Q8_0")["memory"]
    assert q8["kv_bytes"] / f16["kv_bytes"] == 8.5 / 16
    off = predicted(MODEL, *RTX, "-d", "16k", "-fa", "off")["memory"]
    assert off["compute_bytes"] > f16["compute_bytes"]


def test_two_cards_have_the_memory_of_both_and_the_speed_of_one() -> None:
    one, two = (
        json.loads(run("predict", "llama-3.1-70b@Q4_K_M", "--host", h, "-d", "0", "-o", "json").out)
        for h in ("RTX 3090", "2x RTX 3090")
    )
    rates = [
        next(p["tok_per_s"] for p in answer["predictions"] if p["phase"] == "decode")
        for answer in (one, two)
    ]
    # Split by layer they take turns: a token still reads every weight once.
    assert rates[1] == pytest.approx(rates[0], rel=0.1)
    assert two["memory"]["available_bytes"] == 2 * one["memory"]["available_bytes"]
    assert (one["memory"]["fits"], two["memory"]["fits"]) == (False, True)
    assert two["host"]["n_devices"] == 2
    assert [d["name"] for d in two["placement"]["devices"]] == ["CUDA0", "CUDA1", "CPU"]
    assert "on 2x NVIDIA GeForce RTX 3090 " in good("predict", MODEL, "--host", "2x RTX 3090")


def test_an_unknown_architecture_gets_a_wide_interval_and_says_so(tmp_path: Path) -> None:
    model = dense("novel", context_length=4096, vocab_size=10, feed_forward_length=16)
    known = predicted(small(tmp_path / "known.gguf"), *RTX, "-d", "0")
    novel = predicted(save(tmp_path / "novel.gguf", model), *RTX, "-d", "0")
    assert novel["model"]["confidence"] == "generic"
    assert any("novel" in w for w in novel["warnings"])
    for k, n in zip(known["predictions"], novel["predictions"], strict=True):
        assert n["low"] / n["tok_per_s"] <= k["low"] / k["tok_per_s"] / 1.99
        assert n["high"] >= k["high"]


def test_explain_shows_memory_and_every_ledger() -> None:
    text = good("predict", MODEL, *RTX, "-d", "0", "--explain")
    blocks = [block.split()[0] for block in text.split("\n\n")]
    assert blocks[1:5] == ["test", "memory", "pp512", "tg128"]
    several = good("predict", MODEL, "qwen3-4b@Q8_0", *RTX, "-d", "0", "-p", "0", "--explain")
    assert "\ntg128, Llama 3.1 8B Q4_K_M " in several
    assert "\ntg128, Qwen3 4B Q8_0 " in several


def test_a_name_in_a_file_can_not_drive_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07\x9b31mname\n\u202efake"
    path = small(tmp_path / "a.gguf", evil)
    for command in (["predict", *RTX], ["inspect"], ["inspect", "--tensors"]):
        for output in ("table", "json", "jsonl", "csv", "md"):
            text = good(command[0], path, *command[1:], "-o", output)
            assert all(c.isprintable() or c == "\n" for c in text)
    assert predicted(path, *RTX)["model"]["name"] == evil


# predict: hosts


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


# hosts, inspect, doctor


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
    assert len(everything) >= 504
    assert len({h["name"] for h in everything}) == len(everything)
    some = good("hosts", "list", "RTX 4090").splitlines()
    assert some[0].endswith(" chips with 'RTX 4090' in the name")
    assert some[3].startswith("NVIDIA GeForce RTX 4090 ")
    assert good("hosts", "list", "x5660").startswith("1 chip with")
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


def test_inspect_counts_by_hand(tmp_path: Path) -> None:
    data = json.loads(good("inspect", small(tmp_path / "a.gguf"), "-o", "json"))
    # Per small_models: 192 of attention, 384 of feed-forward, 80 each outside, three norms of 8.
    assert data["model"]["n_params"] == 192 + 384 + 2 * 80 + 3 * 8
    assert data["model"]["n_bytes"] == 2 * (192 + 384 + 2 * 80) + 4 * 3 * 8
    # One head of 4 for keys and 4 for values, two bytes each.
    assert data["model"]["kv_bytes_per_token"] == 16
    assert data["model"]["file_type"] == "F16"


def test_inspect_says_each_warning_once(tmp_path: Path) -> None:
    path = small(tmp_path / "a.gguf")
    data = json.loads(good("inspect", path, "-o", "json"))
    assert len(data["warnings"]) == len(set(data["warnings"])) == 1
    assert good("inspect", path).count("Note: ") == 1


def test_inspect_lists_tensors(tmp_path: Path) -> None:
    text = good("inspect", small(tmp_path / "a.gguf"), "--tensors")
    assert "\ntoken_embd.weight 8x10 F16 160\n" in re.sub(" +", " ", text)
    rows = good("inspect", small(tmp_path / "a.gguf"), "--tensors", "-o", "csv").splitlines()
    assert rows[0] == "name,shape,type,n_bytes"
    assert rows[1] == 'token_embd.weight,"[8, 10]",F16,160'


def test_inspect_names_kinds_of_layers() -> None:
    for model, words in (
        ("deepseek-v3", "61 layers (all latent)"),
        ("gemma-3-4b", "34 layers (29 sliding, 5 full)"),
        ("falcon-h1-7b", "44 layers (all full + state-space)"),
    ):
        assert words in good("inspect", f"{model}@Q4_K_M")


def test_a_file_without_weights(tmp_path: Path) -> None:
    path = save(tmp_path / "vocab.gguf", replace(dense(), tensors=()))
    assert refused("predict", path, *RTX) == (
        f"{path}: holds no weights, only a vocabulary; nothing to predict"
    )
    result = run("inspect", path)
    assert result.code == 1
    assert "holds no weights" in result.out


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


def test_progress_stays_off_what_is_no_terminal(tmp_path: Path) -> None:
    result: Result = run("predict", small(tmp_path / "a.gguf"), *RTX)
    assert result.err == ""


def test_a_table_of_tied_weights_is_read(tmp_path: Path) -> None:
    """One table both ways: it is the head, and is read for every token."""
    table, _, norm = outside()
    keys = {"block_count": 0, "embedding_length": 8, "context_length": 4096}
    path = save(
        tmp_path / "tied.gguf", header("llama", keys, table, norm, tensor("x.weight", 8, 8))
    )
    rows = [json.loads(r) for r in run("inspect", path, "-o", "jsonl").out.splitlines()]
    assert [r["read_fraction"] for r in rows if r["component"] == "head"] == [1.0]
