"""Quantized matrices and the forms checkpoints keep them in."""

import mlx_models
import pytest
from mlx_models import AFFINE, LLAMA, one, tensors_of

from tokcast.predictor.errors import InputError
from tokcast.predictor.mlx import read_mlx
from tokcast.predictor.safetensors import tensor_bytes


@pytest.mark.parametrize(
    ("bits", "group", "words", "scales", "columns"),
    [
        (4, 64, 32, 4, 256),
        (8, 32, 64, 8, 256),
        (2, 128, 16, 2, 256),
        (3, 32, 24, 8, 256),
        (5, 64, 40, 4, 256),
        (6, 64, 48, 4, 256),
    ],
)
def test_a_row_of_words_and_scales_has_the_columns_it_was_made_of(
    bits, group, words, scales, columns
):
    tensor = one(
        {
            "model.layers.0.mlp.up_proj.weight": ("U32", (512, words)),
            "model.layers.0.mlp.up_proj.scales": ("BF16", (512, scales)),
            "model.layers.0.mlp.up_proj.biases": ("BF16", (512, scales)),
        },
        quantization={"group_size": group, "bits": bits},
    )
    assert (tensor.name, tensor.type) == ("blk.0.ffn_up.weight", f"MLX{bits}G{group}")
    assert tensor.shape == (columns, 512)
    assert tensor.n_bytes == 512 * (4 * words + 2 * 2 * scales)


@pytest.mark.parametrize(
    ("mode", "words", "groups", "bits_per_weight"),
    [("MXFP4", 32, 8, 4.25), ("NVFP4", 32, 16, 4.5), ("MXFP8", 64, 8, 8.25)],
)
def test_modes_of_small_floats_are_told_by_byte_scales(mode, words, groups, bits_per_weight):
    tensor = one(
        {
            "model.layers.0.mlp.down_proj.weight": ("U32", (128, words)),
            "model.layers.0.mlp.down_proj.scales": ("U8", (128, groups)),
        }
    )
    assert (tensor.type, tensor.shape) == (mode, (256, 128))
    assert 8 * tensor.n_bytes / tensor.n_params == bits_per_weight


WORDS = {
    # 4 bits in groups of 64 or 8 bits in groups of 32: 512 or 256 columns.
    "model.layers.0.self_attn.o_proj.weight": ("U32", (256, 64)),
    "model.layers.0.self_attn.o_proj.scales": ("F16", (256, 8)),
    "model.layers.0.self_attn.o_proj.biases": ("F16", (256, 8)),
}


@pytest.mark.parametrize(
    ("section", "type_name", "columns"),
    [
        ({"quantization": AFFINE}, "MLX4G64", 512),
        ({"quantization": {"group_size": 32, "bits": 8}}, "MLX8G32", 256),
        ({"quantization_config": {"group_size": 32, "bits": 8}}, "MLX8G32", 256),
        (
            {
                "quantization": {
                    **AFFINE,
                    "model.layers.0.self_attn.o_proj": {"bits": 8, "group_size": 32},
                }
            },
            "MLX8G32",
            256,
        ),
        ({"quantization": {**AFFINE, "model.norm": False}}, "MLX4G64", 512),
        ({}, "MLX4G64", 512),
    ],
)
def test_the_config_decides_what_the_shapes_leave_open(section, type_name, columns):
    tensor = one(WORDS, **section)
    assert (tensor.type, tensor.shape) == (type_name, (columns, 256))


def test_a_row_that_must_be_as_wide_as_the_model_decides_against_the_config():
    parts = {name.replace("o_proj", "q_proj"): part for name, part in WORDS.items()}
    header = read_mlx({**LLAMA, "quantization": AFFINE}, parts, "org/model")
    assert header.tensors[0].shape == (256, 256)
    assert header.tensors[0].type == "MLX8G32"
    assert header.warnings == (
        "config.json gives other bits or group sizes than the shapes of "
        "model.layers.0.self_attn.q_proj; the shapes are believed",
    )


def test_bits_that_the_shapes_contradict_are_a_warning():
    header = read_mlx({**LLAMA, "quantization": {"group_size": 64, "bits": 2}}, WORDS, "org/model")
    assert header.tensors[0].type == "MLX4G64"
    assert "the shapes are believed" in header.warnings[0]


@pytest.mark.parametrize(
    "parts",
    [
        {"q_proj.weight": ("U32", (256, 33)), "q_proj.scales": ("F16", (256, 8))},
        {"q_proj.weight": ("U32", (256, 32)), "q_proj.scales": ("F16", (128, 8))},
        {"q_proj.weight": ("U32", (256, 32)), "q_proj.scales": ("F16", (256, 0))},
        {"q_proj.weight": ("U32", (32,)), "q_proj.scales": ("F16", ())},
        {"q_proj.weight": ("U32", (256, 32)), "q_proj.scales": ("U8", (256, 5))},
        {"q_proj.weight": ("U32", (256, 32))},
        {"q_proj.weight": ("U8", (32768, 1)), "q_proj.weight.absmax": ("U8", (1024,))},
        {"q_proj.weight": ("U8", (64, 256)), "q_proj.weight_scale": ("BF16", (1,))},
        {"q_proj.qweight": ("I32", (256, 32)), "q_proj.scales": ("F16", (3,))},
        {"q_proj.qweight": ("I32", (1, 1)), "q_proj.scales": ("F16", (3, 7))},
    ],
)
def test_packing_that_is_not_known_is_refused_since_counts_would_be_wrong(parts):
    tensors = {f"model.layers.0.self_attn.{name}": part for name, part in parts.items()}
    with pytest.raises(InputError, match="q_proj is packed in a way that is not known") as failure:
        read_mlx(LLAMA, tensors, "org/model")
    assert str(failure.value).isprintable()


GPTQ = {"quantization_config": {"quant_method": "gptq", "bits": 4, "group_size": 128}}
INT4 = {"quantization_config": {"config_groups": {"group_0": {"weights": {"num_bits": 4}}}}}
FORMS = {
    "AutoAWQ packs columns": (
        "MLX4G128",
        {"qweight": ("I32", (256, 64)), "qzeros": ("I32", (2, 64)), "scales": ("F16", (2, 512))},
        GPTQ,
    ),
    "GPTQ packs rows": (
        "MLX4G128",
        {
            "qweight": ("I32", (32, 512)),
            "qzeros": ("I32", (2, 64)),
            "scales": ("F16", (2, 512)),
            "g_idx": ("I32", (256,)),
        },
        GPTQ,
    ),
    "compressed-tensors, whole numbers": (
        "MLX4G32",
        {
            "weight_packed": ("I32", (512, 32)),
            "weight_scale": ("BF16", (512, 8)),
            "weight_shape": ("I64", (2,)),
        },
        INT4,
    ),
    "compressed-tensors, NVFP4": (
        "NVFP4",
        {
            "weight_packed": ("U8", (512, 128)),
            "weight_scale": ("F8_E4M3", (512, 16)),
            "weight_global_scale": ("F32", (1,)),
        },
        {},
    ),
    "ModelOpt, NVFP4": (
        "NVFP4",
        {
            "weight": ("U8", (512, 128)),
            "weight_scale": ("F8_E4M3", (512, 16)),
            "weight_scale_2": ("F32", ()),
            "input_scale": ("F32", ()),
        },
        {},
    ),
    "DeepSeek's 8-bit floats": (
        "F8_E4M3",
        {"weight": ("F8_E4M3", (512, 256)), "weight_scale_inv": ("F32", (4, 2))},
        {},
    ),
    "whole bytes": (
        "I8",
        {"weight": ("I8", (512, 256)), "weight_scale": ("BF16", (512, 1))},
        {},
    ),
    "half precision": ("F16", {"weight": ("F16", (512, 256))}, {}),
    "single precision": ("F32", {"weight": ("F32", (512, 256))}, {}),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms_of_other_tools_have_their_real_shape(form):
    type_name, parts, config = FORMS[form]
    tensors = {f"model.layers.0.mlp.up_proj.{name}": part for name, part in parts.items()}
    tensor = one(tensors, **config)
    assert (tensor.name, tensor.shape) == ("blk.0.ffn_up.weight", (256, 512))
    assert tensor.type == type_name
    assert tensor.n_bytes == sum(tensor_bytes(*part) for part in parts.values())


def test_words_whose_bits_nobody_tells_are_refused():
    parts = FORMS["compressed-tensors, whole numbers"][1]
    tensors = {f"model.layers.0.mlp.up_proj.{name}": part for name, part in parts.items()}
    with pytest.raises(InputError, match="up_proj is packed in a way that is not known"):
        read_mlx(LLAMA, tensors, "org/model")


def test_eight_bit_floats_are_pointed_out():
    parts = {"model.layers.0.mlp.up_proj.weight": ("F8_E4M3", (50_000, 40_000))}
    header = read_mlx(LLAMA, parts, "org/model")
    assert "2.0 GB are 8-bit floats" in header.warnings[0]


def test_single_experts_make_the_same_stacks():
    _, config, tensors = mlx_models.recorded("mixtral-8x7b")
    single = {}
    letters = {"gate_proj": "w1", "down_proj": "w2", "up_proj": "w3"}
    for name, (dtype, shape) in tensors.items():
        before, group, after = name.partition("switch_mlp.")
        if not group:
            single[name] = (dtype, shape)
            continue
        matrix, _, last = after.partition(".")
        for expert in range(8):
            key = f"{before}experts.{expert}.{letters[matrix]}.{last}"
            single[key] = (dtype, shape[1:])
    assert len(single) > len(tensors)
    assert tensors_of(read_mlx(config, single, "x")) == tensors_of(read_mlx(config, tensors, "x"))


@pytest.mark.parametrize("is_turned", [False, True])
def test_fused_experts_are_split_whichever_way_they_lie(is_turned):
    """transformers keeps (experts, out, in) for most models, (experts, in, out) for some."""

    def lying(experts, rows, columns):
        return (experts, columns, rows) if is_turned else (experts, rows, columns)

    parts = {
        "model.layers.0.mlp.experts.gate_up_proj": ("BF16", lying(8, 192, 256)),
        "model.layers.0.mlp.experts.down_proj": ("BF16", lying(8, 256, 96)),
    }
    tensors = tensors_of(read_mlx(LLAMA, parts, "x"))
    assert {name: t.shape for name, t in tensors.items()} == {
        "blk.0.ffn_gate_exps.weight": (256, 96, 8),
        "blk.0.ffn_up_exps.weight": (256, 96, 8),
        "blk.0.ffn_down_exps.weight": (96, 256, 8),
    }
    assert tensors["blk.0.ffn_up_exps.weight"].n_bytes == 2 * 256 * 96 * 8


def test_the_original_gpt_oss_checkpoint_is_mxfp4_too():
    """openai/gpt-oss-20b: blocks of 16 bytes and a scale for 32 elements, gate and up in one."""
    _, config, tensors = mlx_models.recorded("gpt-oss-20b")
    original = {}
    for name, (dtype, shape) in tensors.items():
        if ".experts." not in name:
            original[name] = (dtype, shape)
    for block in range(24):
        stem = f"model.layers.{block}.mlp.experts."
        original |= {
            f"{stem}gate_up_proj_blocks": ("U8", (32, 5760, 90, 16)),
            f"{stem}gate_up_proj_scales": ("U8", (32, 5760, 90)),
            f"{stem}gate_up_proj_bias": ("BF16", (32, 5760)),
            f"{stem}down_proj_blocks": ("U8", (32, 2880, 90, 16)),
            f"{stem}down_proj_scales": ("U8", (32, 2880, 90)),
            f"{stem}down_proj_bias": ("BF16", (32, 2880)),
        }
    assert tensors_of(read_mlx(config, original, "x")) == tensors_of(read_mlx(config, tensors, "x"))


def test_deepseeks_fused_up_projection_is_split_as_mlx_splits_it():
    _, config, tensors = mlx_models.recorded("deepseek-v3")
    plain = {k: v for k, v in tensors.items() if "embed_q" not in k and "unembed_out" not in k}
    for block in range(61):
        plain[f"model.layers.{block}.self_attn.kv_b_proj.weight"] = ("BF16", (128 * 256, 512))
    fused, split = read_mlx(config, plain, "x"), read_mlx(config, tensors, "x")
    assert {t.name: t.shape for t in fused.tensors} == {t.name: t.shape for t in split.tensors}
    assert fused.metadata == split.metadata
    key, value = (tensors_of(fused)[f"blk.0.attn_{x}_b.weight"].n_bytes for x in ("k", "v"))
    assert key + value == 2 * 128 * 256 * 512
