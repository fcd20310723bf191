"""Cost of training: hand-worked counts, published sizes, limits of speedup, laws that hold."""

import json
import math
from dataclasses import replace

import pytest

from tokcast.hosts.links import link_bytes_per_s
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.training.config import from_config
from tokcast.predictor.training.forecast import TrainQuestion, forecast
from tokcast.predictor.training.law import (
    Device,
    Law,
    Laws,
    device_of,
    features,
    from_json,
    processor_of,
)
from tokcast.predictor.training.layout import Layout, Link, efficiency, parse, traffic
from tokcast.predictor.training.shape import TrainShape
from tokcast.predictor.training.work import Step, flops, held_bytes, traffic_bytes

TINY = TrainShape("tiny", 2, 8, 2, 2, 4, 32, 10, is_tied=True)
BERT = {
    "model_type": "bert",
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "vocab_size": 30522,
    "max_position_embeddings": 512,
}
LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
}
MIXTRAL = LLAMA | {
    "model_type": "mixtral",
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "vocab_size": 32000,
}
GPT2 = {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257}
FAST = Link(1e9, 0.0, overlaps=False)


def shape_of(config: dict[str, object]) -> TrainShape:
    return from_config(config, "config.json")[0]


def test_a_tiny_model_by_hand() -> None:
    # A block: 4 x 8 x 8 of attention and 2 x 8 x 32 of feed-forward; 2 blocks and 10 x 8 of table.
    assert TINY.n_params == 2 * (256 + 512) + 80
    step = Step(3, 4, precision="fp32", is_fused=False)
    # 6 x 12 tokens x (parameters and, a block, 2 x 8 x 4 of queries by keys and scores by values).
    assert flops(TINY, step) == 6 * 12 * (1616 + 2 * 2 * 8 * 4)
    assert flops(TINY, replace(step, recomputes=True)) == flops(TINY, step) * 8 / 6
    # Half the pairs where a causal model's attention is fused.
    assert flops(TINY, replace(step, is_fused=True)) == 6 * 12 * (1616 + 2 * 2 * 8 * 2)
    # The state alone: 16 bytes a parameter, halved over two shards.
    none_held = replace(step, n_batch=0)
    assert held_bytes(TINY, none_held, 2, 1) == 16 * 1616 / 2


@pytest.mark.parametrize(
    ("config", "millions", "published"),
    [
        # transformers' own counts: bert-base-uncased 109.5 M, gpt2 124.4 M; Meta's and Mistral's
        # model cards: 8.03 B and 46.7 B.
        (BERT, 109.5, 0.01),
        (GPT2 | {"n_positions": 1024}, 124.4, 0.002),
        (LLAMA, 8030, 0.001),
        (MIXTRAL, 46700, 0.001),
    ],
)
def test_published_parameter_counts(
    config: dict[str, object], millions: float, published: float
) -> None:
    assert shape_of(config).n_params / 1e6 == pytest.approx(millions, rel=published)


def test_experts_that_are_not_used_cost_memory_but_no_operations() -> None:
    dense, sparse = shape_of(LLAMA | {"vocab_size": 32000}), shape_of(MIXTRAL)
    step = Step(1, 512)
    assert 1.7 < flops(sparse, step) / flops(dense, step) < 2
    assert sparse.n_params / dense.n_params > 6


def test_more_of_anything_costs_more() -> None:
    step = Step(4, 128, precision="fp32", is_fused=False)
    for bigger in (replace(step, n_batch=8), replace(step, n_length=256)):
        assert flops(TINY, bigger) > flops(TINY, step)
        assert traffic_bytes(TINY, bigger) > traffic_bytes(TINY, step)
    # Attention grows with the square of the length: twice the length is more than twice the work.
    assert flops(TINY, replace(step, n_length=256)) > 2 * flops(TINY, step)
    assert held_bytes(TINY, replace(step, recomputes=True), 1, 1) < held_bytes(TINY, step, 1, 1)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"hidden_size": -768}, r"hidden_size is -768; expected a whole number from 1"),
        ({"num_hidden_layers": 12.5}, r"num_hidden_layers is 12.5; expected a whole number"),
        ({"vocab_size": None}, r"vocab_size is missing"),
        ({"vocab_size": True}, r"vocab_size is True; expected"),
        ({"num_attention_heads": 10**9}, r"num_attention_heads is 1000000000; expected"),
        ({"num_attention_heads": 1000}, r"1000 heads of a width of 768; expected fewer heads"),
        ({"is_encoder_decoder": True}, r"an encoder with a decoder \(bert\); expected"),
        ({"mamba_d_state": 16}, r"has mamba_d_state, a recurrent state; expected attention"),
        ({"max_position_embeddings": 0}, r"max_position_embeddings is 0; expected"),
    ],
)
def test_a_config_that_cannot_be(changes: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        shape_of({**BERT, **changes})


def test_a_model_that_nobody_knows_is_read_with_a_word_of_doubt() -> None:
    _, notes = from_config(BERT | {"model_type": "novel"}, "config.json")
    assert notes == (
        "model_type 'novel' is not known: read as a decoder with two matrices a feed-forward",
    )
    assert from_config(BERT, "config.json")[1] == ()


@pytest.mark.parametrize(
    ("strategy", "n_devices", "layout"),
    [
        ("none", 1, Layout()),
        ("fsdp", 4, Layout(fsdp=4)),
        ("tp2+pp4", 8, Layout(tp=2, pp=4)),
        ("dp2+tp2", 4, Layout(dp=2, tp=2)),
    ],
)
def test_layouts_are_read_as_they_are_written(
    strategy: str, n_devices: int, layout: Layout
) -> None:
    assert parse(strategy, n_devices) == layout
    assert parse(str(layout), n_devices) == layout


@pytest.mark.parametrize(
    ("strategy", "n_devices", "said"),
    [
        ("fsdp", 0, r"--devices 0: expected a number from 1"),
        ("fsdp", 10**6, r"--devices 1000000: expected a number from 1"),
        ("zero3", 4, r"--strategy 'zero3': expected none, fsdp, tp"),
        ("tp2+tp2", 4, r"--strategy 'tp2\+tp2': expected none, fsdp, tp"),
        ("tp0", 4, r"--strategy 'tp0': expected none"),
        ("tp2+pp2", 8, r"--strategy tp2\+pp2 takes 4 devices: expected 8"),
        ("none", 2, r"--strategy none with 2 devices: expected how they share"),
    ],
)
def test_layouts_that_cannot_be(strategy: str, n_devices: int, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parse(strategy, n_devices)


def test_ring_traffic_by_hand() -> None:
    step = Step(8, 4, precision="fp32")
    weights = 4 * 1616
    (fsdp,) = traffic(TINY, step, Layout(fsdp=4))
    assert fsdp.n_bytes == 3 * weights * 3 / 4
    assert fsdp.n_messages == 3 * 2 * 3
    (tp,) = traffic(TINY, step, Layout(tp=2))
    # Four sums a block, each of 32 tokens x 8 values x 4 bytes, twice (2 - 1) / 2 of it.
    assert tp.n_bytes == 4 * 2 * 2 * (32 * 8 * 4) / 2
    assert list(traffic(TINY, step, Layout())) == []


def test_speedup_has_its_limits() -> None:
    step = Step(8, 64, precision="fp32")
    assert efficiency(1.0, TINY, step, Layout(), FAST) == 1.0
    # A long step hides what is sent; a short one is all sending.
    assert efficiency(1e6, TINY, step, Layout(fsdp=2), FAST) == pytest.approx(1, abs=1e-6)
    assert efficiency(1e-9, TINY, step, Layout(fsdp=2), FAST) < 1e-3
    slow = [efficiency(0.01, TINY, step, Layout(tp=n), FAST) for n in (1, 2, 4, 8)]
    assert slow == sorted(slow, reverse=True)
    # Four stages and 12 micro-batches: 15 turns for the work of 12.
    piped = efficiency(1e9, TINY, replace(step, n_micro=12), Layout(pp=4), FAST)
    assert piped == pytest.approx(12 / 15)
    # Weights that travel while the device computes cost nothing until they take longer.
    overlapped = replace(FAST, overlaps=True)
    assert efficiency(1.0, TINY, step, Layout(fsdp=4), overlapped) == 1.0
    # A head that tensor parallelism leaves whole is computed by every device.
    whole = efficiency(1e9, TINY, step, Layout(tp=2, splits_head=False), FAST)
    assert whole == pytest.approx(1 / (1 + 80 / 1616))


def known_laws() -> Laws:
    board = Law(
        {"level": 0.0, "compute": 0.5, "size": 1.0, "efficiency": -1.0},
        {"same host": {"0.8": (-0.1, 0.1)}, "spec sheet only": {"0.8": (-0.5, 0.5)}},
        {},
    )
    laws = {("board", "seconds"): board, ("board", "joules"): board}
    laws |= {("processor", "seconds"): board}
    return Laws("x", laws, frozenset({"card/fp32"}), (1e9, 0.0), "here")  # type: ignore[arg-type]


CARD = Device("card", 1e12, 1e11, 300.0, 300.0)
QUESTION = TrainQuestion(
    shape_of(BERT), Step(8, 128, precision="fp32"), CARD, "board", Layout(), FAST
)


def test_a_law_is_what_its_formula_says() -> None:
    found = forecast(QUESTION, known_laws())
    compute, memory = found.flops / 1e12, found.bytes / 1e11
    assert found.seconds.value == pytest.approx(math.sqrt(compute * memory))
    assert found.joules.value == pytest.approx(300 * found.seconds.value)
    assert found.watts == pytest.approx(300)
    assert found.seconds.low == pytest.approx(found.seconds.value * math.exp(-0.1))
    assert found.evidence == "same host"


def test_what_was_not_measured_is_less_sure() -> None:
    other = replace(QUESTION, device=replace(CARD, name="other card"))
    half = replace(QUESTION, step=replace(QUESTION.step, precision="bf16"))
    mixture = replace(QUESTION, shape=replace(QUESTION.shape, n_experts=4, n_used=1))
    shared = replace(QUESTION, layout=Layout(tp=2))
    for question in (other, half, mixture, shared):
        found = forecast(question, known_laws())
        assert found.evidence == "spec sheet only"
        assert found.seconds.high == pytest.approx(found.seconds.value * math.exp(0.5))


def test_a_step_done_twice_takes_twice() -> None:
    once = forecast(QUESTION, known_laws())
    step = replace(QUESTION.step, n_batch=16, n_micro=2)
    twice = forecast(replace(QUESTION, step=step), known_laws())
    # But for the one update of the optimiser at the end.
    assert twice.flops == 2 * once.flops
    assert 1.8 < twice.joules.value / once.joules.value <= 2


def test_two_perfect_devices_take_half_the_time_and_the_same_joules() -> None:
    far = replace(QUESTION, link=Link(math.inf, 0.0), layout=Layout(fsdp=2))
    one, two = forecast(QUESTION, known_laws()), forecast(far, known_laws())
    assert two.seconds.value == pytest.approx(one.seconds.value / 2)
    assert two.joules.value == pytest.approx(one.joules.value)
    slow = forecast(replace(far, link=Link(1e8, 0.0, overlaps=False)), known_laws())
    assert slow.joules.value > two.joules.value


def test_stated_watts_are_not_called_metered() -> None:
    laws = known_laws()
    found = forecast(replace(QUESTION, kind="processor"), laws)
    assert not found.is_metered
    assert found.watts == pytest.approx(300)
    assert forecast(QUESTION, laws).is_metered


def test_a_limit_enters_by_its_ratio_to_the_rated_power() -> None:
    capped = replace(CARD, watts=150.0)
    found = features(QUESTION.shape, QUESTION.step, capped, 1.0)
    assert [found[f"limit{k}"] for k in (1, 2, 3)] == [math.log(0.5) ** k for k in (1, 2, 3)]
    assert found["level|card"] == 1.0


def test_devices_from_hosts() -> None:
    host = Host("c", "NVIDIA", "discrete_gpu", "", 1e12, tdp_w=300.0, fp32_flops_per_s=2e13)
    assert device_of(host, "fp32").flops_per_s == 2e13
    with pytest.raises(InputError, match=r"c: no rate of bf16 is known"):
        device_of(host, "bf16")
    tensor = replace(host, matrix_fp32acc_flops_per_s=3e14)
    assert device_of(tensor, "tf32").flops_per_s == 1.5e14
    assert device_of(tensor, "bf16").is_matrix
    with pytest.raises(InputError, match=r"no rated power is known; expected --watts"):
        device_of(replace(host, tdp_w=None), "fp32")
    cpu = Host("p", "AMD", "cpu", "", 1e11, fp32_flops_per_s=1e12, n_cores=10)
    assert processor_of(cpu, 2, 9.0).bytes_per_s == 2e10
    with pytest.raises(InputError, match=r"p: no FP32 rate is known"):
        processor_of(replace(cpu, fp32_flops_per_s=None), 1, 9.0)


def test_links_of_data_sheets() -> None:
    # NVIDIA: 600 GB/s of NVLink both ways together; PCIe 4.0 x16 is 31.5 GB/s each way.
    assert link_bytes_per_s("NVIDIA A100 SXM4 80GB") == 300e9
    assert link_bytes_per_s("NVIDIA A100 PCIe 80GB") == 31.5e9


def test_laws_of_another_schema_are_refused() -> None:
    with pytest.raises(InputError, match=r"training laws of schema 9; expected 1"):
        from_json(json.loads('{"schema": 9}'))
