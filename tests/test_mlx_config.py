"""What a checkpoint's config says and leaves out, and configs that say anything."""

import mlx_models
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mlx_models import AFFINE, LLAMA, one, tensors_of

from tokcast.predictor.errors import InputError
from tokcast.predictor.mlx import read_mlx
from tokcast.predictor.mlx_tables import names
from tokcast.predictor.model import model_spec
from tokcast.predictor.safetensors import DTYPE_BITS

FEW = settings(deadline=None, max_examples=100)


def recorded_header(name):
    _, config, tensors = mlx_models.recorded(name)
    return read_mlx(config, tensors, f"mlx-community/{name}")


def test_a_vision_tower_is_left_out_with_its_size():
    parts = {
        "language_model.model.layers.0.self_attn.q_proj.weight": ("BF16", (256, 256)),
        "vision_tower.blocks.0.attn.qkv.weight": ("BF16", (1000, 1000)),
        "model.visual.merger.mlp.0.weight": ("F32", (1000, 1000)),
        "multi_modal_projector.linear_1.weight": ("BF16", (500, 1000)),
    }
    header = read_mlx(LLAMA, parts, "x")
    assert list(tensors_of(header)) == ["blk.0.attn_q.weight"]
    assert header.warnings == ("vision or audio tower ignored, 7 MB",)


def test_nothing_but_a_vision_tower_is_refused():
    with pytest.raises(InputError, match="x: no weights of a language model among 1 tensors"):
        read_mlx(LLAMA, {"vision_tower.a.weight": ("BF16", (1, 1))}, "x")


def test_a_tower_may_be_packed_in_any_way():
    parts = {
        "model.layers.0.self_attn.q_proj.weight": ("BF16", (256, 256)),
        "visual.blocks.0.mlp.weight": ("U8", (77, 13)),
    }
    assert one(parts).name == "blk.0.attn_q.weight"


@pytest.mark.parametrize(("is_tied", "n_tensors"), [(True, 1), (False, 2)])
def test_a_head_stored_beside_the_embedding_it_is_tied_to_is_not_loaded(is_tied, n_tensors):
    parts = {
        "model.embed_tokens.weight": ("BF16", (1000, 256)),
        "lm_head.weight": ("BF16", (1000, 256)),
    }
    header = read_mlx({**LLAMA, "tie_word_embeddings": is_tied}, parts, "x")
    assert len(header.tensors) == n_tensors


def test_heads_that_a_nested_config_leaves_to_defaults_come_from_the_shapes():
    """google/gemma-3-4b-it says hidden size, layers and window, and no head count at all."""
    _, _, tensors = mlx_models.recorded("gemma-3-4b")
    config = {
        "model_type": "gemma3",
        "text_config": {
            "model_type": "gemma3_text",
            "hidden_size": 2560,
            "intermediate_size": 10240,
            "num_hidden_layers": 34,
            "sliding_window": 1024,
        },
        "quantization": AFFINE,
    }
    nested = {f"language_model.{name}": part for name, part in tensors.items()}
    metadata = read_mlx(config, nested, "x").metadata
    assert metadata["gemma3.attention.head_count"] == 8
    assert metadata["gemma3.attention.head_count_kv"] == 4
    assert metadata["gemma3.attention.key_length"] == 256
    assert model_spec(read_mlx(config, nested, "x")).warnings == ()


@pytest.mark.parametrize(
    ("told", "sliding"),
    [
        ({"layer_types": ["sliding_attention", "full_attention"] * 2}, (True, False) * 2),
        ({"layer_types": ["chunked_attention", "full_attention"] * 2}, (True, False) * 2),
        ({"hybrid_layer_pattern": [0, 1, 1, 0]}, (False, True, True, False)),
        ({"sliding_window_pattern": 2}, (True, False, True, False)),
        ({"sliding_window_pattern": "LLLG"}, (True, True, True, False)),
        ({"global_attn_every_n_layers": 4}, (True, True, True, False)),
        ({"use_sliding_window": False}, None),
        ({}, None),
    ],
)
def test_sliding_blocks_however_a_config_tells_them(told, sliding):
    parts = {"model.layers.0.self_attn.q_proj.weight": ("BF16", (256, 256))}
    config = {**LLAMA, "num_hidden_layers": 4, "sliding_window": 512, **told}
    metadata = read_mlx(config, parts, "x").metadata
    assert metadata.get("llama.attention.sliding_window_pattern") == sliding
    expected = None if "use_sliding_window" in told else 512
    assert metadata.get("llama.attention.sliding_window") == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["bits", "group_size", "head_dim"]), inner, max_size=3)
    ),
    max_leaves=4,
)


CONFIG_KEYS = st.sampled_from(
    sorted(
        names("""
            text_config hidden_size num_hidden_layers num_attention_heads layer_types quantization
            num_key_value_heads head_dim sliding_window sliding_window_pattern kv_lora_rank
            qk_nope_head_dim v_head_dim num_experts_per_tok hybrid_override_pattern
            rope_parameters partial_rotary_factor full_attention_interval global_head_dim
        """)
    )
)


PARTS = st.tuples(
    st.sampled_from(sorted(DTYPE_BITS)),
    st.lists(st.integers(0, 9) | st.just(2**62), max_size=5).map(tuple),
)


def names_of_recordings():
    models = ("deepseek-v3", "granite-4.0-h-tiny", "gemma-3n-e2b", "qwen3.5-27b")
    return sorted({name for model in models for name in list(mlx_models.recorded(model)[2])[:150]})


@FEW
@given(
    st.dictionaries(CONFIG_KEYS, JSON, max_size=8),
    st.dictionaries(
        st.sampled_from(names_of_recordings()) | st.text(max_size=9), PARTS, max_size=9
    ),
    st.sampled_from(["llama", "deepseek_v3", "qwen3_5", "granitemoehybrid", "", None, [], {}]),
)
def test_any_config_with_any_tensors_is_read_or_refused_in_a_line(config, tensors, model_type):
    try:
        header = read_mlx({"model_type": model_type, **config}, tensors, "org/model")
    except InputError as error:
        complaint = str(error)
    else:
        complaint = ""
        assert all(w.isprintable() for w in header.warnings)
        assert header.tensors
    assert complaint.isprintable()
