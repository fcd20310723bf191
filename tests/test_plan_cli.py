"""`tokcast plan` and placement in `tokcast predict`: what users asked, and what they mistype."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from cli_tools import good, refused, run

import tokcast

LAPTOP = "RTX 4070 Laptop + 64G DDR5-5600"
MOE = "qwen3-30b-a3b@Q4_K_M"


def predicted(*args: str) -> dict[str, Any]:
    result = run("predict", *args, "-d", "0", "-o", "json")
    return dict(json.loads(result.out))


def decode(answer: dict[str, Any]) -> dict[str, Any]:
    return next(dict(p) for p in answer["predictions"] if p["phase"] == "decode")


# What users measured: model, host and flags, tokens/s while generating.
CASES = [
    (("olmoe-1b-7b@Q4_K_M", "--host", "RX 6900 XT + 32G DDR4-3200", "-ngl", "99"), 257.0),
    (("qwen3.5-35b-a3b@IQ2_XXS", "--host", "RX 6900 XT + 32G DDR4-3200", "-ngl", "99"), 77.6),
    (("qwen3-next-80b-a3b@Q4_K_M", "--host", "RX 6900 XT + 64G DDR4", "-ncmoe", "48"), 10.3),
    (("llama-3.1-70b@Q4_K_M", "--host", "DGX Spark"), 4.5),
]


@pytest.mark.parametrize(("args", "measured"), CASES, ids=[c[0][0] for c in CASES])
def test_what_users_measured_lies_in_the_interval(args: tuple[str, ...], measured: float) -> None:
    found = decode(predicted(*args))
    assert found["low"] <= measured <= found["high"]


def test_a_dense_70b_on_a_spark_is_bound_by_its_memory() -> None:
    # 40 GiB a token at 273 GB/s: no software passes 6.4 tokens/s.
    answer = predicted("llama-3.1-70b@Q4_K_M", "--host", "DGX Spark")
    assert decode(answer)["bound"] == "memory"
    assert decode(answer)["tok_per_s"] < 273e9 / answer["model"]["n_bytes"]


def test_a_server_is_told_from_a_benchmark() -> None:
    # LM Studio showed 150 to 180 where llama-bench shows over 200.
    text = good("predict", MOE, "--host", "RTX 5090", "-ngl", "99", "-d", "0")
    (told,) = re.findall(r"more for each, (\d+) to (\d+) tok/s here", " ".join(text.split()))
    assert int(told[0]) <= 150
    assert int(told[1]) >= 180
    assert decode(predicted(MOE, "--host", "RTX 5090"))["tok_per_s"] > 180
    slow = good("predict", "llama-3.1-70b@Q4_K_M", "--host", "RTX 5090", "-ngl", "20", "-d", "0")
    assert "llama-bench picks no tokens" not in slow


def test_all_on_one_card_is_the_plain_prediction() -> None:
    plain, placed = (
        predicted("llama-3.1-8b@Q4_K_M", "--host", "RTX 4090", *more)
        for more in ((), ("-ngl", "99"))
    )
    assert plain["predictions"] == placed["predictions"]
    assert plain["memory"]["device_bytes"] == placed["placement"]["devices"][0]["total_bytes"]
    assert plain["memory"]["device_bytes"] == placed["memory"]["device_bytes"]
    assert "placement" not in plain


def test_more_on_the_card_is_never_slower() -> None:
    rates = [
        decode(predicted(MOE, "--host", LAPTOP, "-ncmoe", n))["tok_per_s"]
        for n in ("48", "40", "20", "10", "0")
    ]
    assert rates == sorted(rates)
    layers = [
        decode(predicted("llama-3.1-70b@Q4_K_M", "--host", LAPTOP, "-ngl", n))["tok_per_s"]
        for n in ("0", "10", "30", "60", "81")
    ]
    assert layers == sorted(layers)


def test_fit_prints_flags_that_fit() -> None:
    answer = predicted(MOE, "--host", LAPTOP, "--fit", "-c", "32k")
    placed = answer["placement"]
    card = placed["devices"][0]
    assert card["total_bytes"] <= card["memory_bytes"] - 2**30
    assert answer["memory"]["fits"] is True
    again = predicted(MOE, "--host", LAPTOP, "-c", "32k", *placed["flags"])
    assert again["placement"]["devices"] == placed["devices"]
    assert again["predictions"] == answer["predictions"]


def test_the_command_to_copy_is_one_line_and_reads_back() -> None:
    text = good("predict", MOE, "--host", LAPTOP, "--fit", "-c", "32k", "-d", "0")
    (line,) = [x for x in text.splitlines() if x.startswith("Run it: ")]
    words = shlex.split(line)
    answer = predicted(MOE, "--host", LAPTOP, "--fit", "-c", "32k")
    assert words[5:] == ["-c", "32768", *answer["placement"]["flags"]]


def test_two_cards_hold_a_model_that_one_does_not() -> None:
    alone = run("predict", "llama-3.1-70b@Q4_K_M", "--host", "RTX 3090", "-d", "0")
    both = run("predict", "llama-3.1-70b@Q4_K_M", "--host", "2x RTX 3090", "-d", "0")
    assert (alone.code, both.code) == (1, 0)
    assert "CUDA1" in both.out


def test_a_model_larger_than_all_memory_is_told_so() -> None:
    result = run("predict", "deepseek-v3@Q4_K_M", "--host", "RTX 4090 + 64G DDR5-6000", "-d", "0")
    assert result.code == 1
    assert re.search(r"Does not fit: 377\.\d+ GiB .* 88\.00\s+GiB in all devices", result.out, re.S)
    planned = run("plan", "deepseek-v3@Q4_K_M", "--host", "RTX 4090 + 64G DDR5-6000")
    assert planned.code == 1
    assert "however it is placed: it needs" in " ".join(planned.out.split())


def test_a_context_that_no_card_holds() -> None:
    result = run("plan", "qwen3-8b@Q4_K_M", "--host", "RTX 3060 12GB", "-c", "10M")
    assert result.code == 1
    said = " ".join(result.out.split())
    assert "however it is placed: cards of 12.00 GiB would have to hold" in said


BAD = [
    (("-ngl", "-1"), "-ngl '-1': expected a number of layers from 0 up, or all"),
    (("-ngl", "many"), "-ngl 'many': expected a number of layers"),
    (("-ncmoe", "-3"), "-ncmoe '-3': expected a number of layers from 0 up"),
    (("-ot", ""), "-ot: expected REGEX=DEVICE"),
    (("-ot", "ffn"), "-ot 'ffn': expected REGEX=DEVICE"),
    (("-ot", "ffn_(=CPU"), "expected a regular expression"),
    (("-ot", "ffn=CUDA7"), "no device 'CUDA7'; expected one of CUDA0, CPU"),
    (("-ts", "1,2"), "-ts has 2 proportions, the host 1 card"),
    (("-ts", "0"), "-ts '0': expected proportions"),
    (("-sm", "diagonal"), "-sm 'diagonal': expected one of layer, row, none"),
    (("-mg", "4"), "-mg 4: expected a card from 0 to 0"),
    (("-np", "0"), "-np '0': expected one number of at least 1"),
    (("--fit", "-ngl", "3"), "--fit chooses -ngl"),
    (("--memory", "8G"), "has several parts"),
    (("--grid", "DE"), "--energy, --workload and --trace are of a model on one device"),
]


@pytest.mark.parametrize(("args", "words"), BAD, ids=[" ".join(b[0]) for b in BAD])
def test_bad_input_is_one_clear_line(args: tuple[str, ...], words: str) -> None:
    assert words in refused("predict", MOE, "--host", LAPTOP, *args)


def test_what_changes_nothing_is_noted() -> None:
    for args, words in (
        (("-ngl", "60"), "-ngl 60: the model has 49 layers"),
        (("-ncmoe", "500"), "-ncmoe 500: the model has 48 layers"),
        (("-ot", "nothing=CPU"), "-ot nothing: matches no tensor"),
    ):
        warnings = predicted(MOE, "--host", LAPTOP, *args)["warnings"]
        assert any(w.startswith(words) for w in warnings)


def test_patterns_with_commas_and_several_in_one_word() -> None:
    placed = predicted(
        MOE, "--host", LAPTOP, "-ot", r"blk\.\d{1,2}\.ffn_up_exps=CPU,ffn_gate_exps=CPU"
    )["placement"]
    assert placed["flags"][-1] == r"blk\.\d{1,2}\.ffn_up_exps=CPU,ffn_gate_exps=CPU"
    assert placed["devices"][1]["expert_bytes"] > placed["devices"][0]["expert_bytes"]


def test_mlx_models_are_not_placed() -> None:
    said = refused("predict", "qwen3-8b@mlx-4bit", "--host", "M4 Max 36GB", "-ngl", "3")
    assert "an MLX model runs on one chip" in said


def test_python_places_as_the_command_does() -> None:
    answer = tokcast.predict(MOE, host=LAPTOP, n_cpu_moe=40, n_depth=0)
    assert answer.placement is not None
    assert answer.placement.flags == ("-ngl", "99", "-ncmoe", "40")
    said = predicted(MOE, "--host", LAPTOP, "-ncmoe", "40")
    assert [f.prediction.tok_per_s for f in answer.forecasts] == [
        p["tok_per_s"] for p in said["predictions"]
    ]


def planned(*args: str) -> dict[str, Any]:
    return dict(json.loads(run("plan", *args, "-o", "json").out))


def test_the_best_plan_fits_and_nothing_that_fits_is_much_faster() -> None:
    found = planned(MOE, "--host", LAPTOP, "-c", "32k")
    best = found["best"]
    assert best["fits"] is True
    fitting = [p["tok_per_s"] for p in found["plans"] if p["fits"]]
    assert best["tok_per_s"] >= 0.98 * max(fitting)
    cards = planned("qwen3-30b-a3b@Q4_K_M", "--host", "2x RTX 3060 12GB + DDR4", "-c", "16k")
    assert cards["best"]["plan"] == "all on the cards"
    again = predicted(MOE, "--host", LAPTOP, "-c", "32k", *shlex.split(best["flags"]))
    assert decode(again)["tok_per_s"] == best["tok_per_s"]


def test_a_minimum_speed_is_kept_with_the_least_on_the_card() -> None:
    found = planned(MOE, "--host", LAPTOP, "--min-decode", "30")
    lean = found["leanest"]
    assert lean["tok_per_s"] >= 30
    enough = [p for p in found["plans"] if p["fits"] and p["tok_per_s"] >= 30]
    assert lean["cards_bytes"] == min(p["cards_bytes"] for p in enough)
    result = run("plan", MOE, "--host", LAPTOP, "--min-decode", "5000")
    assert result.code == 1
    assert "No plan that fits reaches 5000 tok/s" in result.out


def test_a_sweep_goes_from_all_to_nothing_and_slows_down() -> None:
    found = planned("llama-3.1-70b@Q4_K_M", "--host", "RTX 4090 + 64G DDR5-6000")
    swept = [p for p in found["plans"] if "-nkvo" not in p["flags"] and "-ot" not in p["flags"]]
    layers = [p["n_gpu_layers"] for p in swept]
    assert layers[0] == 81
    assert layers[81] == 0
    rates = [p["tok_per_s"] for p in swept[:82]]
    assert rates == sorted(rates, reverse=True)


def test_cards_fill_alike_where_experts_are_in_main_memory() -> None:
    found = planned("gpt-oss-120b", "--host", "RTX 4090 + RTX 3060 12GB + 96G DDR5-6000")
    assert "-ts" in found["best"]["flags"]
    assert found["is_met"]


def test_a_drawing_of_the_sweep(tmp_path: Path) -> None:
    path = tmp_path / "plan.svg"
    good("plan", MOE, "--host", LAPTOP, "--plot", path)
    text = path.read_text()
    assert text.startswith("<svg")
    assert "layers off the cards" in text
    assert "expected a file name that ends with" in refused("plan", MOE, "--plot", "plan.gif")
    missing = str(tmp_path / "no" / "plan.svg")
    result = run("plan", MOE, "--host", LAPTOP, "--plot", missing)
    assert result.code == 2
    assert "expected a file to write" in result.err


def test_plans_without_a_card_and_in_one_memory() -> None:
    assert len(planned("qwen3-8b@Q4_K_M", "--host", "Ryzen 9 7950X + 32G DDR5")["plans"]) == 1
    shared = planned("llama-3.1-8b@Q4_K_M", "--host", "M4 Max 36GB")
    assert shared["best"]["n_gpu_layers"] == 33
    too_large = run("plan", "gpt-oss-120b", "--host", "M4 Max 36GB")
    assert too_large.code == 1
