"""Layers of a model: attention, caches, recurrent state, sliding windows."""

from dataclasses import replace
from typing import Literal

import pytest
import small_models as small
from spec_tools import spec_of

from tokcast.predictor.header import Tensor, Value
from tokcast.predictor.model import model_spec
from tokcast.predictor.spec import Layer

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
    # one row of 512 that all heads take as key and as value
    "deepseek-v4-flash": {("mla", "none", 64, 1, 512, 512, 128): 43},
    "minimax-m3": {("full", "none", 64, 4, 128, 128, None): 60},
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
