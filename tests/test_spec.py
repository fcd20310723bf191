"""ModelSpec: parameters, bytes and components, counted and as published."""

import csv
import math
from dataclasses import replace
from pathlib import Path

import pytest
import small_models as small
from spec_tools import group, params, spec_of

from tokcast.predictor import catalogue
from tokcast.predictor.model import model_spec

_CSV = Path(__file__).parent / "data" / "spec" / "parameters.csv"


ROWS = list(csv.DictReader(_CSV.read_text(encoding="utf-8").splitlines()))


SCALE = {"M": 1e6, "B": 1e9, "T": 1e12}


# --- counts ------------------------------------------------------------------------------
def test_105_architectures_are_listed() -> None:
    assert len(ROWS) == 105


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r["name"])
def test_parameters_are_the_counted_and_the_printed_ones(row: dict[str, str]) -> None:
    spec = spec_of(row["name"])
    assert spec.n_params == int(row["n_params"])
    assert spec.active_params == int(row["active_params"])
    assert spec.confidence == "known"
    assert spec.warnings == ()
    if row["printed"]:
        number, unit = row["printed"].split()
        assert f"{spec.n_params / SCALE[unit]:.2f}" == number


def _rounds(value: float, text: str) -> bool:
    return f"{value / SCALE[text[-1]]:.{_decimals(text)}f}" == text[:-1]


def _is_cut(value: float, text: str) -> bool:
    step = 10.0 ** -_decimals(text)
    return 0 <= value / SCALE[text[-1]] - float(text[:-1]) < step


def _decimals(text: str) -> int:
    return len(text[:-1].partition(".")[2])


def _near(value: float, text: str) -> bool:
    return math.isclose(value, float(text[:-1]) * SCALE[text[-1]], rel_tol=0.02)


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r["name"])
def test_active_parameters_differ_from_the_card_for_the_stated_reason(row: dict[str, str]) -> None:
    spec, card = spec_of(row["name"]), row["published_active"]
    active = spec.active_params
    with_table = active + params(spec, "embedding")
    without_head = active - params(spec, "head")
    holds = {
        "equal": _near(active, card),
        "embedding": _near(with_table, card),
        "rounded": _rounds(active, card),
        "embedding rounded": _rounds(with_table, card),
        "no head": _near(without_head, card) or _rounds(without_head, card),
        "cut": _is_cut(active, card),
        "embedding cut": _is_cut(with_table, card),
        "vision": 0.9 * float(card[:-1]) * SCALE[card[-1]] < active,
        "effective": "3n" in row["name"],
        "name": row["name"] == "lfm2-700m",
    }
    assert holds[row["difference"]]


@pytest.mark.parametrize("row", ROWS[::7], ids=lambda r: r["name"])
@pytest.mark.parametrize("file_type", ["Q2_K", "IQ4_XS", "F16", "mlx-4bit"])
def test_bytes_and_parameters_are_the_tensors(row: dict[str, str], file_type: str) -> None:
    header = catalogue.header(row["name"], file_type)
    spec = model_spec(header)
    assert spec.n_params == sum(t.n_params for t in header.tensors)
    assert spec.n_bytes == sum(t.n_bytes for t in header.tensors)
    for type_name in {t.type for t in header.tensors}:
        in_groups = sum(g.n_bytes for g in spec.groups if g.type == type_name)
        assert in_groups == sum(t.n_bytes for t in header.tensors if t.type == type_name)


# --- components --------------------------------------------------------------------------
def test_components_of_an_untied_dense_model() -> None:
    spec = model_spec(small.dense())
    # Hand-made model: see small_models. Norms: attention, feed-forward, output.
    expected = {"attention": 192, "ffn": 384, "head": 80, "embedding": 80, "norm": 24}
    assert {c: params(spec, c) for c in expected} == expected
    assert spec.active_params == 192 + 384 + 80 + 24
    assert not spec.tied_embeddings
    assert group(spec, "embedding").read_fraction == 0
    # One row of the table: 8 numbers of 2 bytes.
    assert group(spec, "embedding").n_lookup_bytes == 16
    assert group(spec, "attention").n_tensors == 4


def test_a_tied_table_is_the_head_and_a_lookup() -> None:
    whole = small.dense()
    spec = model_spec(
        replace(whole, tensors=tuple(t for t in whole.tensors if t.name != "output.weight"))
    )
    assert spec.tied_embeddings
    assert params(spec, "embedding") == 0
    head = group(spec, "head")
    assert (head.n_params, head.read_fraction, head.n_lookup_bytes) == (80, 1, 16)


def test_experts_are_read_by_used_over_total() -> None:
    keys = small.KEYS | {"expert_count": 4, "expert_used_count": 1}
    spec = model_spec(
        small.header("qwen3moe", keys, *small.outside(), *small.attention(), *small.experts())
    )
    routed = group(spec, "experts")
    assert (routed.n_params, routed.read_fraction, routed.n_tensors) == (1536, 0.25, 3)
    assert params(spec, "shared_experts") == 384
    assert params(spec, "router") == 32
    assert spec.active_params == 192 + 1536 // 4 + 384 + 32 + 80 + 16
    assert (spec.layers[0].n_expert, spec.layers[0].n_expert_used) == (4, 1)


def test_old_files_with_a_tensor_per_expert() -> None:
    split = [
        small.tensor(f"blk.0.ffn_{m}.{e}.weight", *shape)
        for m, shape in (("gate", (8, 16)), ("up", (8, 16)), ("down", (16, 8)))
        for e in range(4)
    ]
    keys = small.KEYS | {"expert_count": 4, "expert_used_count": 2}
    spec = model_spec(small.header("llama", keys, *small.outside(), *small.attention(), *split))
    routed = group(spec, "experts")
    assert (routed.n_params, routed.read_fraction, routed.n_tensors) == (1536, 0.5, 6)


def test_blocks_that_predict_further_tokens_are_counted_but_not_read() -> None:
    header = small.dense(n_block=2)
    head = small.tensor("blk.1.nextn.eh_proj.weight", 16, 8)
    spec = model_spec(replace(header, tensors=(*header.tensors, head)))
    assert params(spec, "mtp") == 192 + 384 + 16 + 128
    assert [g.read_fraction for g in spec.groups if g.component == "mtp"] == [0, 0]
    assert [x.index for x in spec.layers] == [0]
    assert spec.active_params == model_spec(small.dense()).active_params
    # GLM-4.5 Air: the one MTP block is why 110.47 B are printed for a "106B" model.
    assert 3e9 < params(spec_of("glm-4.5-air"), "mtp") < 5e9


def test_a_vision_tower_is_left_out_with_a_note() -> None:
    header = small.dense()
    tower = (small.tensor("v.blk.0.attn_q.weight", 8, 8), small.tensor("mm.0.weight", 8, 8))
    spec = model_spec(replace(header, tensors=header.tensors + tower))
    assert spec.n_params == model_spec(header).n_params
    assert spec.warnings == ("2 tensors of a vision or audio tower are not counted",)
