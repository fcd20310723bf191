"""Metadata of a GGUF file for a checkpoint: key names and conventions of llama.cpp's converters.

Sizes are taken from the tensors wherever they show them: configs name and nest the same number in
many ways, shapes do not.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from tokcast.predictor import mlx_tables as tables
from tokcast.predictor.header import Tensor, Value
from tokcast.predictor.mlx_config import Config, is_sliding, number, window

# They tell by an interval which blocks attend, and keep plain head counts.
_BY_INTERVAL = frozenset({"qwen3next", "qwen35", "qwen35moe"})
_OF_EXPERTS = ("expert_used_count", "expert_shared_count", "interleave_moe_layer_step")

# Tensor name inside the block → shape in GGUF order.
Block = Mapping[str, tuple[int, ...]]
Found = dict[str, Value | None]


def metadata(
    config: Config, architecture: str, n_layers: int, tensors: Iterable[Tensor]
) -> dict[str, Value]:
    """Return the keys below the architecture's prefix, from the language model's config.

    `tensors` have GGUF names; `n_layers` does not count blocks of multi-token prediction.
    """
    blocks, outside = _by_block(tensors)
    n_mtp = sum(any(name.startswith("nextn.") for name in block) for block in blocks.values())
    own = [blocks.get(index, {}) for index in range(n_layers)]
    vocabulary = outside.get("token_embd.weight", ())
    found: Found = {}
    for theirs, ours in tables.CONFIG_KEYS.items():
        if found.get(ours) is None:
            found[ours] = number(config, (theirs,))
    found["block_count"] = n_layers + n_mtp
    found["nextn_predict_layers"] = n_mtp or None
    width = vocabulary[0] if vocabulary else number(config, tables.WIDTHS)
    found["embedding_length"] = width
    found["vocab_size"] = vocabulary[-1] if vocabulary else number(config, ("vocab_size",))
    found |= _windows(config, n_layers)
    found |= _attention(config, architecture, own, width or 0)
    found |= _feed_forward(config, own)
    found |= _recurrent(own, found)
    if architecture in _BY_INTERVAL:
        found["full_attention_interval"] = _interval(config)
    return {f"{architecture}.{key}": value for key, value in found.items() if value is not None}


def _by_block(tensors: Iterable[Tensor]) -> tuple[dict[int, dict[str, tuple[int, ...]]], Block]:
    blocks: dict[int, dict[str, tuple[int, ...]]] = {}
    outside = {}
    for tensor in tensors:
        head, _, rest = tensor.name.partition(".")
        index, _, local = rest.partition(".")
        if head == "blk" and index.isdigit():
            blocks.setdefault(int(index), {})[local] = tensor.shape
        else:
            outside[tensor.name] = tensor.shape
    return blocks, outside


def _columns(block: Block, name: str) -> int:
    shape = block.get(name, ())
    return shape[0] if shape else 0


def _rows(block: Block, name: str) -> int:
    shape = block.get(name, ())
    return shape[1] if len(shape) > 1 else 0


def _collapsed(values: Sequence[int]) -> int | tuple[int, ...] | None:
    """Return one number where all agree, as llama.cpp's converters write it."""
    if not values:
        return None
    return values[0] if len(set(values)) == 1 else tuple(values)


def _windows(config: Config, n_layers: int) -> Found:
    size = window(config)
    flags = is_sliding(config, n_layers)
    if size is None and not any(flags or ()):
        return {}
    return {"attention.sliding_window": size, "attention.sliding_window_pattern": flags}


@dataclass(frozen=True, slots=True)
class _Lengths:
    """Lengths of one head's key and value; 0 where they are not known."""

    key: int
    value: int


def _attention(config: Config, architecture: str, blocks: Sequence[Block], width: int) -> Found:
    if any("attn_kv_a_mqa.weight" in block for block in blocks):
        return _latent(config, blocks)
    full, sliding = _lengths(config, blocks, width)
    flags = is_sliding(config, len(blocks)) or ()
    per_block = [
        sliding if index < len(flags) and flags[index] else full for index in range(len(blocks))
    ]
    pairs = [
        _heads(config, block, lengths) for block, lengths in zip(blocks, per_block, strict=True)
    ]
    heads = [n for n, _ in pairs if n]
    if not heads:
        return {"attention.head_count": 0}
    cached = [kv for n, kv in pairs if n or architecture not in _BY_INTERVAL]
    is_mixed = len(set(heads)) > 1
    found: Found = {
        "attention.head_count": tuple(n for n, _ in pairs) if is_mixed else _collapsed(heads),
        "attention.head_count_kv": _collapsed(cached),
        "attention.key_length": full.key or None,
        "attention.value_length": full.value or None,
        "rope.dimension_count": _rotated(config, full.key) or None,
    }
    if sliding != full:
        found["attention.key_length_swa"] = sliding.key
        found["attention.value_length_swa"] = sliding.value
    return found


def _lengths(config: Config, blocks: Sequence[Block], width: int) -> tuple[_Lengths, _Lengths]:
    """Return the lengths of full and of sliding blocks."""
    told = number(config, ("head_dim", "attention_head_dim", "kv_channels"))
    key = told or _normed(blocks) or width // (number(config, tables.HEADS) or width or 1)
    value = number(config, ("v_head_dim",)) or key
    # Gemma 4 gives the sliding blocks' length the plain name, MiMo-V2 that of the full ones.
    whole = number(config, ("global_head_dim",))
    full = _Lengths(whole, whole) if whole else _Lengths(key, value)
    sliding = _Lengths(
        number(config, ("swa_head_dim",)) or key, number(config, ("swa_v_head_dim",)) or value
    )
    return full, sliding


def _normed(blocks: Sequence[Block]) -> int:
    """Return the head length that a norm over single heads shows."""
    for block in blocks:
        length, rows = _columns(block, "attn_q_norm.weight"), _rows(block, "attn_q.weight")
        if length and rows > length and rows % length == 0:
            return length
    return 0


def _heads(config: Config, block: Block, lengths: _Lengths) -> tuple[int, int]:
    """Return a block's query and key heads, (0, 0) where it has no attention."""
    if "attn_output.weight" not in block or not lengths.key or not lengths.value:
        return 0, 0
    heads = _columns(block, "attn_output.weight") // lengths.value
    heads = heads or number(config, tables.HEADS) or 0
    if "attn_k.weight" in block:
        return heads, _rows(block, "attn_k.weight") // lengths.key
    rest = _rows(block, "attn_qkv.weight") - heads * lengths.key
    if rest > 0:
        return heads, rest // (lengths.key + lengths.value)
    # Its keys and values are an earlier block's.
    return heads, number(config, tables.KV_HEADS) or heads


def _rotated(config: Config, length: int) -> int:
    told = number(config, ("rotary_dim", "qk_rope_head_dim"))
    if told:
        return told
    for section in (config, config.get("rope_parameters")):
        share = section.get("partial_rotary_factor") if isinstance(section, Mapping) else None
        if isinstance(share, float | int) and 0 < share <= 1:
            return int(length * share)
    return length


def _latent(config: Config, blocks: Sequence[Block]) -> Found:
    """Return the keys of multi-head latent attention.

    With the up-projection split, the cached row is the latent one and counts as one key head.
    """
    first = next(block for block in blocks if "attn_kv_a_mqa.weight" in block)
    rank = _columns(first, "attn_kv_a_norm.weight") or number(config, ("kv_lora_rank",)) or 0
    rope = max(_rows(first, "attn_kv_a_mqa.weight") - rank, 0)
    per_head = first.get("attn_k_b.weight", ())
    nope = per_head[0] if per_head else number(config, ("qk_nope_head_dim",)) or 0
    value = _rows(first, "attn_v_b.weight") or number(config, ("v_head_dim",)) or 0
    heads = per_head[2] if len(per_head) > 2 else number(config, tables.HEADS) or 0
    cached = 1 if per_head else heads
    found: Found = {
        "attention.kv_lora_rank": rank,
        "attention.head_count": heads,
        "attention.head_count_kv": _collapsed(
            [cached if "attn_kv_a_mqa.weight" in block else 0 for block in blocks]
        ),
        "attention.key_length": rank + rope if per_head else nope + rope,
        "attention.value_length": rank if per_head else value,
        "rope.dimension_count": rope,
    }
    if per_head:
        found["attention.key_length_mla"] = nope + rope
        found["attention.value_length_mla"] = value
    return found


def _feed_forward(config: Config, blocks: Sequence[Block]) -> Found:
    dense = [_columns(block, "ffn_down.weight") for block in blocks]
    stacks = [block.get("ffn_down_exps.weight", ()) for block in blocks]
    routed = [len(stack) == 3 for stack in stacks]
    lengths = [
        length or (stack[0] if is_routed else 0)
        for length, stack, is_routed in zip(dense, stacks, routed, strict=True)
    ]
    found: Found = {"feed_forward_length": _collapsed([n for n in dense if n]) or 0}
    if 0 in lengths and any(lengths):
        found["feed_forward_length"] = tuple(lengths)
    elif any(routed) and not any(dense):
        found["feed_forward_length"] = number(config, tables.FEED_FORWARD) or 0
    if not any(routed):
        return found | dict.fromkeys(_OF_EXPERTS)
    first = routed.index(True)
    shared = max(_columns(block, "ffn_down_shexp.weight") for block in blocks)
    found["expert_count"] = stacks[first][2]
    found["expert_feed_forward_length"] = stacks[first][0]
    found["expert_shared_feed_forward_length"] = shared or None
    if first and all(routed[first:]) and all(dense[:first]):
        found["leading_dense_block_count"] = first
    return found


def _recurrent(blocks: Sequence[Block], told: Found) -> Found:
    """Return the keys of state-space and linear-attention blocks; all None without such."""
    found: Found = {key: None for key in told if key.startswith("ssm.")}
    names = ("ssm_conv1d.weight", "ssm_conv1d_q.weight")
    block = next((b for b in blocks if any(name in b for name in names)), None)
    if block is None:
        return found
    found |= {key: value for key, value in told.items() if key.startswith("ssm.")}
    found["ssm.conv_kernel"] = max(_columns(block, name) for name in names)
    found["ssm.inner_size"] = _columns(block, "ssm_out.weight") or None
    heads = block.get("ssm_a", (0,))
    rank = heads[-1] if len(heads) == 1 else _columns(block, "ssm_dt.weight")
    found["ssm.time_step_rank"] = rank or None
    return found


def _interval(config: Config) -> int:
    kinds = config.get("layer_types")
    if isinstance(kinds, list) and "full_attention" in kinds:
        return kinds.index("full_attention") + 1
    return number(config, ("full_attention_interval",)) or 4
