"""tokcast for Python: the commands' answers and defaults."""

import csv
import inspect
import io
import json
import subprocess
import sys

import pytest
from cli_tools import good

import tokcast
from tokcast.cli.app import application

HOST = "RTX 4090"


def test_predict_says_what_the_command_says() -> None:
    answer = tokcast.predict("llama-3.1-8b@Q4_K_M", host=HOST, n_depth=[0, "16k"])
    said = json.loads(
        good("predict", "llama-3.1-8b@Q4_K_M", "--host", HOST, "-d", "0,16k", "-o", "json")
    )
    rates = [f.prediction.tok_per_s for f in answer.forecasts]
    assert rates == [p["tok_per_s"] for p in said["predictions"]]
    assert [f.label for f in answer.forecasts] == [
        "pp512",
        "tg128",
        "pp512 @ d16384",
        "tg128 @ d16384",
    ]


def test_numbers_may_be_numbers() -> None:
    text = tokcast.predict("qwen3-8b@Q8_0", bandwidth="400", tflops="30", memory="24G")
    numbers = tokcast.predict("qwen3-8b@Q8_0", bandwidth=400, tflops=30.0, memory=24 * 1024**3)
    assert text == numbers
    assert text.host.bytes_per_s == 400e9


def test_several_models_give_a_tuple() -> None:
    answers = tokcast.predict(["qwen3-8b@Q4_K_M", "qwen3-8b@Q8_0"], host=HOST)
    assert isinstance(answers, tuple)
    assert [a.spec.file_type for a in answers] == ["Q4_K_M", "Q8_0"]


def test_select_says_what_the_command_says() -> None:
    choice = tokcast.select(host=HOST, min_decode=30, at_depth="16k", n_context=32768)
    said = json.loads(
        good(
            *("select", "--host", HOST, "--min-decode", "30"),
            *("--at-depth", "16k", "-c", "32k", "-o", "json"),
        )
    )
    assert choice.pick is not None
    assert choice.pick.candidate.address == said["pick"]["address"]
    assert choice.pick.decode.tok_per_s == said["pick"]["decode_tok_per_s"]
    assert (len(choice.rows), choice.n_feasible) == (said["n_candidates"], said["n_feasible"])


def test_a_frame_has_the_columns_of_csv() -> None:
    choice = tokcast.select("qwen3-8b", host=HOST)
    frame = tokcast.frame(choice)
    rows = list(
        csv.DictReader(io.StringIO(good("select", "qwen3-8b", "--host", HOST, "-o", "csv")))
    )
    assert list(frame.columns) == list(rows[0])
    assert list(frame["address"]) == [row["address"] for row in rows]
    assert frame["decode_tok_per_s"].to_list() == [float(r["decode_tok_per_s"]) for r in rows]
    answers = tokcast.predict(["qwen3-8b@Q4_K_M", "qwen3-8b@Q8_0"], host=HOST, n_depth=0)
    assert tokcast.frame(answers)["test"].to_list() == ["pp512", "tg128"] * 2
    assert tokcast.frame(answers[0]).shape[0] == 2


def test_a_frame_of_nothing_or_of_both_kinds_is_refused() -> None:
    answer = tokcast.predict("qwen3-8b@Q4_K_M", host=HOST)
    choice = tokcast.select("qwen3-8b@Q4_K_M", host=HOST)
    for results in ([], [answer, choice]):
        with pytest.raises(tokcast.InputError, match=r"expected answers of predict, or selections"):
            tokcast.frame(results)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"models": "nothing/../x"}, "expected a path that exists"),
        ({"host": "RTX 9999"}, "RTX 9999"),
        ({"max_ttft": "soon"}, "--max-ttft: time 'soon': expected a time such as 3s"),
        ({"quality_floor": "200"}, "--quality-floor '200': expected a loss such as 2% or 1.02"),
        ({"max_turn": 3}, "--max-turn: expected a --workload"),
    ],
)
def test_bad_input_is_one_line(arguments: dict[str, object], expected: str) -> None:
    asked = {"host": HOST, **arguments}
    with pytest.raises(tokcast.InputError) as caught:
        tokcast.select(**asked)  # type: ignore[arg-type]
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


# Names that differ between the command and Python, and options that are not about the answer.
_SHOWN = {"explain", "output", "top", "quants", "why", "what_if", "hosts", "plot", "hf", "model"}


@pytest.mark.parametrize("command", ["predict", "select"])
def test_defaults_are_the_commands(command: str) -> None:
    groups = [group.typer_instance for group in application().registered_groups]
    declared = [one.callback for group in groups for one in group.registered_commands]
    callback = next(one for one in declared if one.__name__ == command)
    typed = inspect.signature(callback).parameters
    plain = inspect.signature(getattr(tokcast, command)).parameters
    names = set(typed) - _SHOWN
    assert names - {"models"} == set(plain) - {"model", "models"}
    for name in names - {"models"}:
        default = plain[name].default
        said = typed[name].default
        assert said in (default, str(default)) or (said is None and default == ()), name


def test_importing_is_quick_and_imports_nothing() -> None:
    code = "import sys, tokcast; print([m for m in sys.modules if m.startswith('tokcast.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_what_is_public() -> None:
    assert dir(tokcast) == sorted(tokcast.__all__)
    for name in tokcast.__all__:
        assert getattr(tokcast, name) is not None
    with pytest.raises(AttributeError, match=r"module 'tokcast' has no attribute 'guess'"):
        _ = tokcast.guess  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"model": []}, "no model given; expected a file"),
        ({"memory": float("nan")}, "memory 'nan' is not positive and finite"),
        ({"bandwidth": float("inf")}, "bandwidth 'inf' is not positive and finite"),
        ({"n_depth": 1.5}, "-d '1.5': expected whole numbers"),
        ({"n_depth": []}, "-d '': expected 1 to 64 numbers"),
    ],
)
def test_numbers_that_are_none_are_told_by_their_option(
    arguments: dict[str, object], expected: str
) -> None:
    asked = {"model": "qwen3-8b@Q4_K_M", "host": HOST, **arguments}
    with pytest.raises(tokcast.InputError) as caught:
        tokcast.predict(**asked)  # type: ignore[call-overload]
    assert expected in str(caught.value)
