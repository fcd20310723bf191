"""ModelSpec: counts, shapes and what is said about headers that cannot be believed."""

import csv
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
import small_models as small
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcast.predictor import catalogue
from tokcast.predictor.errors import InputError
from tokcast.predictor.header import Header, SkippedArray, Tensor, Value
from tokcast.predictor.ledger import Workload, ledger
from tokcast.predictor.memory import memory
from tokcast.predictor.model import model_spec
from tokcast.predictor.spec import Layer, ModelSpec, WeightGroup

_CSV = Path(__file__).parent / "data" / "spec" / "parameters.csv"
ROWS = list(csv.DictReader(_CSV.read_text(encoding="utf-8").splitlines()))
SCALE = {"M": 1e6, "B": 1e9, "T": 1e12}


def spec_of(name: str, file_type: str = "Q4_K_M") -> ModelSpec:
    return model_spec(catalogue.header(name, file_type))


def group(spec: ModelSpec, component: str) -> WeightGroup:
    (found,) = [g for g in spec.groups if g.component == component]
    return found


def params(spec: ModelSpec, component: str) -> int:
    return sum(g.n_params for g in spec.groups if g.component == component)


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


# --- shapes ------------------------------------------------------------------------------

# (attention, mixer, heads, key heads, key length, value length, window) and how many layers,
# from the models' published configurations.
GEOMETRY = {
    "llama-3.1-8b": {("full", "none", 32, 8, 128, 128, None): 32},
    "gemma-2-9b": {
        ("sliding", "none", 16, 8, 256, 256, 4096): 21,
        ("full", "none", 16, 8, 256, 256, None): 21,
    },
    # 26 layers, every sixth full
    "gemma-3-1b": {
        ("sliding", "none", 4, 1, 256, 256, 512): 22,
        ("full", "none", 4, 1, 256, 256, None): 4,
    },
    "gpt-oss-20b": {
        ("sliding", "none", 64, 8, 64, 64, 128): 12,
        ("full", "none", 64, 8, 64, 64, None): 12,
    },
    "llama-4-scout": {
        ("sliding", "none", 40, 8, 128, 128, 8192): 36,
        ("full", "none", 40, 8, 128, 128, None): 12,
    },
    "deepseek-v3": {("mla", "none", 128, 1, 576, 512, None): 61},
    # before llama.cpp absorbed the projections, all 128 heads were cached
    "deepseek-v3-kvb": {("full", "none", 128, 128, 192, 128, None): 61},
    "qwen3-next-80b-a3b": {
        ("none", "linear", 0, 0, 0, 0, None): 36,
        ("full", "none", 16, 2, 256, 256, None): 12,
    },
    "nemotron-nano-9b-v2": {
        ("none", "ssm", 0, 0, 0, 0, None): 27,
        ("none", "none", 0, 0, 0, 0, None): 25,
        ("full", "none", 40, 8, 128, 128, None): 4,
    },
    "falcon-h1-7b": {("full", "ssm", 12, 2, 128, 128, None): 44},
    "lfm2-1.2b": {
        ("none", "conv", 0, 0, 0, 0, None): 10,
        ("full", "none", 32, 8, 64, 64, None): 6,
    },
    # llama.cpp ignores the windows of these two
    "phi-3-mini-4k": {("full", "none", 32, 32, 96, 96, None): 32},
    "mistral-7b-v0.1": {("full", "none", 32, 8, 128, 128, None): 32},
}


def _kind(x: Layer) -> tuple[object, ...]:
    heads = (x.n_head, x.n_head_kv, x.key_length, x.value_length)
    return (x.attention, x.mixer, *heads, x.window)


@pytest.mark.parametrize("name", GEOMETRY)
def test_layers(name: str) -> None:
    counted: dict[tuple[object, ...], int] = {}
    for layer in spec_of(name).layers:
        counted[_kind(layer)] = counted.get(_kind(layer), 0) + 1
    assert counted == GEOMETRY[name]


def test_recurrent_state_is_width_times_state_plus_convolution() -> None:
    # Nemotron Nano v2: width 10240, state 128, 3 kept taps over 10240 + 2*8*128 channels.
    nemotron = {x.state_elements for x in spec_of("nemotron-nano-9b-v2").layers}
    assert nemotron == {0, 10240 * 128 + 3 * 12288}
    # Qwen3-Next: 32 heads of 128 x 128, 3 taps over 2*16*128 + 32*128 channels.
    qwen = {x.state_elements for x in spec_of("qwen3-next-80b-a3b").layers}
    assert qwen == {0, 32 * 128 * 128 + 3 * 8192}
    # LFM2 keeps two positions of its short convolution.
    assert {x.state_elements for x in spec_of("lfm2-1.2b").layers} == {0, 2 * 2048}


@pytest.mark.parametrize(
    ("tensors", "keys", "mixer", "state"),
    [
        # Mamba 1: inner width 16, state 4, 4 taps.
        (
            (
                small.tensor("blk.0.ssm_in.weight", 8, 32),
                small.tensor("blk.0.ssm_conv1d.weight", 4, 16, type_name="F32"),
                small.tensor("blk.0.ssm_x.weight", 16, 9),
                small.tensor("blk.0.ssm_a", 4, 16, type_name="F32"),
                small.tensor("blk.0.ssm_out.weight", 16, 8),
            ),
            {},
            "ssm",
            16 * 4 + 3 * 16,
        ),
        # RWKV: heads of 4, two shifted tokens.
        (
            (
                small.tensor("blk.0.time_mix_key.weight", 8, 8),
                small.tensor("blk.0.time_mix_output.weight", 8, 8),
            ),
            {"wkv.head_size": 4},
            "rwkv",
            8 * 4 + 2 * 8,
        ),
        # Kimi's delta attention: a 4 x 4 state for each of 2 heads, three convolutions of 4 taps.
        (
            (
                small.tensor("blk.0.attn_q.weight", 8, 8),
                small.tensor("blk.0.attn_output.weight", 8, 8),
                small.tensor("blk.0.ssm_conv1d_q.weight", 4, 1, 8, type_name="F32"),
                small.tensor("blk.0.ssm_norm.weight", 4),
            ),
            {},
            "linear",
            2 * 4 * 4 + 3 * 3 * 8,
        ),
    ],
)
def test_recurrent_mixers_of_other_families(
    tensors: tuple[Tensor, ...], keys: dict[str, Value], mixer: str, state: int
) -> None:
    spec = model_spec(small.header("mamba", keys, *small.outside(), *tensors))
    (layer,) = spec.layers
    assert (layer.attention, layer.mixer, layer.state_elements) == ("none", mixer, state)


def test_gemma_3n_reuses_the_cache_of_layer_20() -> None:
    spec = spec_of("gemma-3n-e2b")
    assert [x.has_kv for x in spec.layers] == [True] * 20 + [False] * 10
    # The per-layer embedding is looked up: 30 tables of 256 a token beside the input's 2048.
    table = sum(g.n_params for g in spec.groups if g.component == "embedding")
    assert table == 256 * 30 * 262400
    # Key and value projections of the ten reusing layers (2048 x 512 each) are never run.
    idle = [g for g in spec.groups if g.component == "attention" and g.read_fraction == 0]
    assert sum(g.n_params for g in idle) == 10 * 2 * 2048 * 512


def test_an_indexer_adds_a_cached_row() -> None:
    indexer = (
        small.tensor("blk.0.indexer.attn_k.weight", 8, 3),
        small.tensor("blk.0.indexer.attn_q_b.weight", 8, 12),
        small.tensor("blk.0.indexer.proj.weight", 8, 4),
    )
    keys = small.KEYS | {"attention.indexer.head_count": 4}
    (layer,) = model_spec(
        small.header("deepseek32", keys, *small.outside(), *small.latent_attention(), *indexer)
    ).layers
    assert (layer.attention, layer.index_length, layer.n_index_head) == ("mla", 3, 4)


@pytest.mark.parametrize("form", ["gguf", "mlx"])
def test_an_unsplit_projection_caches_whole_heads(form: Literal["gguf", "mlx"]) -> None:
    whole = (
        *(t for t in small.latent_attention() if "_b." not in t.name),
        small.tensor("blk.0.attn_kv_b.weight", 6, 14),
    )
    keys = small.KEYS | {"attention.kv_lora_rank": 6}
    spec = model_spec(small.header("deepseek2", keys, *small.outside(), *whole, format=form))
    assert spec.layers[0].attention == "full"


# --- sliding windows ---------------------------------------------------------------------


def windows(architecture: str, n_block: int = 8, **keys: Value) -> list[int | None]:
    spec = model_spec(small.dense(architecture, n_block, **keys))
    return [x.window for x in spec.layers]


W = {"attention__sliding_window": 16}


@pytest.mark.parametrize(
    ("architecture", "keys", "expected"),
    [
        ("gemma2", {}, [4096, None] * 4),
        ("gemma3", W, [16] * 5 + [None, 16, 16]),
        ("gemma3", {}, [None] * 8),
        ("gemma3n", W, [16] * 4 + [None, 16, 16, 16]),
        ("cohere2", W, [16, 16, 16, None] * 2),
        ("gpt-oss", W, [16, None] * 4),
        ("laguna", W, [None, 16, 16, 16] * 2),
        ("llama4", {}, [8192, 8192, 8192, None] * 2),
        ("llama4", {"attention__sliding_window": 0}, [None] * 8),
        ("olmo2", W, [16, 16, 16, None] * 2),
        ("exaone4", W, [None] * 8),
        ("lfm2", W, [16] * 8),
        ("phi3", W, [None] * 8),
        # a number in the file overrides the rule, an array decides by itself
        ("gemma3", W | {"attention__sliding_window_pattern": 2}, [16, None] * 4),
        ("gemma4", W | {"attention__sliding_window_pattern": (True, False) * 4}, [16, None] * 4),
        ("mimo2", W | {"attention__sliding_window_pattern": (0, 1) * 4}, [None, 16] * 4),
        ("novel", W | {"attention__sliding_window_pattern": (1, 0) * 4}, [16, None] * 4),
    ],
)
def test_sliding_layers(
    architecture: str, keys: dict[str, Value], expected: list[int | None]
) -> None:
    assert windows(architecture, **keys) == expected


def test_exaone4_slides_at_its_large_size_only() -> None:
    assert windows("exaone4", n_block=64)[:4] == [4096, 4096, 4096, None]


def test_sliding_heads_can_be_shorter() -> None:
    keys = W | {"attention__sliding_window_pattern": (True, False)}
    header = small.dense("gemma4", 2, **keys, attention__key_length=8, attention__value_length=8)
    wide = tuple(
        small.tensor(t.name, 8, 8) if t.name.startswith(("blk.1.attn_k.", "blk.1.attn_v.")) else t
        for t in header.tensors
    )
    short = {"gemma4.attention.key_length_swa": 4, "gemma4.attention.value_length_swa": 4}
    spec = model_spec(replace(header, tensors=wide, metadata={**header.metadata, **short}))
    assert [x.key_length for x in spec.layers] == [4, 8]
    assert spec.warnings == ()


# --- what cannot be believed -------------------------------------------------------------


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
