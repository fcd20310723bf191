"""MLX checkpoints against mlx-lm's own models: element counts, bytes, types and metadata."""

import json

import mlx_models
import pytest
from mlx_models import AFFINE, tensors_of

from tokcast.predictor import catalogue
from tokcast.predictor.mlx import read_mlx, read_mlx_folder
from tokcast.predictor.model import model_spec
from tokcast.predictor.safetensors import tensor_bytes

RECORDINGS = mlx_models.recordings()


def recorded_header(name):
    _, config, tensors = mlx_models.recorded(name)
    return read_mlx(config, tensors, f"mlx-community/{name}")


def printed(count):
    return f"{count / 1e9:.2f} B" if count >= 1e9 else f"{count / 1e6:.2f} M"


# GLM-4.5's GGUF has MTP blocks that MLX leaves out; of Gemma 4 no printed figure was found.
NOT_PRINTED = {"glm-4.5-air", "gemma-4-26b-a4b"}


@pytest.mark.parametrize("name", sorted(set(RECORDINGS) - NOT_PRINTED))
def test_parameters_equal_what_llama_bench_prints_for_the_model(name):
    recording, config, tensors = mlx_models.recorded(name)
    header = read_mlx(config, tensors, name)
    assert printed(sum(t.n_params for t in header.tensors)) == recording["params"]


def test_with_its_mtp_block_a_checkpoint_counts_as_llama_bench_does():
    """zai-org/GLM-4.5-Air: one block more, an embedding and a head of its own; 110.47 B."""
    _, config, tensors = mlx_models.recorded("glm-4.5-air")
    whole = {
        name.replace("layers.45.", "layers.46."): part
        for name, part in tensors.items()
        if "layers.45." in name
    }
    nextn = {
        "eh_proj": (4096, 8192),
        "enorm": (4096,),
        "hnorm": (4096,),
        "shared_head.norm": (4096,),
        "shared_head.head": (151552, 4096),
        "embed_tokens": (151552, 4096),
    }
    whole |= {f"model.layers.46.{n}.weight": ("BF16", shape) for n, shape in nextn.items()}
    header = read_mlx(config, {**tensors, **whole}, "x")
    assert printed(sum(t.n_params for t in header.tensors)) == "110.47 B"
    assert header.metadata["glm4moe.block_count"] == 47
    assert header.metadata["glm4moe.nextn_predict_layers"] == 1
    assert header.warnings == ()


PLAIN_4_BIT = [
    name
    for name in RECORDINGS
    if mlx_models.recorded(name)[0]["quantize"] == AFFINE and name in catalogue.names()
]


@pytest.mark.parametrize("name", PLAIN_4_BIT)
def test_the_catalogues_mlx_conversion_has_the_bytes_of_the_real_one(name):
    real, listed = recorded_header(name), catalogue.header(name, "mlx-4bit")
    # The embedding for each layer of Gemma 3n is padded by llama.cpp's converter.
    assert sum(t.n_bytes for t in listed.tensors) == pytest.approx(
        sum(t.n_bytes for t in real.tensors), rel=5e-4
    )


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_stored_byte_is_in_some_tensor_and_every_name_is_known(name):
    _, config, tensors = mlx_models.recorded(name)
    header = read_mlx(config, tensors, name)
    stored = sum(tensor_bytes(dtype, shape) for dtype, shape in tensors.values())
    assert sum(t.n_bytes for t in header.tensors) == stored
    assert header.warnings == ()
    assert len(tensors_of(header)) == len(header.tensors)
    assert {t.name for t in header.tensors}.isdisjoint(tensors)


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recorded_model_becomes_a_known_spec_without_complaint(name):
    spec = model_spec(recorded_header(name))
    assert (spec.confidence, spec.warnings) == ("known", ())
    assert 0 < spec.active_params <= spec.n_params


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("llama-3.1-8b", {"MLX4G64", "BF16"}),
        ("llama-3.2-1b", {"MLX8G32", "BF16"}),
        ("mixtral-8x7b", {"MLX3G64", "BF16"}),
        ("gemma-2-9b", {"MLX2G64", "BF16"}),
        ("phi-4-mini", {"MLX5G64", "BF16"}),
        ("qwen3-8b", {"MLX6G64", "BF16"}),
        ("stablelm-2-1.6b", {"MLX4G128", "BF16"}),
        ("qwen3-30b-a3b", {"MLX4G64", "MLX8G64", "BF16"}),
        ("qwen2.5-7b", {"MXFP4", "BF16"}),
        ("qwen3.5-27b", {"NVFP4", "BF16"}),
        ("minimax-m2", {"MXFP8", "MLX8G64", "BF16"}),
        ("gpt-oss-20b", {"MXFP4", "MLX8G64", "BF16"}),
        ("smollm3-3b", {"BF16"}),
    ],
)
def test_types_are_what_the_model_was_quantized_to(name, types):
    assert {t.type for t in recorded_header(name).tensors} == types


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "qwen3-30b-a3b",
            {
                "general.architecture": "qwen3moe",
                "general.name": "qwen3-30b-a3b",
                "qwen3moe.block_count": 48,
                "qwen3moe.embedding_length": 2048,
                "qwen3moe.vocab_size": 151936,
                "qwen3moe.context_length": 40960,
                "qwen3moe.attention.head_count": 32,
                "qwen3moe.attention.head_count_kv": 4,
                "qwen3moe.attention.key_length": 128,
                "qwen3moe.expert_count": 128,
                "qwen3moe.expert_used_count": 8,
                "qwen3moe.expert_feed_forward_length": 768,
                "qwen3moe.feed_forward_length": 6144,
            },
        ),
        (
            "gemma-3-4b",
            {
                "general.architecture": "gemma3",
                "gemma3.attention.sliding_window": 1024,
                "gemma3.attention.sliding_window_pattern": ((True,) * 5 + (False,)) * 5
                + (True,) * 4,
            },
        ),
        (
            "deepseek-v3",
            {
                "general.architecture": "deepseek2",
                "deepseek2.attention.head_count": 128,
                "deepseek2.attention.head_count_kv": 1,
                "deepseek2.attention.kv_lora_rank": 512,
                "deepseek2.attention.q_lora_rank": 1536,
                "deepseek2.attention.key_length": 576,
                "deepseek2.attention.value_length": 512,
                "deepseek2.attention.key_length_mla": 192,
                "deepseek2.attention.value_length_mla": 128,
                "deepseek2.rope.dimension_count": 64,
                "deepseek2.leading_dense_block_count": 3,
                "deepseek2.expert_shared_feed_forward_length": 2048,
                "deepseek2.feed_forward_length": 18432,
            },
        ),
        (
            # mlx-lm caches whole heads for this one.
            "deepseek-v2-lite",
            {
                "deepseek2.attention.head_count_kv": 16,
                "deepseek2.attention.key_length": 192,
                "deepseek2.attention.value_length": 128,
            },
        ),
        (
            "granite-4.0-h-tiny",
            {
                "general.architecture": "granitehybrid",
                "granitehybrid.attention.head_count_kv": tuple(
                    4 if i in (5, 15, 25, 35) else 0 for i in range(40)
                ),
                "granitehybrid.ssm.inner_size": 3072,
                "granitehybrid.ssm.state_size": 128,
                "granitehybrid.ssm.time_step_rank": 48,
                "granitehybrid.ssm.group_count": 1,
                "granitehybrid.ssm.conv_kernel": 4,
                "granitehybrid.expert_shared_feed_forward_length": 1024,
            },
        ),
        (
            "qwen3.5-35b-a3b",
            {
                "general.architecture": "qwen35moe",
                "qwen35moe.attention.head_count_kv": 2,
                "qwen35moe.attention.key_length": 256,
                "qwen35moe.full_attention_interval": 4,
                "qwen35moe.ssm.inner_size": 4096,
                "qwen35moe.ssm.time_step_rank": 32,
                "qwen35moe.ssm.group_count": 16,
                "qwen35moe.ssm.state_size": 128,
                "qwen35moe.rope.dimension_count": 64,
            },
        ),
        (
            "gemma-4-26b-a4b",
            {
                "general.architecture": "gemma4",
                "gemma4.attention.key_length": 512,
                "gemma4.attention.key_length_swa": 256,
                "gemma4.attention.head_count": 16,
                "gemma4.attention.head_count_kv": (8, 8, 8, 8, 8, 2) * 5,
                "gemma4.feed_forward_length": 2112,
                "gemma4.expert_feed_forward_length": 704,
            },
        ),
        (
            "lfm2-8b-a1b",
            {
                "general.architecture": "lfm2moe",
                "lfm2moe.shortconv.l_cache": 3,
                "lfm2moe.leading_dense_block_count": 2,
                "lfm2moe.attention.head_count_kv": tuple(
                    8 if kind == "a" else 0 for kind in "ccacccacccacccacccaccacc"
                ),
            },
        ),
        (
            "gemma-3n-e2b",
            {
                "gemma3n.embedding_length_per_layer_input": 256,
                "gemma3n.attention.shared_kv_layers": 10,
                "gemma3n.altup.num_inputs": 4,
                "gemma3n.attention.sliding_window": 512,
            },
        ),
        (
            "codestral-mamba-7b",
            {
                "mamba2.attention.head_count": 0,
                "mamba2.ssm.inner_size": 8192,
                "mamba2.ssm.time_step_rank": 128,
                "mamba2.feed_forward_length": 0,
            },
        ),
        (
            "nemotron-3-nano-30b-a3b",
            {
                "general.architecture": "nemotron_h_moe",
                "nemotron_h_moe.expert_shared_feed_forward_length": 3712,
            },
        ),
    ],
)
def test_metadata_has_the_figures_of_the_models_card(name, expected):
    metadata = recorded_header(name).metadata
    assert {key: metadata.get(key) for key in expected} == expected


def test_nemotrons_blocks_are_one_thing_each():
    metadata = recorded_header("nemotron-3-nano-30b-a3b").metadata
    pattern = mlx_models.recorded("nemotron-3-nano-30b-a3b")[1]["hybrid_override_pattern"]
    kv = metadata["nemotron_h_moe.attention.head_count_kv"]
    ffn = metadata["nemotron_h_moe.feed_forward_length"]
    assert kv == tuple(2 if kind == "*" else 0 for kind in pattern)
    assert ffn == tuple(1856 if kind == "E" else 0 for kind in pattern)


@pytest.mark.parametrize(
    ("name", "billions"),
    [("qwen3-30b-a3b", 3.3), ("gpt-oss-20b", 3.6), ("deepseek-v3", 37), ("glm-4.5-air", 12)],
)
def test_active_parameters_are_near_the_published_ones(name, billions):
    # Cards differ in whether the embedding table counts.
    assert model_spec(recorded_header(name)).active_params == pytest.approx(billions * 1e9, rel=0.1)


def test_layers_of_a_recorded_model_cache_what_mlx_caches():
    latent = model_spec(recorded_header("deepseek-v3")).layers[0]
    assert (latent.attention, latent.n_head_kv, latent.key_length) == ("mla", 1, 576)
    whole = model_spec(recorded_header("gpt-oss-20b")).layers
    assert [layer.window for layer in whole[:4]] == [128, None, 128, None]
    mixed = model_spec(recorded_header("qwen3.5-27b")).layers
    assert [layer.mixer for layer in mixed[:4]] == ["linear", "linear", "linear", "none"]
    assert [layer.attention for layer in mixed[:4]] == ["none", "none", "none", "full"]
    assert mixed[0].state_elements == 48 * 128 * 128 + 3 * (2 * 16 * 128 + 48 * 128)


@pytest.mark.parametrize("name", sorted(mlx_models.TINY))
def test_the_headers_that_mlx_wrote_are_read_whole(name):
    """Headers saved by mlx-lm itself, see tests/data/mlx/record.py."""
    folder = mlx_models.FOLDER / name
    header = read_mlx_folder(folder)
    assert header.warnings == ()
    text = (folder / "model.safetensors").read_bytes()[8:]
    entries = json.loads(text)
    said = entries.pop("__metadata__")
    assert said == {"format": "mlx"}
    assert sum(t.n_bytes for t in header.tensors) == max(
        entry["data_offsets"][1] for entry in entries.values()
    )
    # As many elements as the unquantized model of this config has.
    assert sum(t.n_params for t in header.tensors) == N_PARAMS[name]


# Counted by hand from the configs in mlx_models.TINY.
N_PARAMS = {
    "tiny-llama-mixed": 2 * 512 * 128
    + 128
    + 4 * (2 * 128 + 2 * 128 * 128 + 2 * 64 * 128 + 3 * 128 * 256),
    "tiny-qwen3-moe-mxfp4": 512 * 128
    + 128
    + 2 * (2 * 128 + 2 * 64 + 2 * 256 * 128 + 2 * 128 * 128 + 8 * 128 + 8 * 3 * 128 * 96),
    "tiny-gemma3-8bit": 512 * 128
    + 128
    + 7 * (4 * 128 + 2 * 32 + 2 * 128 * 128 + 2 * 32 * 128 + 3 * 128 * 256),
}


def test_mixed_bits_are_told_tensor_by_tensor():
    tensors = tensors_of(read_mlx_folder(mlx_models.FOLDER / "tiny-llama-mixed"))
    types = {name: t.type for name, t in tensors.items()}
    assert types["output.weight"] == types["blk.3.ffn_down.weight"] == "MLX6G64"
    assert types["token_embd.weight"] == types["blk.0.ffn_up.weight"] == "MLX4G64"


def test_models_saved_by_mlx_now_are_read_as_they_are(tmp_path):
    pytest.importorskip("mlx_lm", reason="mlx-lm is not installed")
    from mlx.utils import tree_flatten
    from mlx_lm.utils import get_total_parameters

    for name in mlx_models.TINY:
        model = mlx_models.save_tiny(name, tmp_path / name)
        header = read_mlx_folder(tmp_path / name)
        assert header.warnings == ()
        n_bytes = sum(array.nbytes for _, array in tree_flatten(model.parameters()))
        assert sum(t.n_bytes for t in header.tensors) == n_bytes
        assert sum(t.n_params for t in header.tensors) == get_total_parameters(model)


def test_recordings_are_what_mlx_makes_today():
    pytest.importorskip("mlx_lm", reason="mlx-lm is not installed")
    for name in RECORDINGS:
        recording, config, tensors = mlx_models.recorded(name)
        plain = {k: v for k, v in config.items() if k != "quantization"}
        model, _ = mlx_models.build(plain, recording["quantize"])
        assert mlx_models.listing_of(model) == tensors, name
