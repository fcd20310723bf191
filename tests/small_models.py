"""Headers of models small enough to count by hand."""

from math import prod

from tokcast.predictor.header import Header, Tensor, Value
from tokcast.predictor.quants import bits_per_weight


def tensor(name: str, *shape: int, type_name: str = "") -> Tensor:
    """A tensor; F32 if it has one dimension, else F16, unless said otherwise."""
    type_name = type_name or ("F32" if len(shape) < 2 else "F16")
    return Tensor(name, shape, type_name, int(prod(shape) * bits_per_weight(type_name) / 8))


def header(
    architecture: str,
    keys: dict[str, Value],
    *tensors: Tensor,
    general: dict[str, Value] | None = None,
    format: str = "gguf",
) -> Header:
    """A header whose keys are given without the architecture's prefix."""
    metadata = {"general.architecture": architecture, **(general or {})}
    metadata |= {f"{architecture}.{key}": value for key, value in keys.items()}
    return Header(format, metadata, tensors, source="hand-made")  # type: ignore[arg-type]


KEYS: dict[str, Value] = {
    "block_count": 1,
    "embedding_length": 8,
    "attention.head_count": 2,
    "attention.head_count_kv": 1,
    "attention.key_length": 4,
    "attention.value_length": 4,
}


def outside() -> tuple[Tensor, ...]:
    """An untied embedding and head for 10 tokens, and the last norm."""
    return (
        tensor("token_embd.weight", 8, 10),
        tensor("output.weight", 8, 10),
        tensor("output_norm.weight", 8),
    )


def attention(block: int = 0) -> tuple[Tensor, ...]:
    """Two query heads and one key head of 4 over a width of 8: 192 parameters and a norm."""
    return (
        tensor(f"blk.{block}.attn_norm.weight", 8),
        tensor(f"blk.{block}.attn_q.weight", 8, 8),
        tensor(f"blk.{block}.attn_k.weight", 8, 4),
        tensor(f"blk.{block}.attn_v.weight", 8, 4),
        tensor(f"blk.{block}.attn_output.weight", 8, 8),
    )


def feed_forward(block: int = 0) -> tuple[Tensor, ...]:
    """A gated feed-forward part of 16: 384 parameters and a norm."""
    return (
        tensor(f"blk.{block}.ffn_norm.weight", 8),
        tensor(f"blk.{block}.ffn_gate.weight", 8, 16),
        tensor(f"blk.{block}.ffn_up.weight", 8, 16),
        tensor(f"blk.{block}.ffn_down.weight", 16, 8),
    )


def experts(block: int = 0) -> tuple[Tensor, ...]:
    """Four experts of 16, a router and a shared expert: 1536 + 32 + 384 parameters."""
    return (
        tensor(f"blk.{block}.ffn_gate_inp.weight", 8, 4, type_name="F32"),
        tensor(f"blk.{block}.ffn_gate_exps.weight", 8, 16, 4),
        tensor(f"blk.{block}.ffn_up_exps.weight", 8, 16, 4),
        tensor(f"blk.{block}.ffn_down_exps.weight", 16, 8, 4),
        tensor(f"blk.{block}.ffn_gate_shexp.weight", 8, 16),
        tensor(f"blk.{block}.ffn_up_shexp.weight", 8, 16),
        tensor(f"blk.{block}.ffn_down_shexp.weight", 16, 8),
    )


def latent_attention(block: int = 0) -> tuple[Tensor, ...]:
    """MLA: two heads of 3 + 2 (rope) over a cached row of 6 + 2, values of 4 a head."""
    return (
        tensor(f"blk.{block}.attn_q.weight", 8, 10),
        tensor(f"blk.{block}.attn_kv_a_mqa.weight", 8, 8),
        tensor(f"blk.{block}.attn_kv_a_norm.weight", 6),
        tensor(f"blk.{block}.attn_k_b.weight", 3, 6, 2),
        tensor(f"blk.{block}.attn_v_b.weight", 6, 4, 2),
        tensor(f"blk.{block}.attn_output.weight", 8, 8),
    )


def mamba2(block: int = 0) -> tuple[Tensor, ...]:
    """A Mamba-2 mixer: width 16, state 4, one group, 2 heads, 4 taps over 24 channels."""
    return (
        tensor(f"blk.{block}.attn_norm.weight", 8),
        tensor(f"blk.{block}.ssm_in.weight", 8, 42),
        tensor(f"blk.{block}.ssm_conv1d.weight", 4, 24, type_name="F32"),
        tensor(f"blk.{block}.ssm_conv1d.bias", 24),
        tensor(f"blk.{block}.ssm_dt.bias", 2),
        tensor(f"blk.{block}.ssm_a", 1, 2, type_name="F32"),
        tensor(f"blk.{block}.ssm_d", 1, 2, type_name="F32"),
        tensor(f"blk.{block}.ssm_norm.weight", 16, 1, type_name="F32"),
        tensor(f"blk.{block}.ssm_out.weight", 16, 8),
    )


def dense(architecture: str = "llama", n_block: int = 1, **keys: Value) -> Header:
    """A dense model; extra keys are given with `__` for the dot."""
    extra = {name.replace("__", "."): value for name, value in keys.items()}
    blocks = (t for i in range(n_block) for t in (*attention(i), *feed_forward(i)))
    return header(architecture, KEYS | {"block_count": n_block} | extra, *outside(), *blocks)
