"""Types per tensor: llama-quantize's own snapshots, printed sizes, and the rules by hand."""

import dataclasses
import hashlib
from collections import Counter

import catalogue_evidence as evidence
import pytest

from tokcast.predictor import catalogue, mlx_quantize
from tokcast.predictor.architecture import Architecture, Shape, from_mapping
from tokcast.predictor.quantize import assign
from tokcast.predictor.quantize_cells import CONDITIONS
from tokcast.predictor.quantize_roles import split_name, treatment_of
from tokcast.predictor.quantize_rules import (
    EIGHT_EXPERTS,
    EMBEDDING,
    FALLBACK,
    FILE_TYPES,
    OUTPUT,
    RULES,
)
from tokcast.predictor.quants import TYPES_BY_NAME, bits_per_weight
from tokcast.predictor.shapes import shapes

SNAPSHOTS = {
    "qwen3-0.6b": "qwen3-0.6b-untied",
    "qwen3-14b": "qwen3-14b",
    "meta-llama-3.1-70b-instruct": "llama-3.1-70b",
    "gpt-oss-120b": "gpt-oss-120b",
    "gemma-3-4b-it": "gemma-3-4b",
    "deepseek-v3.1": "deepseek-v3",
    "nvidia-nemotron-3-nano-30b-a3b": "nemotron-3-nano-30b-a3b",
    "qwen3-coder-next": "qwen3-next-80b-a3b",
    "qwen3.5-397b-a17b": "qwen3.5-397b-a17b",
    "qwen3.6-27b": "qwen3.5-27b",
    "glm-4.6v": "glm-4.5-air",
    "step-3.5-flash": "step-3.5-flash",
}
RULE_SETS = {
    "new": {},
    "old": {"fused_as_v": False},
    "imat": {"imatrix": True},
    "mxfp4 experts": {"experts_as": "MXFP4"},
}


def dense(**change: object) -> Architecture:
    """A small dense model: 16 blocks, four query heads to a K/V head, rows of whole blocks."""
    plain: dict[str, object] = {
        "arch": "llama",
        "block_count": 16,
        "embedding_length": 1024,
        "vocab_size": 1000,
        "context_length": 4096,
        "tied_embeddings": False,
        "feed_forward_length": 2048,
        "attention": {"head_count": 8, "head_count_kv": 2, "key_length": 128},
    }
    return from_mapping({**plain, **change})


def experts(count: int) -> Architecture:
    moe = {"count": count, "used": 2, "feed_forward_length": 512}
    return dense(experts=moe)


def n_bytes(arch: Architecture, types: dict[str, str]) -> float:
    total = 0.0
    for name, shape in shapes(arch):
        n = 1
        for size in shape:
            n *= size
        total += n * bits_per_weight(types[name]) / 8
    return total


def n_params(arch: Architecture) -> float:
    return n_bytes(arch, {name: "I8" for name, _ in shapes(arch)})


def blocks_of(types: dict[str, str], tail: str, kind: str) -> list[int]:
    return [
        int(name.split(".")[1])
        for name, found in types.items()
        if name.endswith(f".{tail}") and found == kind
    ]


def is_quantized(name: str, shape: Shape) -> bool:
    """Say whether llama-quantize changes this tensor at all."""
    return len(shape) > 1 and treatment_of(split_name(name)[1]) == "quantized"


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_every_tensor_has_the_type_llama_cpp_gives_it(name: str) -> None:
    arch = catalogue.entry(SNAPSHOTS[name]).architecture
    if name == "glm-4.6v":  # the vision model was made without the MTP block
        arch = mlx_quantize.without_mtp(arch)
    quantized = [tensor for tensor, shape in shapes(arch) if is_quantized(tensor, shape)]
    recorded = {k: v for k, v in evidence.snapshot(name).items() if k in FILE_TYPES}
    assert len(recorded) >= 30
    for file_type in recorded.keys() - {"F32", "F16", "BF16"}:
        default, others = recorded[file_type]
        types = assign(arch, file_type)
        wanted = {tensor: others.get(tensor, default) for tensor in quantized}
        assert {tensor: types[tensor] for tensor in quantized} == wanted, file_type
        assert others.keys() <= set(quantized), file_type


@pytest.mark.parametrize("row", evidence.csv_rows("printed_sizes.csv"), ids=lambda r: r["name"])
def test_sizes_that_llama_bench_printed(row: dict[str, str]) -> None:
    arch = catalogue.entry(row["name"]).architecture
    size = n_bytes(arch, assign(arch, row["file_type"], **RULE_SETS[row["rules"]]))
    unit = {"GiB": 2**30, "MiB": 2**20}[row["unit"]]
    assert evidence.prints_as(size / unit, row["printed"])


@pytest.mark.parametrize("row", evidence.csv_rows("type_counts.csv"), ids=lambda r: r["name"])
def test_type_counts_that_the_loader_printed(row: dict[str, str]) -> None:
    arch = catalogue.entry(row["name"]).architecture
    types = assign(arch, row["file_type"], **RULE_SETS[row["rules"]])
    printed = dict(part.split() for part in row["counts"].split(";"))
    assert Counter(types.values()) == {kind: int(n) for kind, n in printed.items()}


@pytest.mark.parametrize(
    "row",
    evidence.csv_rows("llama_3.1_8b_bits_per_weight.csv"),
    ids=lambda r: r["file_type"],
)
def test_bits_per_weight_of_llama_cpps_own_table(row: dict[str, str]) -> None:
    arch = catalogue.entry("llama-3.1-8b").architecture
    size = n_bytes(arch, assign(arch, row["file_type"], **RULE_SETS[row["rules"]]))
    assert evidence.prints_as(8 * size / n_params(arch), row["printed"])


@pytest.mark.parametrize("row", evidence.csv_rows("quantize_digests.csv"), ids=lambda r: r["name"])
def test_types_that_a_dry_run_of_llama_quantize_agreed_with(row: dict[str, str]) -> None:
    """One digest over six file types; the run (0c1e570) took headers written from these shapes."""
    arch = catalogue.entry(row["name"]).architecture
    digest = hashlib.sha256()
    for file_type in ("Q2_K", "IQ2_M", "IQ3_XXS", "IQ3_XS", "Q4_K_M", "MXFP4_MOE"):
        types = assign(arch, file_type)
        lines = (f"{file_type} {name} {types[name]}\n" for name in sorted(types))
        digest.update("".join(lines).encode())
    assert len(types) == int(row["tensors"])
    assert digest.hexdigest()[:32] == row["sha256"]


def test_the_table_names_only_known_conditions_and_types() -> None:
    cells = [cell for row in RULES.values() for cell in row.values()]
    for cell in [*cells, *(c for row in EIGHT_EXPERTS.values() for c in row.values() if c)]:
        for choice in cell.split():
            conditions, _, kind = choice.rpartition(":")
            assert kind in TYPES_BY_NAME
            assert {c for c in conditions.split("&") if c} <= CONDITIONS.keys()
    tables = (OUTPUT, EMBEDDING, FALLBACK)
    assert {kind for table in tables for kind in table.values()} <= TYPES_BY_NAME.keys()
    assert {default for _, default in FILE_TYPES.values()} <= TYPES_BY_NAME.keys()
    assert len({number for number, _ in FILE_TYPES.values()}) == len(FILE_TYPES)


def test_the_m_pattern_by_hand() -> None:
    """Of 16 blocks: 0-1, 14-15, and from 2 on every third, counted from the first eighth."""
    types = assign(dense(), "Q4_K_M")
    assert blocks_of(types, "attn_v.weight", "Q6_K") == [0, 1, 4, 7, 10, 13, 14, 15]
    assert blocks_of(types, "ffn_down.weight", "Q6_K") == [0, 1, 4, 7, 10, 13, 14, 15]
    assert types["output.weight"] == "Q6_K"
    assert types["token_embd.weight"] == "Q4_K"
    assert types["blk.0.attn_norm.weight"] == "F32"


def test_a_tied_embedding_is_stored_as_the_output_matrix() -> None:
    types = assign(dense(tied_embeddings=True), "Q4_K_M")
    assert types["token_embd.weight"] == "Q6_K"
    assert "output.weight" not in types


def test_experts_count_by_block_and_not_by_tensor() -> None:
    """Shared and routed ffn_down of one block rise together, except below three bits."""
    moe = {"count": 16, "used": 2, "feed_forward_length": 512, "shared_feed_forward_length": 512}
    arch = dense(experts=moe)
    types = assign(arch, "Q4_K_S")
    assert blocks_of(types, "ffn_down_exps.weight", "Q5_K") == [0, 1]
    assert blocks_of(types, "ffn_down_shexp.weight", "Q5_K") == [0, 1]
    narrow = assign(arch, "IQ2_XS")
    assert blocks_of(narrow, "ffn_down_exps.weight", "Q2_K") == [0]
    assert blocks_of(narrow, "ffn_down_shexp.weight", "Q2_K") == [0]


def test_eight_experts_are_taken_for_mixtral() -> None:
    eight, nine = assign(experts(8), "Q4_K_M"), assign(experts(9), "Q4_K_M")
    assert {eight[f"blk.3.attn_{part}.weight"] for part in "kv"} == {"Q8_0"}
    assert eight["blk.3.attn_output.weight"] == "Q5_K"
    assert nine["blk.3.attn_k.weight"] == nine["blk.3.attn_output.weight"] == "Q4_K"
    assert assign(experts(8), "Q3_K_L")["blk.3.attn_output.weight"] == "Q3_K"
    assert assign(experts(8), "IQ1_S")["blk.3.attn_k.weight"] == "Q4_K"


def test_grouped_heads_decide_values_of_small_types() -> None:
    grouped = dense()
    alone = dense(attention={"head_count": 8, "head_count_kv": 8, "key_length": 128})
    assert assign(grouped, "Q2_K")["blk.0.attn_v.weight"] == "Q4_K"
    assert assign(alone, "Q2_K")["blk.0.attn_v.weight"] == "Q3_K"


def test_a_hybrid_whose_first_block_has_no_attention_counts_as_not_grouped() -> None:
    recurrent = {
        "conv_kernel": 4,
        "state_size": 128,
        "group_count": 1,
        "inner_size": 2048,
        "time_step_rank": 32,
    }
    first_ssm = dense(layers="ma", recurrent=recurrent)
    assert assign(first_ssm, "Q2_K")["blk.1.attn_v.weight"] == "Q3_K"
    assert assign(dense(layers="am", recurrent=recurrent), "Q2_K")["blk.0.attn_v.weight"] == "Q4_K"


def test_80_blocks_with_grouped_heads_raise_the_values() -> None:
    big, bigger = dense(block_count=80), dense(block_count=81)
    assert set(blocks_of(assign(big, "Q4_K_M"), "attn_v.weight", "Q4_K")) == set()
    assert blocks_of(assign(bigger, "Q4_K_M"), "attn_v.weight", "Q4_K")


def test_an_importance_matrix_changes_a_few_rules() -> None:
    plain, with_matrix = assign(dense(), "IQ4_XS"), assign(dense(), "IQ4_XS", imatrix=True)
    assert blocks_of(plain, "ffn_down.weight", "Q5_K") == [0, 1]
    assert blocks_of(with_matrix, "ffn_down.weight", "Q5_K") == []
    old = assign(dense(), "Q4_0", imatrix=True)
    assert blocks_of(old, "ffn_down.weight", "Q4_1") == [0, 1]


def test_a_fused_matrix_had_a_rule_of_its_own() -> None:
    attention = {"head_count": 8, "head_count_kv": 2, "key_length": 128, "fused_qkv": True}
    arch = dense(attention=attention)
    new, old = assign(arch, "Q5_K_M"), assign(arch, "Q5_K_M", fused_as_v=False)
    assert len(blocks_of(new, "attn_qkv.weight", "Q6_K")) == 8
    assert len(blocks_of(old, "attn_qkv.weight", "Q6_K")) == 16


@pytest.mark.parametrize(
    ("file_type", "row", "kind"),
    [
        ("Q4_K_M", 2880, "Q5_0"),  # gpt-oss: 2880 = 90 x 32
        ("Q6_K", 2880, "Q8_0"),
        ("Q5_K_S", 896, "Q5_1"),  # Qwen2.5 0.5B
        ("Q3_K_S", 896, "Q4_0"),
        ("IQ4_XS", 896, "IQ4_NL"),
        ("Q4_K_M", 1000, "F16"),  # 32 does not divide it
        ("Q8_0", 1000, "F16"),
    ],
)
def test_rows_that_are_not_whole_blocks_fall_back(file_type: str, row: int, kind: str) -> None:
    types = assign(dense(embedding_length=row), file_type)
    assert types["blk.3.attn_q.weight"] == kind


def test_experts_may_keep_their_type() -> None:
    types = assign(experts(16), "Q4_K_M", experts_as="MXFP4")
    assert {types[n] for n in types if n.endswith("_exps.weight")} == {"MXFP4"}
    assert types["blk.2.attn_q.weight"] == "Q4_K"


def test_mxfp4_moe_is_for_stacked_matrices_only() -> None:
    types = assign(experts(16), "MXFP4_MOE")
    assert types["blk.0.ffn_up_exps.weight"] == "MXFP4"
    assert types["blk.0.attn_q.weight"] == types["token_embd.weight"] == "Q8_0"


@pytest.mark.parametrize("file_type", ["F32", "F16", "BF16"])
def test_plain_types_quantize_nothing(file_type: str) -> None:
    types = assign(experts(16), file_type)
    assert set(types.values()) == {"F32", file_type}
    assert types["blk.0.ffn_gate_inp.weight"] == "F32"


def test_an_unknown_file_type_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="Q9_K"):
        assign(dense(), "Q9_K")


def test_types_come_in_model_order() -> None:
    arch = dense()
    assert list(assign(arch, "Q4_K_M")) == [name for name, _ in shapes(arch)]


@pytest.mark.parametrize(
    ("arch", "router"),
    [("qwen3moe", "MLX8G64"), ("glm4moe", "BF16"), ("llama4", "MLX4G32")],
)
def test_mlx_routers_follow_the_models_class(arch: str, router: str) -> None:
    file_type = mlx_quantize.parse("mlx-4bit-g32")
    assert file_type is not None
    types = mlx_quantize.assign(dataclasses.replace(experts(16), arch=arch), file_type)
    assert types["blk.0.ffn_gate_inp.weight"] == router
    assert types["token_embd.weight"] == types["blk.0.ffn_up_exps.weight"] == "MLX4G32"
    assert types["blk.0.attn_norm.weight"] == "BF16"


def test_mlx_keeps_what_granite_adds_to_the_residual_stream_at_8_bits() -> None:
    file_type = mlx_quantize.parse("mlx-4bit")
    assert file_type is not None
    types = mlx_quantize.assign(dense(arch="granite"), file_type)
    eight = {name.removeprefix("blk.3.") for name, kind in types.items() if kind == "MLX8G64"}
    assert {name for name in eight if not name.startswith("blk.")} == {
        "attn_output.weight",
        "ffn_down.weight",
        "output.weight",
    }


def test_mlx_keeps_rows_that_are_not_whole_groups() -> None:
    file_type = mlx_quantize.parse("MLX-4bit")
    assert file_type is not None
    types = mlx_quantize.assign(dense(embedding_length=1000), file_type)
    assert types["blk.0.attn_q.weight"] == "BF16"
    assert types["blk.0.attn_output.weight"] == "MLX4G64"


@pytest.mark.parametrize("text", ["mlx-7bit", "mlx-4bit-g48", "mlx", "q4_k_m", "mlx-4bit-g"])
def test_what_is_no_mlx_file_type(text: str) -> None:
    assert mlx_quantize.parse(text) is None
