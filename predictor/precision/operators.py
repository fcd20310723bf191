"""The seventeen kinds of operators that a plan gives a format, and which tensors are theirs."""

from typing import Literal, get_args

Operator = Literal[
    "q_proj",
    "k_proj",
    "v_proj",
    "o_proj",
    "qk_matmul",
    "sv_matmul",
    "softmax",
    "ffn_gate",
    "ffn_up",
    "ffn_down",
    "silu",
    "gelu",
    "rmsnorm",
    "layernorm",
    "rope",
    "kv_cache",
    "embeddings",
]
OPERATORS: tuple[Operator, ...] = get_args(Operator)
PROJECTIONS: tuple[Operator, ...] = ("q_proj", "k_proj", "v_proj", "o_proj")
FEED_FORWARD: tuple[Operator, ...] = ("ffn_gate", "ffn_up", "ffn_down")
# What runs inside another operator's kernel, so that no bytes of its own cross memory.
FUSED: tuple[Operator, ...] = ("softmax", "silu", "gelu", "rope")
_BY_PREFIX: tuple[tuple[str, Operator], ...] = (
    ("attn_output", "o_proj"),
    ("attn_out", "o_proj"),
    ("attn_kv_b", "v_proj"),
    ("attn_kv", "k_proj"),
    ("attn_k", "k_proj"),
    ("attn_v", "v_proj"),
    # One matrix of queries, keys and values is mostly queries.
    ("attn_q", "q_proj"),
    ("ffn_gate_inp", "rmsnorm"),
    ("ffn_gate", "ffn_gate"),
    ("ffn_up", "ffn_up"),
    ("ffn_down", "ffn_down"),
    ("token_embd", "embeddings"),
    ("output", "embeddings"),
)
_GELU = ("gemma", "gpt2", "bloom", "falcon", "mpt", "starcoder", "phi2")


def operator_of(name: str, *, has_biases: bool = False) -> Operator | None:
    """Return the kind of a tensor, by its GGUF name; None for what no kind of these is.

    Norms and routers stay as they are in every plan, and so does what has no kind: states,
    convolutions, indexers. `has_biases` tells layer norms from RMS norms.
    """
    local = name.split(".", 2)[2] if name.startswith("blk.") else name
    if "norm" in local:
        return "layernorm" if has_biases else "rmsnorm"
    for prefix, kind in _BY_PREFIX:
        if local.startswith(prefix):
            return kind if prefix != "ffn_gate_inp" else None
    return None


def activation_of(architecture: str) -> Operator:
    """Return the kind of a feed-forward part's non-linearity."""
    return "gelu" if architecture.startswith(_GELU) else "silu"
