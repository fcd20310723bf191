"""What is printed of predictions, to the character, from predictions made by hand."""

import json
from dataclasses import replace

import pytest
from small_models import dense

from tokcast.cli.fitting import Fit, fit, memory_notes
from tokcast.cli.predict_answer import Answer, Forecast
from tokcast.cli.predict_bench import check_command
from tokcast.cli.predict_comparison import comparison
from tokcast.cli.predict_report import single
from tokcast.cli.predict_request import Asked
from tokcast.cli.render import (
    render,
)
from tokcast.predictor.host import Host
from tokcast.predictor.memory import Setting
from tokcast.predictor.model import model_spec
from tokcast.predictor.prediction import Bound, ComponentTime, Prediction
from tokcast.predictor.terms import Run

pytestmark = pytest.mark.usefixtures("eighty_columns")


GIB = 1024.0**3


HOST = Host("Chip", "NVIDIA", "discrete_gpu", "A", 1e12, memory_bytes=8 * GIB)


SPEC = replace(
    model_spec(dense(context_length=131072)),
    name="Model 8B",
    file_type="Q4_K_M",
    n_params=8_030_261_312,
    n_bytes=4_912_898_304,
    source="model-8b@Q4_K_M",
    warnings=(),
)


def prediction(
    phase: str,
    tok_per_s: float,
    n_depth: int = 0,
    n_prompt: int = 0,
    bound: Bound = "memory",
    warnings: tuple[str, ...] = (),
) -> Prediction:
    seconds = max(n_prompt, 1) / tok_per_s
    weights = ComponentTime("ffn", "Q4_K", 4e9, 8e9, 0.75 * seconds, "memory")
    read = ComponentTime("kv_read", "F16", 1e9, 0.0, 0.247 * seconds, "memory")
    norm = ComponentTime("norm", "F32", 1e6, 0.0, 0.002 * seconds, "memory")
    step = ComponentTime("step", "", 0.0, 0.0, 0.001 * seconds, "overhead")
    return Prediction(
        phase="decode" if phase == "decode" else "prefill",
        n_prompt=n_prompt,
        n_depth=n_depth,
        tok_per_s=tok_per_s,
        low=0.8 * tok_per_s,
        high=1.25 * tok_per_s,
        level=0.8,
        seconds=seconds,
        bound=bound,
        components=(step, read, norm, weights),
        ceiling_tok_per_s=2 * tok_per_s,
        evidence="same host",
        n_observations=1234,
        warnings=warnings,
    )


def answer(
    decode: float = 130.04, host: Host = HOST, need: float = 6 * GIB, name: str = "Model 8B"
) -> Answer:
    asked = Asked((512,), (128,), (0, 16384), 512, "F16", "F16", True, None, host, ())
    forecasts = (
        Forecast(0, 0, prediction("prefill", 7500.4, n_prompt=512, bound="compute")),
        Forecast(128, 0, prediction("decode", decode, n_depth=64)),
        Forecast(0, 16384, prediction("prefill", 3000.2, 16384, 512, "compute")),
        Forecast(128, 16384, prediction("decode", decode / 1.5, n_depth=16448)),
    )
    fitted = fit(SPEC, host, 16896, Setting())
    use = replace(fitted.use, weights_device_bytes=need, kv_bytes=0.0, compute_device_bytes=0.0)
    shown = Fit(use, 16896, False, fitted.available_bytes, 131072)
    spec = replace(SPEC, name=name)
    return Answer(spec, asked, Run(), forecasts, shown, "0123456789ab", ())


def lines(text: str) -> list[str]:
    return text.strip("\n").split("\n")


def test_one_model_on_one_screen() -> None:
    assert (
        render(single(answer(), explain=False), "table")
        == """\
Model 8B Q4_K_M on Chip (llama.cpp, CUDA)
  130 tok/s generating (104 - 163), 7,500 tok/s reading (6,000 - 9,376)
  Fits: 6.00 GiB at a context of 16.5k, 8.00 GiB usable; largest context 128k

test            tok/s     80 % range  bound by
pp512           7,500  6,000 - 9,376  arithmetic
tg128             130      104 - 163  memory bandwidth
pp512 @ d16384  3,000  2,400 - 3,750  arithmetic
tg128 @ d16384   86.7     69.4 - 108  memory bandwidth

Read from model-8b@Q4_K_M.
Evidence: same host; coefficients 0123456789ab fitted on 1,234 published CUDA
  configurations.
Check it: llama-bench -m MODEL -p 512 -n 128 -d 0,16384"""
    )


def test_a_model_that_does_not_fit_says_so_before_its_speed() -> None:
    text = render(single(answer(need=9 * GIB), explain=False), "table")
    assert lines(text)[1:3] == [
        "  Does not fit: 9.00 GiB at a context of 16.5k, 8.00 GiB usable; a context of",
        "    128k would fit",
    ]
    assert lines(text)[3].startswith("  With enough memory: 130 tok/s generating (104 - 163), ")


def test_memory_that_is_not_known() -> None:
    host = replace(HOST, memory_bytes=None)
    a = answer(host=host)
    assert str(a.fit) == (
        "Needs 6.00 GiB at a context of 16.5k; this host's memory is not known (--memory)"
    )
    assert a.fit.fits is None


def test_the_largest_of_several_memories_is_assumed_and_named() -> None:
    sold = replace(HOST, memory_bytes=None, memory_options_bytes=(48 * GIB, 128 * GIB))
    assert fit(SPEC, sold, 512, Setting()).available_bytes == 128 * GIB
    assert memory_notes(sold) == (
        "sold with 48/128 GiB, of which the largest is assumed; --memory says otherwise",
    )
    assert memory_notes(replace(sold, memory_bytes=48 * GIB)) == ()


def test_a_shared_memory_is_not_all_there_for_the_model() -> None:
    apple = replace(HOST, kind="apple_soc")
    fitted = fit(SPEC, apple, 512, Setting())
    assert fitted.available_bytes == 6 * GIB
    two = replace(HOST, n_devices=2)
    fitted = fit(SPEC, two, 512, Setting())
    assert fitted.available_bytes == 16 * GIB


def test_explain_adds_up() -> None:
    a = answer()
    ledger = render(single(a, explain=True), "table").split("\n\n")[4]
    # 1 / 130.04 s is 7.690 ms: 75 % and 24.7 % of it, twice too little to show alone; the
    # ceiling is twice the speed.
    assert (
        ledger
        == """\
tg128                           MB  Gflop     ms    share  bound
ffn Q4_K                   4,000.0   8.00  5.767   75.0 %  memory
kv read F16                1,000.0   0.00  1.899   24.7 %  memory
2 smaller ones                 1.0   0.00  0.023    0.3 %
total                      5,001.0   8.00  7.690  100.0 %  memory
at the data sheet's peaks                  3.845   50.0 %"""
    )


def test_one_small_component_is_shown_as_it_is() -> None:
    a = answer()
    p = a.forecasts[1].prediction
    few = replace(a.forecasts[1], prediction=replace(p, components=p.components[1:]))
    ledger = render(single(replace(a, forecasts=(few,)), explain=True), "table").split("\n\n")[3]
    assert [line.split()[0] for line in lines(ledger)[1:]] == ["ffn", "kv", "norm", "total", "at"]


def test_comparison_puts_the_fastest_that_fits_first() -> None:
    fast = answer(200.0, need=9 * GIB, name="Fast 70B")
    slow = answer(20.0, name="Slow 8B")
    usual = answer(99.0, name="Usual 8B / Also 8B")
    text = render(comparison([fast, slow, usual], explain=False), "table")
    assert (
        text
        == """\
Fastest that fits on Chip: Usual 8B Q4_K_M, 99.0 tok/s generating (79.2 - 124)

model                size  tg128   80 % range  @ d16384  pp512  fits
Usual 8B Q4_K_M  4.58 GiB   99.0   79.2 - 124      66.0  7,500  yes
Slow 8B Q4_K_M   4.58 GiB   20.0  16.0 - 25.0      13.3  7,500  yes
Fast 70B Q4_K_M  4.58 GiB    200    160 - 250       133  7,500  no

Evidence: same host; coefficients 0123456789ab fitted on 1,234 published CUDA
  configurations."""
    )
    none = render(comparison([fast, fast], explain=False), "table")
    assert lines(none)[0] == "None of these 2 models fits on Chip"


def test_comparison_over_backends_names_them() -> None:
    mlx = replace(answer(name="Other 8B"), run=Run("mlx", "MLX"))
    text = render(comparison([answer(), mlx], explain=False), "table")
    assert lines(text)[2].split() == (
        ["model", "size", "tg128", "80", "%", "range", "@", "d16384", "pp512", "backend", "fits"]
    )


def test_markdown_is_the_table_of_llama_bench() -> None:
    assert lines(render(single(answer(), explain=False), "md"))[:4] == [
        "| model | size | params | backend | ngl | test | t/s |",
        "| --- | --: | --: | --: | --: | --: | --: |",
        "| Model 8B Q4_K_M | 4.58 GiB | 8.03 B | CUDA | 99 | pp512 | 7500.40 ± 1687.59 |",
        "| Model 8B Q4_K_M | 4.58 GiB | 8.03 B | CUDA | 99 | tg128 | 130.04 ± 29.26 |",
    ]


def test_json_has_the_documented_keys_and_exact_numbers() -> None:
    data = json.loads(render(single(answer(), explain=False), "json"))
    assert list(data) == ["model", "host", "predictions", "memory", "provenance", "warnings"]
    assert list(data["predictions"][1]) == [
        "phase",
        "n_prompt",
        "n_depth",
        "tok_per_s",
        "low",
        "high",
        "level",
        "seconds",
        "bound",
        "components",
    ]
    assert list(data["provenance"]) == ["coefficients", "calibrated", "evidence"]
    assert data["predictions"][1]["tok_per_s"] == 130.04
    assert data["predictions"][3]["n_depth"] == 16384
    assert data["predictions"][1]["components"]["ffn/Q4_K"] == {
        "bytes": 4e9,
        "flops": 8e9,
        "seconds": 0.75 / 130.04,
        "bound": "memory",
    }
    assert data["memory"]["fits"] is True
    assert data["memory"]["need_bytes"] == 6 * GIB


def test_equal_components_are_added_up_in_json() -> None:
    a = answer()
    p = a.forecasts[1].prediction
    twice = replace(a.forecasts[1], prediction=replace(p, components=2 * p.components))
    data = json.loads(render(single(replace(a, forecasts=(twice,)), explain=False), "json"))
    assert data["predictions"][0]["components"]["ffn/Q4_K"]["bytes"] == 8e9


def test_the_evidence_of_an_answer_is_its_weakest() -> None:
    a = answer()
    weak = replace(a.forecasts[0].prediction, evidence="spec sheet only")
    mixed = replace(a, forecasts=(replace(a.forecasts[0], prediction=weak), *a.forecasts[1:]))
    assert (a.evidence, mixed.evidence) == ("same host", "spec sheet only")


def test_csv_and_jsonl_have_a_row_a_prediction() -> None:
    report = single(answer(), explain=False)
    rows = [json.loads(line) for line in lines(render(report, "jsonl"))]
    header, *cells = (line.split(",") for line in lines(render(report, "csv")))
    assert header == list(rows[0])
    assert [r["test"] for r in rows] == ["pp512", "tg128", "pp512 @ d16384", "tg128 @ d16384"]
    assert [(r["n_prompt"], r["n_gen"], r["n_depth"]) for r in rows] == [
        (512, 0, 0),
        (0, 128, 0),
        (512, 0, 16384),
        (0, 128, 16384),
    ]
    assert [dict(zip(header, row, strict=True))["tok_per_s"] for row in cells] == [
        json.dumps(r["tok_per_s"]) for r in rows
    ]


def test_the_command_that_checks_a_prediction() -> None:
    a = answer()
    asked = replace(a.asked, n_ubatch=256, type_k="Q8_0", flash_attention=False, n_prompts=())
    spec = replace(a.spec, source="my models/a b.gguf")
    assert check_command(replace(a, asked=asked, spec=spec)) == (
        "llama-bench -m 'my models/a b.gguf' -p 0 -n 128 -d 0,16384 -ub 256 -ctk q8_0 -fa 0"
    )
    mlx = replace(a, run=Run("mlx", "MLX"))
    assert check_command(mlx) == "mlx_lm.benchmark --model MODEL -p 512 -g 128"
    remote = replace(a, spec=replace(a.spec, source="https://host/a.gguf"))
    assert check_command(remote).startswith("llama-bench -m MODEL ")


def test_a_command_to_copy_stays_on_one_line() -> None:
    a = answer()
    long = "x" * 60 + " " + "y" * 60 + ".gguf"
    text = render(single(replace(a, spec=replace(a.spec, source=long)), explain=False), "table")
    assert lines(text)[-1].startswith("Check it: llama-bench -m 'xxx")
    assert lines(text)[-1].endswith("-d 0,16384")
