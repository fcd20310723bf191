"""Headers that cannot be believed: what is made of them, and what is said."""

import csv
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
import small_models as small
from hypothesis import given, settings
from hypothesis import strategies as st
from spec_tools import group, params

from tokcast.predictor.errors import InputError
from tokcast.predictor.header import Header, SkippedArray, Tensor, Value
from tokcast.predictor.ledger import Workload, ledger
from tokcast.predictor.memory import memory
from tokcast.predictor.model import model_spec

_CSV = Path(__file__).parent / "data" / "spec" / "parameters.csv"


def test_an_unknown_architecture_is_read_from_shapes_and_says_so() -> None:
    header = small.dense("fable")
    without = {k: v for k, v in header.metadata.items() if "attention" not in k}
    norm = small.tensor("blk.0.attn_q_norm.weight", 4)
    spec = model_spec(replace(header, metadata=without, tensors=(*header.tensors, norm)))
    assert spec.confidence == "generic"
    assert "architecture 'fable' is not known to this version" in " ".join(spec.warnings)
    (layer,) = spec.layers
    assert (layer.n_head, layer.n_head_kv, layer.key_length) == (2, 1, 4)


def test_a_real_file_without_metadata_is_read_from_its_shapes() -> None:
    rows = csv.DictReader((_CSV.parent / "gemma-4-31b.csv").read_text("utf-8").splitlines())
    tensors = tuple(
        Tensor(r["name"], tuple(map(int, r["shape"].split("x"))), r["type"], int(r["bytes"]))
        for r in rows
    )
    spec = model_spec(Header("gguf", {}, tensors, source="x.gguf"))
    # As the model's configuration has it: 32 heads; 16 key heads of 256 or 4 of 512.
    heads = [(x.n_head, x.n_head_kv, x.key_length, x.value_length) for x in spec.layers]
    assert heads == [(32, 16, 256, 256), (32, 4, 512, 512)]
    assert (spec.architecture, spec.confidence) == ("unknown", "generic")
    assert (spec.embedding_length, spec.vocab_size) == (5376, 262144)


def test_a_fused_projection_gives_the_key_heads_away() -> None:
    fused = (
        small.tensor("blk.0.attn_qkv.weight", 256, 256 + 2 * 128),
        small.tensor("blk.0.attn_output.weight", 256, 256),
    )
    (layer,) = model_spec(small.header("fable", {}, *small.outside(), *fused)).layers
    assert (layer.n_head, layer.n_head_kv, layer.key_length) == (2, 1, 128)


def test_no_tensors_is_a_vocabulary() -> None:
    tokens: dict[str, Value] = {"tokenizer.ggml.tokens": SkippedArray("str", 32000)}
    spec = model_spec(small.header("llama", small.KEYS, general=tokens))
    assert (spec.n_params, spec.vocab_size) == (0, 32000)
    assert spec.warnings == ("no tensors: vocabulary only",)


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ({}, "general.architecture is None and there are no tensors"),
        ({"general.architecture": 7}, "general.architecture is 7"),
        ({"general.architecture": "clip"}, r"projector \(mmproj\).*give the model's own file"),
        (
            {"general.architecture": "llama", "general.type": "adapter"},
            "LoRA adapter.*give the base model's file",
        ),
    ],
)
def test_files_that_hold_no_language_model(metadata: dict[str, Value], message: str) -> None:
    with pytest.raises(InputError, match=message):
        model_spec(Header("gguf", metadata, (), source="x.gguf"))


def test_a_missing_architecture_is_taken_from_the_keys() -> None:
    header = small.dense()
    metadata = {k: v for k, v in header.metadata.items() if k != "general.architecture"}
    spec = model_spec(replace(header, metadata=metadata))
    assert (spec.architecture, spec.confidence) == ("llama", "generic")
    assert spec.layers[0].n_head == 2
    assert any("general.architecture is None" in w for w in spec.warnings)


def test_keys_under_another_prefix_are_used_and_named() -> None:
    header = small.dense()
    spec = model_spec(replace(header, metadata=header.metadata | {"general.architecture": "qwen3"}))
    assert spec.layers[0].n_head == 2
    assert "keys are under 'llama', the architecture is 'qwen3'" in spec.warnings


POISON = [
    ("block_count", 0, "block_count is 0, the file holds 1 blocks"),
    ("block_count", 2**40, "block_count is 1099511627776, expected a whole number"),
    ("attention.head_count", 0, "no usable attention head count"),
    ("attention.head_count", -4, "head_count is -4, expected a whole number"),
    ("attention.head_count", "eight", "head_count is 'eight', expected"),
    ("attention.head_count", 2.0, r"head_count is 2\.0, expected"),
    ("attention.head_count", True, "head_count is True, expected"),
    ("attention.head_count", (), r"no usable attention head count"),
    ("attention.head_count_kv", 0, "attn_k puts out 4 numbers, the metadata says 0 heads"),
    ("attention.head_count_kv", 5, "attn_k puts out 4 numbers, the metadata says 5 heads"),
    ("attention.key_length", 2**62, "key_length is 4611686018427387904, expected"),
    ("attention.key_length", math.nan, "key_length is nan, expected"),
    ("embedding_length", SkippedArray("u32", 9), "embedding_length is SkippedArray"),
]


@pytest.mark.parametrize(("key", "value", "warning"), POISON)
def test_impossible_keys_are_named_and_the_tensors_believed(
    key: str, value: Value, warning: str
) -> None:
    keys = small.KEYS | {key: value}
    tensors = (*small.outside(), *small.attention(), *small.feed_forward())
    spec = model_spec(small.header("llama", keys, *tensors))
    assert re.search(warning, "\n".join(spec.warnings))
    (layer,) = spec.layers
    assert layer.n_head_kv * layer.key_length == 4
    assert spec.n_params == model_spec(small.dense()).n_params


@pytest.mark.parametrize("used", [None, 0, 9, (1,) * 0])
def test_a_senseless_number_of_used_experts_reads_them_all(used: Value | None) -> None:
    keys = small.KEYS | {"expert_count": 4}
    if used is not None:
        keys = keys | {"expert_used_count": used}
    spec = model_spec(
        small.header("qwen3moe", keys, *small.outside(), *small.attention(), *small.experts())
    )
    assert group(spec, "experts").read_fraction == 1
    assert spec.confidence == "generic"
    assert any("expected 1 to 4; every expert is taken to be read" in w for w in spec.warnings)


def test_arrays_shorter_than_the_blocks_leave_the_rest_to_the_shapes() -> None:
    spec = model_spec(small.dense(n_block=3, attention__head_count_kv=(1,)))
    assert [x.n_head_kv for x in spec.layers] == [1, 1, 1]
    assert "llama.attention.head_count_kv has 1 entries, fewer than the blocks" in spec.warnings[0]


def test_a_block_number_sizes_nothing() -> None:
    header = small.dense()
    odd = (
        small.tensor("blk.99999.attn_q.weight", 8, 8),
        small.tensor("blk.1099511627776.attn_q.weight", 8, 8),
        small.tensor("blk.-1.attn_q.weight", 8, 8),
        small.tensor("blk.٣.attn_q.weight", 8, 8),
    )
    spec = model_spec(replace(header, tensors=header.tensors + odd))
    assert [x.index for x in spec.layers] == [0, 99999]
    assert params(spec, "other") == 3 * 64


def test_an_encoder_has_no_head_and_says_so() -> None:
    tensors = (small.tensor("token_embd.weight", 8, 10), *small.attention())
    spec = model_spec(small.header("bert", small.KEYS, *tensors))
    assert params(spec, "head") == 0
    assert "bert embeds text and decodes no tokens" in spec.warnings


def test_warnings_of_the_header_come_first() -> None:
    spec = model_spec(replace(small.dense("fable"), warnings=("part 2 is missing",)))
    assert spec.warnings[0] == "part 2 is missing"


def test_an_unlabelled_file_is_named_by_its_bytes() -> None:
    assert model_spec(small.dense()).file_type == "F16"
    labelled = small.header("llama", small.KEYS, *small.outside(), general={"general.file_type": 7})
    assert model_spec(labelled).file_type == "Q8_0"


VALUES = st.one_of(
    st.integers(-3, 2**70),
    st.floats(),
    st.booleans(),
    st.text(max_size=5),
    st.lists(st.integers(-1, 5) | st.booleans() | st.text(max_size=2), max_size=4).map(tuple),
    st.builds(SkippedArray, st.just("u32"), st.integers(-1, 2**64)),
)


LOCALS = [
    *("attn_q.weight", "attn_k.weight", "attn_v.weight", "attn_qkv.weight", "attn_output.weight"),
    *("attn_kv_a_mqa.weight", "attn_k_b.weight", "attn_kv_a_norm.weight", "attn_q_norm.weight"),
    *("ffn_up_exps.weight", "ffn_up.0.weight", "ffn_gate_inp.weight", "ffn_down.weight"),
    *("ssm_conv1d.weight", "ssm_conv1d_q.weight", "ssm_out.weight", "ssm_a", "ssm_beta.weight"),
    *("shortconv.conv.weight", "time_mix_key.weight", "nextn.eh_proj.weight", "attn_gate.weight"),
]


TENSORS = st.builds(
    lambda name, shape, n_bytes: Tensor(name, tuple(shape), "Q4_K", n_bytes),
    st.builds("blk.{}.{}".format, st.integers(0, 3), st.sampled_from(LOCALS))
    | st.sampled_from(["token_embd.weight", "output.weight", "output_norm.weight", "rope"]),
    st.lists(st.integers(0, 9), max_size=4),
    st.integers(0, 2**40),
)


KEY_NAMES = [
    *("block_count", "embedding_length", "context_length", "vocab_size", "expert_used_count"),
    *("attention.head_count", "attention.head_count_kv", "attention.key_length"),
    *("attention.value_length", "attention.sliding_window", "attention.sliding_window_pattern"),
    *("attention.shared_kv_layers", "attention.kv_lora_rank", "ssm.state_size", "wkv.head_size"),
    *("attention.indexer.head_count", "token_shift_count"),
]


@settings(deadline=None, max_examples=200)
@given(
    architecture=st.sampled_from(["llama", "gemma3n", "gemma4", "minimax-01", "mamba", "fable"]),
    keys=st.dictionaries(st.sampled_from(KEY_NAMES), VALUES),
    tensors=st.lists(TENSORS, max_size=12, unique_by=lambda t: t.name),
    format=st.sampled_from(["gguf", "mlx"]),
)
def test_no_header_is_a_defect(
    architecture: str, keys: dict[str, Value], tensors: list[Tensor], format: str
) -> None:
    spec = model_spec(small.header(architecture, keys, *tensors, format=format))
    assert spec.n_params == sum(t.n_params for t in tensors)
    works = ledger(spec, Workload("prefill", n_prompt=3, n_depth=5, n_ubatch=2))
    for work in works:
        assert 0 <= work.bytes < math.inf
        assert 0 <= work.flops < math.inf
    assert 0 <= memory(spec, 100).device_bytes < math.inf
