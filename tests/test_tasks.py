"""Tasks of many turns: what is drawn, what it takes, where it ends."""

import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from cli_tools import good, refused, run
from hypothesis import given
from hypothesis import strategies as st

import tokcast
from tokcast.cli.render import duration
from tokcast.cli.tasks import load_of
from tokcast.fits.released import released
from tokcast.hosts.match import find
from tokcast.predictor.agents.operating import operating_points
from tokcast.predictor.agents.profile import profile
from tokcast.predictor.agents.quantiles import Quantiles, quantile
from tokcast.predictor.agents.simulate import middle, simulate
from tokcast.predictor.agents.task import Turn
from tokcast.predictor.batch_step import batch_step
from tokcast.predictor.curve import decode_curve
from tokcast.predictor.errors import InputError
from tokcast.predictor.ledger import Workload
from tokcast.predictor.model import model_spec
from tokcast.predictor.prefill_curve import prefill_curve
from tokcast.predictor.presets import names, preset
from tokcast.predictor.roofline import Question, predict
from tokcast.predictor.sources import open_model
from tokcast.predictor.spec import ModelSpec
from tokcast.predictor.terms import Run

HOST = "RTX 4090"
MODEL = "qwen3-30b-a3b@Q4_K_M"


def spec_of(address: str) -> ModelSpec:
    return model_spec(open_model(address, offline=True))


def question(host: str = HOST, backend: str = "CUDA", **load: object) -> Question:
    workload = Workload("prefill", **load)  # type: ignore[arg-type]
    return Question(workload, find(host), Run(backend=backend))


# --- distributions


def test_quantiles_are_linear_between() -> None:
    q = Quantiles((0.0, 0.5, 1.0), (10.0, 20.0, 60.0))
    assert [q.at(p) for p in (0.0, 0.25, 0.5, 0.75, 1.0)] == [10, 15, 20, 40, 60]
    # Half of the weight has a mean of 15, half of 40.
    assert q.mean == pytest.approx(27.5)


def test_the_mean_of_draws_is_the_mean() -> None:
    q = profile("coding-agent").output
    random = Random(0)
    drawn = [q.at(random.random()) for _ in range(200_000)]
    assert sum(drawn) / len(drawn) == pytest.approx(q.mean, rel=0.02)


@pytest.mark.parametrize(
    ("probabilities", "values"),
    [((0.0, 1.0), (2.0, 1.0)), ((0.1, 1.0), (1.0, 2.0)), ((0.0, 0.0, 1.0), (1.0, 1.0, 1.0))],
)
def test_quantiles_that_are_none_are_refused(
    probabilities: tuple[float, ...], values: tuple[float, ...]
) -> None:
    with pytest.raises(InputError, match="expected probabilities that rise from 0 to 1"):
        Quantiles(probabilities, values)


def test_a_quantile_of_a_sample() -> None:
    assert quantile([1.0, 2.0, 3.0, 4.0, 5.0], 0.9) == pytest.approx(4.6)
    assert quantile([7.0], 0.9) == 7
    with pytest.raises(InputError, match="expected one at least"):
        quantile([], 0.5)


@pytest.mark.parametrize("name", names())
def test_profiles_have_the_published_medians(name: str) -> None:
    """`workloads.json` has medians of the same sources, counted by others."""
    p, known = profile(name), preset(name)
    assert p.first_input.at(0.5) == pytest.approx(known.first_input, rel=0.1, abs=1)
    assert p.output.at(0.5) == pytest.approx(known.output, rel=0.05, abs=1)
    assert p.turns.at(0.5) == pytest.approx(known.turns, rel=0.1, abs=0.5)


@pytest.mark.parametrize(
    "name", ["coding-agent", "coding-agent-small", "terminal-agent", "tool-agent", "rag"]
)
def test_drawn_tasks_end_where_real_ones_do(name: str) -> None:
    p, random = profile(name), Random(1)
    ends = sorted(p.draw(random)[-1].n_context for _ in range(1000))
    assert quantile(ends, 0.5) == pytest.approx(preset(name).context_at_end, rel=0.15)


def test_the_same_seed_draws_the_same_tasks() -> None:
    p = profile("tool-agent")
    assert p.draw(Random(5)) == p.draw(Random(5)) != p.draw(Random(6))


@given(seed=st.integers(0, 2**32), name=st.sampled_from(names()))
def test_a_drawn_turn_is_one(seed: int, name: str) -> None:
    task = profile(name).draw(Random(seed))
    assert task[0].n_cached == 0
    for before, turn in pairwise(task):
        assert 0 <= turn.n_cached <= min(turn.n_input, before.n_context)


# --- time


@pytest.mark.parametrize("flash", [True, False])
@pytest.mark.parametrize(
    ("address", "host", "backend"),
    [
        (MODEL, HOST, "CUDA"),
        ("gemma-3-270m@Q4_K_M", "M4 Max 40-core", "Metal"),
        ("deepseek-v2-lite@Q4_K_M", HOST, "CUDA"),
        ("falcon-h1-7b@Q4_K_M", "RTX 3090", "CUDA"),
    ],
)
@pytest.mark.parametrize("n_prompt", [1, 17, 511, 512, 513, 5000])
def test_the_prefill_curve_and_the_prediction_agree(
    address: str, host: str, backend: str, n_prompt: int, flash: bool
) -> None:
    spec, q = spec_of(address), question(host, backend, flash_attention=flash)
    curve = prefill_curve(spec, q, released())
    for n_depth in (0, 300, 40_000):
        load = replace(q.workload, n_prompt=n_prompt, n_depth=n_depth)
        said = predict(spec, replace(q, workload=load), released())
        assert curve.seconds(n_prompt, n_depth) == pytest.approx(said.seconds, rel=1e-9)
    assert curve.low == pytest.approx(said.low / said.tok_per_s)


@pytest.mark.parametrize("address", [MODEL, "gemma-3-27b@Q4_K_M"])
def test_one_sequence_takes_what_a_token_takes(address: str) -> None:
    spec, q = spec_of(address), question("RTX 3090")
    step, curve = batch_step(spec, q, released()), decode_curve(spec, q, released())
    for n_depth in (0, 5000, 60_000):
        assert step.seconds(1, n_depth) == pytest.approx(1 / curve.at(n_depth)[0], rel=1e-9)


@given(n=st.integers(1, 200), n_depth=st.integers(0, 50_000))
def test_sharing_a_pass_never_costs_a_sequence_more(n: int, n_depth: int) -> None:
    step = batch_step(_LLAMA, question(), released())
    one, few, more = (step.seconds(k, n_depth) for k in (1, n, n + 1))
    assert one <= few <= more * (1 + 1e-12)
    assert few <= n * one * (1 + 1e-12)
    # What is read for each by itself grows with each.
    assert few >= one + (n - 1) * (step.seconds(1, n_depth) - step.seconds(1, 0)) - 1e-12


_LLAMA = spec_of("llama-3.1-8b@Q4_K_M")


def test_a_task_by_hand() -> None:
    """Reading takes 1 ms a token, writing 10 ms and 1 ms for each 1000 tokens cached."""
    task = (Turn(1000, 0, 100), Turn(1300, 1100, 50), Turn(2000, 1350, 10))
    (timed,) = simulate([task], 1400, lambda n, d: n / 1000, lambda d: 0.01 + d * 1e-6)
    first, second = timed.turns
    assert timed.is_cut
    assert first.first_token_s == first.unreused_s == 1.0
    assert first.answer_s == pytest.approx(100 * (0.01 + 1050e-6))
    assert (second.first_token_s, second.unreused_s) == (0.2, 1.3)
    assert second.answer_s == pytest.approx(50 * (0.01 + 1325e-6))
    assert timed.seconds == pytest.approx(first.seconds + second.seconds)
    assert timed.peak_context == 1350


def test_the_last_token_of_a_prompt_is_always_read() -> None:
    (timed,) = simulate([(Turn(10, 10, 1),)], 100, lambda n, d: float(n), lambda d: 0.0)
    assert timed.turns[0].first_token_s == 1


def test_nothing_to_simulate_is_refused() -> None:
    with pytest.raises(InputError, match="expected one of each at least"):
        simulate([], 100, lambda n, d: 0.0, lambda d: 0.0)
    with pytest.raises(InputError, match="no task's first turn fits a context of 100"):
        simulate([(Turn(101, 0, 1),)], 100, lambda n, d: 0.0, lambda d: 0.0)


@pytest.mark.parametrize("lengths", [(0, 0, 1), (5, 6, 1), (5, -1, 1), (5, 0, -1)])
def test_a_turn_that_is_none_is_refused(lengths: tuple[int, int, int]) -> None:
    with pytest.raises(InputError, match="no more cached than it has"):
        Turn(*lengths)


def test_operating_points_by_hand() -> None:
    """A turn reads 1 s and writes 10 tokens in passes of 0.1 s and 0.02 s for each that shares."""
    timed = simulate([(Turn(10, 0, 10),) * 2] * 5, 100, lambda n, d: 1.0, lambda d: 0.12)
    points = operating_points(timed, lambda n, depth: 0.1 + 0.02 * n, 5)
    assert [p.n_tasks for p in points] == [1, 2, 4, 5]
    for p in points:
        # R = n P + O T(n): all turns alike, so that each takes the mean.
        seconds = p.n_tasks * 1.0 + 10 * (0.1 + 0.02 * p.n_tasks)
        assert p.turn.p50 == p.turn.p90 == pytest.approx(seconds)
        assert p.tasks_per_hour == pytest.approx(3600 * p.n_tasks / seconds / 2)
        assert p.tok_per_s == pytest.approx(10 * p.n_tasks / seconds)
    # Even two write at 7 tokens/s each; five fill the memory.
    assert [p.wall for p in points] == ["", "patience", "patience", "memory"]


def test_a_host_that_only_reads_is_saturated_at_once() -> None:
    timed = simulate([(Turn(10, 0, 1),)], 100, lambda n, d: 1.0, lambda d: 1e-6)
    points = operating_points(timed, lambda n, depth: 1e-6, None)
    assert [p.wall for p in points] == ["", "saturation", "saturation", "saturation"]


def test_reuse_never_takes_longer() -> None:
    answer = tokcast.predict(MODEL, host=HOST, workload="tool-agent", n_tasks=50)
    assert answer.tasks is not None
    for task in answer.tasks.timed:
        assert all(t.first_token_s <= t.unreused_s * (1 + 1e-12) for t in task.turns)


def test_a_faster_host_is_faster_throughout() -> None:
    slow, fast = (
        tokcast.predict("qwen3-8b@Q4_K_M", host=host, workload="tool-agent", n_tasks=50).tasks
        for host in ("RTX 3060 12GB", "RTX 5090")
    )
    assert slow is not None
    assert fast is not None
    assert fast.task.seconds.p50 < slow.task.seconds.p50
    assert max(p.tasks_per_hour for p in fast.points) > max(p.tasks_per_hour for p in slow.points)


# --- the command


def asked(*more: str) -> tuple[str, ...]:
    return ("predict", MODEL, "--host", HOST, "--offline", "--tasks", "40", *more)


def test_the_command_says_what_python_says() -> None:
    said = json.loads(good(*asked("--workload", "tool-agent", "-o", "json")))["workload"]
    answer = tokcast.predict(MODEL, host=HOST, workload="tool-agent", n_tasks=40)
    assert answer.tasks is not None
    assert said["task_seconds"]["p50"] == answer.tasks.task.seconds.p50
    low, middle_s, high = (said["task_seconds"][k] for k in ("p50_low", "p50", "p50_high"))
    assert low < middle_s < high
    assert said["seed"] == 1
    assert len(said["points"]) == len(answer.tasks.points)


def test_a_table_fits_the_screen() -> None:
    shown = good(*asked("--workload", "coding-agent"))
    assert max(map(len, shown.splitlines())) <= 80
    assert "of the tasks outgrow" in shown
    assert "first token, nothing reused" in shown


def test_several_models_are_compared() -> None:
    shown = good(*asked("llama-3.1-8b@Q4_K_M", "--workload", "tool-agent"))
    assert shown.startswith("Fewest tasks cut, then quickest: ")
    rows = good(*asked("llama-3.1-8b@Q4_K_M", "--workload", "tool-agent", "-o", "csv"))
    assert rows.splitlines()[0].startswith("model,file_type,host,workload,n_context,cut_share,")


def test_a_context_asked_for_cuts_tasks() -> None:
    said = json.loads(good(*asked("--workload", "tool-agent", "-c", "5000", "-o", "json")))
    work = said["workload"]
    assert (work["n_context"], work["context_wall"]) == (5000, "asked for")
    assert 0 < work["cut_share"] < 1


def test_memory_ends_a_context_before_training_does() -> None:
    said = json.loads(good(*asked("--workload", "coding-agent", "--memory", "20G", "-o", "json")))
    assert said["workload"]["context_wall"] == "that memory holds"
    assert said["workload"]["n_context"] == said["memory"]["largest_context"]


def test_a_model_that_does_not_fit_is_an_answer_of_no() -> None:
    result = run(*asked("--workload", "tool-agent", "--memory", "8G"))
    assert result.code == 1
    assert "With enough memory" in result.out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--workload", "chess"), "--workload 'chess': expected one of chat, chat-long, rag"),
        (("--workload", "chat", "--trace", "x"), "--workload and --trace: expected one of them"),
        (("--workload", "chat", "--tasks", "0"), "--tasks '0': expected one number of at least 1"),
        (("--workload", "chat", "--tasks", "1m"), "expected at most 100000"),
        (("--workload", "chat", "--seed", "-1"), "--seed '-1'"),
        (("--workload", "coding-agent", "-c", "100"), "no task's first turn fits a context of 100"),
        (("--trace", "nowhere.jsonl"), "nowhere.jsonl: No such file or directory"),
    ],
)
def test_bad_input_is_one_line(words: tuple[str, ...], line: str) -> None:
    assert line in refused("predict", MODEL, "--host", HOST, *words)


def test_a_trace_is_sampled_where_it_has_more(tmp_path: Path) -> None:
    path = tmp_path / "azure.csv"
    rows = "".join(f"2023-11-16 18:15:{i:02}.0000000,{100 + i},{i + 1}\n" for i in range(50))
    path.write_text("TIMESTAMP,ContextTokens,GeneratedTokens\n" + rows)
    few = load_of(None, str(path), "10", "3")
    assert few is not None
    assert len(few.tasks) == 10
    assert few == load_of(None, str(path), "10", "3")
    everything = load_of(None, str(path), "1000", "3")
    assert everything is not None
    assert len(everything.tasks) == 50
    assert good("predict", MODEL, "--host", HOST, "--trace", path).count("azure.csv") == 1


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0004, "0 ms"), (0.25, "250 ms"), (1.0, "1.00 s"), (59.96, "60.0 s"), (130, "2.17 min"),
        (3600, "60.0 min"), (7200, "2.00 h"), (1e6, "11.6 d"),
    ],
)  # fmt: skip
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_middle_of_none_is_refused() -> None:
    with pytest.raises(InputError, match="a quantile of no values"):
        middle([])
    assert math.isclose(middle([1.0, 3.0]).p50, 2.0)
