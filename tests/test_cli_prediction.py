"""What `tokcast predict` prints: verdict, tables, data."""

import json
from pathlib import Path

import pytest
from cli_tools import MODEL, RTX, good, predicted, run, save, small
from small_models import dense

from tokcast.predictor.catalogue import names

pytestmark = pytest.mark.usefixtures("empty_home", "eighty_columns")


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
