"""Names of tensors and architectures: llama.cpp's for those of checkpoints."""

import gguf
import mlx_models
import pytest
from gguf.constants import MODEL_ARCH_NAMES
from mlx_models import LLAMA, one, tensors_of

from tokcast.predictor.mlx import read_mlx
from tokcast.predictor.mlx_config import architecture
from tokcast.predictor.mlx_names import place
from tokcast.predictor.mlx_tables import ARCHITECTURES, SAME_ARCHITECTURES

RECORDINGS = mlx_models.recordings()


@pytest.mark.parametrize("name", RECORDINGS)
def test_names_are_those_of_llama_cpps_converter(name):
    """`gguf` ships the converter's table of names; where it knows one, ours is the same."""
    _, config, tensors = mlx_models.recorded(name)
    arch, _ = architecture(config)
    known = {a: number for number, a in MODEL_ARCH_NAMES.items()}
    if arch not in known:
        pytest.skip(f"this version of gguf does not know {arch}")
    table = gguf.get_tensor_name_map(known[arch], 200)
    n_known = 0
    for ours in tensors:
        theirs = table.get_name(in_transformers(ours), (".weight", ".bias"))
        if theirs is not None and not ours.endswith((".scales", ".biases")):
            found = place(ours, arch, 200)
            assert found is not None
            n_known += 1
            # Parameters without an ending get theirs in the converter; the fused matrix is
            # split or renamed after naming.
            stem = found.name.removesuffix(".weight").removesuffix(".bias")
            fused = stem.replace("ffn_gate_up", "ffn_up")
            assert theirs in {found.name, stem, fused + ".weight"}
    assert n_known > 10


def in_transformers(name):
    """Return a parameter's name as transformers, and so the converter, has it."""
    for mlx, theirs in {
        "model.language_model.": "model.",
        "language_model.model.": "model.",
        "language_model.lm_head": "lm_head",
        "mixer.switch_mlp.fc1": "mixer.experts.up_proj",
        "mixer.switch_mlp.fc2": "mixer.experts.down_proj",
        "switch_mlp": "experts",
        "experts.switch_glu": "experts",
    }.items():
        name = name.replace(mlx, theirs)
    return name


def test_blocks_of_multi_token_prediction_follow_the_others():
    parts = {
        "model.layers.0.self_attn.q_proj.weight": ("BF16", (256, 256)),
        "mtp.layers.0.self_attn.q_proj.weight": ("BF16", (256, 256)),
        "mtp.fc.weight": ("BF16", (256, 512)),
        "mtp.pre_fc_norm_hidden.weight": ("BF16", (256,)),
        "mtp.norm.weight": ("BF16", (256,)),
    }
    header = read_mlx(LLAMA, parts, "x")
    assert set(tensors_of(header)) == {
        "blk.0.attn_q.weight",
        "blk.1.attn_q.weight",
        "blk.1.nextn.eh_proj.weight",
        "blk.1.nextn.hnorm.weight",
        "blk.1.nextn.shared_head_norm.weight",
    }
    assert header.metadata["llama.block_count"] == 2
    assert header.metadata["llama.nextn_predict_layers"] == 1


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("model.embed_tokens.weight", "token_embd.weight"),
        ("language_model.lm_head.weight", "output.weight"),
        ("model.language_model.norm.weight", "output_norm.weight"),
        ("backbone.norm_f.weight", "output_norm.weight"),
        ("transformer.h.7.attn.c_attn.bias", "blk.7.attn_qkv.bias"),
        ("model.layers.3.self_attn.qkv_proj.weight", "blk.3.attn_qkv.weight"),
        ("model.layers.0.block_sparse_moe.gate.weight", "blk.0.ffn_gate_inp.weight"),
        ("model.layers.0.mlp.gate.wg.weight", "blk.0.ffn_gate_inp.weight"),
        ("model.layers.0.mlp.gate.e_score_correction_bias", "blk.0.exp_probs_b.bias"),
        ("model.layers.0.mlp.shared_expert_gate.weight", "blk.0.ffn_gate_inp_shexp.weight"),
        ("model.layers.0.mlp.shared_expert.up_proj.weight", "blk.0.ffn_up_shexp.weight"),
        ("model.layers.0.mlp.shared_experts.down_proj.weight", "blk.0.ffn_down_shexp.weight"),
        ("model.layers.9.linear_attn.in_proj_qkvz.weight", "blk.9.ssm_in.weight"),
        ("model.layers.9.linear_attn.in_proj_ba.weight", "blk.9.ssm_ba.weight"),
        ("model.layers.9.linear_attn.A_log", "blk.9.ssm_a"),
        ("model.layers.9.mamba.dt_bias", "blk.9.ssm_dt.bias"),
        ("model.layers.9.mamba.D", "blk.9.ssm_d"),
        ("model.layers.9.conv.conv.weight", "blk.9.shortconv.conv.weight"),
        ("model.layers.9.feed_forward.w2.weight", "blk.9.ffn_down.weight"),
        ("backbone.layers.9.mixer.gate.weight", "blk.9.ffn_gate_inp.weight"),
        ("model.layers.61.shared_head.head.weight", "blk.61.nextn.shared_head_head.weight"),
        ("model.layers.9.self_attn.sinks", "blk.9.attn_sinks.weight"),
    ],
)
def test_names_as_llama_cpp_has_them(theirs, ours):
    found = place(theirs, "llama", 61)
    assert found is not None
    assert found.name == ours


@pytest.mark.parametrize(
    "name",
    [
        "model.layers.0.self_attn.strange.weight",
        "model.layers.0.self_attn.q_proj.weird",
        "model.layers.0.mlp.experts.1.2.up_proj.weight",
        "model.layers.٣.mlp.up_proj.weight",
        "model.layers.1234567.mlp.up_proj.weight",
        "strange",
        "",
        "....",
    ],
)
def test_names_that_are_not_known_have_no_place(name):
    assert place(name, "llama", 1) is None


def test_unknown_names_are_kept_and_counted():
    parts = {"model.layers.0.quantum.weight": ("BF16", (4, 8))}
    header = read_mlx(LLAMA, parts, "x")
    assert header.tensors[0].name == "model.layers.0.quantum.weight"
    assert header.tensors[0].shape == (8, 4)
    assert header.warnings == ("1 tensors have names that are not known and keep them",)


def test_constants_that_old_checkpoints_carry_are_left_out():
    parts = {
        "model.layers.0.self_attn.q_proj.weight": ("F16", (256, 256)),
        "model.layers.0.self_attn.rotary_emb.inv_freq": ("F32", (64,)),
    }
    assert one(parts).name == "blk.0.attn_q.weight"


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"model_type": "mistral"}, "llama"),
        ({"model_type": "mistral3", "text_config": {"model_type": "ministral3"}}, "mistral3"),
        ({"model_type": "kimi_vl", "text_config": {"model_type": "deepseek_v3"}}, "deepseek2"),
        ({"model_type": "qwen3_5_moe", "text_config": {}}, "qwen35moe"),
        ({"model_type": "gemma3", "text_config": {"model_type": "gemma3_text"}}, "gemma3"),
        ({"model_type": "lfm2-vl", "text_config": {"model_type": "lfm2"}}, "lfm2"),
        ({"model_type": "glm4_moe_lite"}, "deepseek2"),
        ({"model_type": "phi"}, "phi2"),
        ({"model_type": "olmoe"}, "olmoe"),
    ],
)
def test_model_types_have_llama_cpps_names(config, expected):
    assert architecture(config) == (expected, "")


def test_every_architecture_named_is_one_of_llama_cpps():
    named = set(ARCHITECTURES.values()) | SAME_ARCHITECTURES
    newer = {"deepseek32", "laguna", "mellum", "muse-glimmer", "spark2_5"}
    assert named - set(MODEL_ARCH_NAMES.values()) <= newer


def test_a_model_type_that_is_not_known_stays_and_is_said():
    parts = {"model.layers.0.self_attn.q_proj.weight": ("BF16", (256, 256))}
    header = read_mlx({**LLAMA, "model_type": "brand_new\n"}, parts, "x")
    assert header.metadata["general.architecture"] == "brand_new\n"
    assert header.warnings == ("model_type 'brand_new\\\\n' has no llama.cpp name that is known",)
    nothing = read_mlx({}, parts, "x")
    assert "config.json has no model_type" in nothing.warnings[0]
    assert nothing.metadata["unknown.block_count"] == 1
