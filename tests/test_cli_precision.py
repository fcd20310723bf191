"""`tokcast recommend`, `adapt` and `precision` as they are typed."""

import io
import json
import sys
from pathlib import Path

import pytest
from cli_tools import good, refused, run

HOST = ("--host", "GB10")
LLAMA = "llama-3-8b"


def _json(*words: object) -> dict[str, object]:
    return json.loads(run(*words, "-o", "json").out)  # type: ignore[no-any-return]


def test_recommend_names_a_plan_its_operators_and_a_file() -> None:
    out = good("recommend", LLAMA, "--context", "4k", *HOST)
    assert out.startswith("fp8_balanced for Llama 3 8B on NVIDIA GB10, generating at a context")
    words = " ".join(out.split())
    assert "28.5 ms at the data sheet's peaks, 35.1 tok/s at most; 2.00 x 16 bits" in words
    assert "FP8_E4M3 keeps 99.5 % of MMLU (99.1 - 99.9, 6 models)" in words
    assert "softmax, silu, rope" in words
    assert "As a file for llama.cpp: Q8_0, " in words
    assert "intel/auto-round" in words


def test_recommend_as_data() -> None:
    data = _json("recommend", LLAMA, *HOST, "--objective", "speed")
    assert (data["pick"], data["shown"]) == ("nvfp4_blackwell", "nvfp4_blackwell")
    plans = data["plans"]
    assert isinstance(plans, list)
    assert len(plans) == 6
    for plan in plans:
        parts = sum(o["seconds"] for o in plan["operators"])
        assert plan["seconds"] == pytest.approx(parts)
    lines = good("recommend", LLAMA, *HOST, "-o", "jsonl").splitlines()
    assert len(lines) == 6
    assert good("recommend", LLAMA, *HOST, "-o", "csv").count("\n") == 7


def test_the_file_is_the_one_that_select_takes() -> None:
    data = _json("recommend", LLAMA, *HOST)
    chosen = _json("select", LLAMA, *HOST, "--at-depth", "4k", "--min-decode", "1")
    assert data["file_type"]["file_type"] == chosen["pick"]["quant"]  # type: ignore[index]


def test_a_plan_and_a_cache_that_are_asked_for() -> None:
    data = _json("recommend", LLAMA, *HOST, "--plan", "w4a16_aggressive", "--kv", "NVFP4")
    assert data["shown"] == "w4a16_aggressive+kv_nvfp4"
    out = good("recommend", LLAMA, *HOST, "--plan", "hybrid_long_context", "-c", "32k")
    assert out.startswith("hybrid_long_context for Llama 3 8B")
    words = " ".join(out.split())
    assert "K/V: published of llama.cpp's q4_0, not of NVFP4" in words


def test_where_nothing_fits_the_exit_code_says_so() -> None:
    done = run("recommend", "llama-3-70b", "--host", "RTX 3060 12GB")
    assert done.code == 1
    assert "Nearest: w4a16_aggressive: 2.97 x the memory" in done.out


def test_prefill_and_numbers_for_a_host() -> None:
    data = _json("recommend", LLAMA, "--phase", "prefill", "--bandwidth", "400", "--tflops", "50")
    assert data["pick"] == "fp16_baseline"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--objective", "fast"), "--objective 'fast': expected one of balanced, speed, memory"),
        (("--phase", "train"), "--phase 'train': expected decode or prefill"),
        (("-c", "0"), "--context '0': expected one number of at least 1"),
        (("-c", "64m"), "--context"),
        (("--kv", "FP3"), "format 'FP3': expected one of FP32"),
        (("--plan", "all"), "plan 'all': expected one of fp16_baseline"),
    ],
)
def test_recommend_refuses(words: tuple[str, ...], message: str) -> None:
    assert message in refused("recommend", LLAMA, *HOST, *words)


def test_a_host_without_a_rate() -> None:
    said = refused("recommend", LLAMA, "--bandwidth", "400")
    assert "no rate of arithmetic is known; --tflops gives that of 16 bits" in said


# --- tables


def test_formats() -> None:
    rows = [json.loads(line) for line in good("precision", "formats", "-o", "jsonl").splitlines()]
    assert {r["format"]: r["bits"] for r in rows}["NVFP4"] == 4.5


def test_product_is_a_gemv_or_a_gemm() -> None:
    out = good("precision", "product", "-n", "14336", "-k", "4096", *HOST)
    assert out.startswith("GEMV 1 x 14336 x 4096: 0.117 Gflop on NVIDIA GB10")
    data = _json("precision", "product", "-m", "4096", "--weights", "FP16", *HOST)
    (row,) = data["products"]  # type: ignore[misc]
    assert (row["kind"], row["bound"]) == ("GEMM", "compute")
    assert "product of" not in refused("precision", "product", "-m", "0", *HOST)
    assert "format ''" in refused("precision", "product", "--weights", ",", *HOST)


def test_attention() -> None:
    data = _json("precision", "attention", "--queries", "4k", "--format", "FP8", *HOST)
    kernels = data["kernels"]
    assert isinstance(kernels, list)
    assert [k["format"] for k in kernels] == ["FP16", "FP16", "FP8_E4M3", "FP8_E4M3"]
    moved = [k["bytes"] for k in kernels]
    assert moved == sorted(moved, reverse=True)
    assert "expected a multiple" in refused("precision", "attention", "--heads", "7", *HOST)
    assert "--kept" in refused("precision", "attention", "--kept", "none", *HOST)


def test_published_times_beside_ours() -> None:
    out = good("precision", "published")
    assert out.startswith("5 of 5 published times come out within 3 %")
    for row in _json("precision", "published")["rows"]:  # type: ignore[attr-defined]
        assert row["reproduced_ms"] + sum(row["bridge"].values()) == pytest.approx(row["ledger_ms"])


# --- adapt


def _runs(tmp_path: Path, *rows: object, name: str = "runs.jsonl") -> Path:
    path = tmp_path / name
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def _row(speed: float, depth: int = 0, plan: str = "fp16_baseline") -> dict[str, object]:
    return {"plan": plan, "tok_per_s": speed, "n_depth": depth}


ADAPT = ("-m", LLAMA, "--min-decode", "20", *HOST)


def test_adapt_says_when_to_change(tmp_path: Path) -> None:
    path = _runs(tmp_path, *[_row(15.0)] * 4)
    done = run("adapt", path, *ADAPT)
    assert done.code == 1
    assert done.out.startswith("Change from fp16_baseline to fp8_balanced: ")
    assert "15 tok/s at depth 0: below 20" in done.out
    assert "4 runs, 0 outliers set aside, 1 changes." in done.out
    kept = run("adapt", _runs(tmp_path, *[_row(25.0)] * 4), *ADAPT)
    assert kept.code == 0
    assert kept.out.startswith("Stay with fp16_baseline")


def test_adapt_follows_stdin_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "file_type,avg_ts,n_depth\n" + "Q8_0,15,0\n" * 3 + "\n" + "Q4_K_M,33,0\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    done = run("adapt", "-", "--plans", "Q8_0,Q4_K_M", *ADAPT, "-o", "jsonl")
    rows = [json.loads(line) for line in done.out.splitlines()]
    assert [r["plan"] for r in rows] == ["Q8_0", "Q8_0", "Q4_K_M", "Q4_K_M"]
    assert [r["changed"] for r in rows] == [False, False, True, False]
    assert done.code == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no runs; expected lines with plan and tok_per_s"),
        ("hello there\n", "line 1: 'hello there'; expected JSON lines, or a header"),
        ("{\n", "line 1: '{' is no JSON object"),
        ('{"tok_per_s": 3}\n', "line 1: no plan"),
        ('{"plan": "fp16_baseline"}\n', "line 1: tok_per_s is None; expected a speed above 0"),
        ('{"plan": "fp16_baseline", "tok_per_s": -3}\n', "line 1: tok_per_s is -3.0"),
        ('{"plan": "fp16_baseline", "tok_per_s": true}\n', "tok_per_s is 'True'; expected a num"),
        ('{"plan": "fp16_baseline", "tok_per_s": NaN}\n', "tok_per_s is 'nan'; expected a number"),
        ('{"plan": "fp16_baseline", "tok_per_s": 3, "n_depth": 1.5}\n', "n_depth is 1.5; expected"),
        ('{"plan": "fp16_baseline", "tok_per_s": 3, "n_depth": -1}\n', "n_depth is -1; expected"),
        ('{"plan": "fp16_baseline", "tok_per_s": 3, "outlier": -1}\n', "outlier is -1; expected"),
        ('{"plan": "x", "tok_per_s": 3}\n', "run 1: plan 'x': expected one of fp16_baseline"),
        ("plan,tok_per_s\nfp16_baseline,fast\n", "line 2: tok_per_s is 'fast'; expected a number"),
        ("plan,tok_per_s\nfp16_baseline\n", "line 2: tok_per_s is None"),
    ],
)
def test_adapt_refuses_lines_that_are_no_runs(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "runs"
    path.write_text(text)
    assert message in refused("adapt", path, *ADAPT)


def test_adapt_refuses_requests(tmp_path: Path) -> None:
    path = _runs(tmp_path, _row(30.0))
    assert "expected a file of runs, or -" in refused("adapt", tmp_path / "absent", *ADAPT)
    assert "--start 'x'" in refused("adapt", path, *ADAPT, "--start", "x")
    assert "--plans 'fp16_baseline,fp16_baseline'" in refused(
        "adapt", path, *ADAPT, "--plans", "fp16_baseline,fp16_baseline"
    )
    words = ("-m", LLAMA, "--min-decode", "0", *HOST)
    assert "--min-decode '0'" in refused("adapt", path, *words)
