"""What llama-quantize makes of a tensor for its name: the role it plays, what it stays."""

from functools import cache

# Parts of a tensor's name, in the order they are looked for, and the role they give.
_ROLES = (
    ("attn_qkv.weight", "qkv"),
    ("attn_kv_b.weight", "kv_b"),
    ("attn_v.weight", "v"),
    ("attn_k.weight", "k"),
    ("attn_q.weight", "q"),
    ("attn_output.weight", "o"),
    ("ffn_up", "up"),
    ("ffn_gate", "gate"),
    ("ffn_down", "down"),
)
VALUE_LIKE = frozenset({"v", "qkv", "kv_b"})
_ALWAYS_F32 = (
    "ffn_gate_inp",
    "ssm_conv1d",
    "shortconv.conv",
    "altup_correct_coef",
    "altup_predict_coef",
    "_norm.weight",
    "indexer.k_proj",
    "indexer.q_proj",
)
_KEPT_16_BIT = ("altup", "laurel", "per_layer_model_proj")
F32_UNTIL_QUANTIZED = ("indexer.proj.weight",)
_TOKEN_TO_EXPERT = "ffn_gate_tid2eid.weight"


@cache
def role_of(tail: str) -> str:
    """Return the part a tensor plays in the rules, from its name without the block."""
    if tail == "output.weight":
        return "output"
    if tail in ("token_embd.weight", "per_layer_token_embd.weight"):
        return "embedding"
    return next((role for part, role in _ROLES if part in tail), "other")


@cache
def part_of(tail: str) -> str:
    """Return the part under which a tensor is counted when fused matrices follow values."""
    role = role_of(tail)
    return "v" if role in VALUE_LIKE else role


@cache
def treatment_of(tail: str) -> str:
    """Say whether a tensor of two or more dimensions is quantized, or what it stays."""
    if tail == _TOKEN_TO_EXPERT:
        return "I32"
    if not tail.endswith(".weight") or any(part in tail for part in _ALWAYS_F32):
        return "F32"
    return "16 bit" if any(part in tail for part in _KEPT_16_BIT) else "quantized"


def is_kept(tail: str) -> bool:
    """Say whether a tensor keeps 16 or 32 bits in some file types for its name alone."""
    return treatment_of(tail) != "quantized" or tail in F32_UNTIL_QUANTIZED


def split_name(name: str) -> tuple[int, str]:
    """Return the block, -1 outside of them, and the rest of a tensor's name."""
    if not name.startswith("blk."):
        return -1, name
    _, block, tail = name.split(".", 2)
    return int(block), tail
