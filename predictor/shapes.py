"""Names and shapes of a model's tensors, from its `Architecture`.

Names are llama.cpp's, shapes are in GGUF order: the row length first. What each function
lists was taken from llama.cpp's model loaders (`src/models`, MIT).
"""

from collections.abc import Iterator

from tokcast.predictor.architecture import (
    ATTENTION_LAYERS,
    Architecture,
    Attention,
    Experts,
    Mla,
    Recurrent,
    Shape,
)

Named = Iterator[tuple[str, Shape]]


def shapes(arch: Architecture) -> list[tuple[str, Shape]]:
    """Return (name, shape) of every tensor, in model order."""
    named = list(outside(arch))
    for index in range(arch.block_count):
        named += [(f"blk.{index}.{name}", shape) for name, shape in in_block(arch, index)]
    return named


def outside(arch: Architecture) -> Named:
    """Yield (name, shape) of the tensors that are in no block."""
    width, vocab = arch.embedding_length, arch.vocab_size
    yield "token_embd.weight", (width, vocab)
    if not arch.tied_embeddings:
        yield "output.weight", (width, vocab)
    yield f"{arch.final_norm}.weight", (width,)
    if arch.norm_bias:
        yield f"{arch.final_norm}.bias", (width,)
    yield from arch.extra_tensors


def in_block(arch: Architecture, index: int) -> Named:
    """Yield (name without the block, shape) of the tensors of one block."""
    yield from _norms(arch)
    yield from _mixer(arch, index)
    if arch.ffn[index] in "dbw":
        yield from _dense(arch, arch.feed_forward_length * (2 if arch.ffn[index] == "w" else 1))
    if arch.ffn[index] in "eb":
        yield from _experts(arch)
    for blocks, name, shape in arch.block_tensors:
        if index in blocks:
            yield name, shape
    if index >= arch.block_count - arch.mtp_blocks:
        yield from _mtp(arch)


def _matrix(name: str, columns: int, rows: int, bias: bool = False) -> Named:
    yield f"{name}.weight", (columns, rows)
    if bias:
        yield f"{name}.bias", (rows,)


def _norms(arch: Architecture) -> Named:
    for name in arch.norms:
        yield name, (arch.embedding_length,)
        if arch.norm_bias:
            yield name.replace(".weight", ".bias"), (arch.embedding_length,)


def _mixer(arch: Architecture, index: int) -> Named:
    letter, width = arch.layers[index], arch.embedding_length
    attention = arch.attention_of(index)
    if letter in ATTENTION_LAYERS and attention is not None:
        if attention.mla is not None:
            yield from _latent_attention(attention.head_count, attention.mla, width)
        else:
            yield from _attention(attention, width)
    if letter in "mb" and arch.recurrent is not None:
        yield from _state_space(arch.recurrent, width)
    if letter == "l" and arch.recurrent is not None:
        yield from _delta_rule(arch.recurrent, width, joint=arch.arch == "qwen3next")
    if letter == "c" and arch.conv_kernel is not None:
        yield "shortconv.conv.weight", (arch.conv_kernel, width)
        yield from _matrix("shortconv.in_proj", width, 3 * width)
        yield from _matrix("shortconv.out_proj", width, width)


def _attention(attention: Attention, width: int) -> Named:
    heads, kv_heads = attention.head_count, attention.head_count_kv
    key, value = attention.key_length, attention.value_rows
    q_rows = heads * key * (2 if attention.gate == "query" else 1)
    bias = attention.qkv_bias
    if attention.fused_qkv:
        yield from _matrix("attn_qkv", width, q_rows + kv_heads * (key + value), bias)
    else:
        yield from _matrix("attn_q", width, q_rows, bias)
        yield from _matrix("attn_k", width, kv_heads * key, bias)
        if attention.value:
            yield from _matrix("attn_v", width, kv_heads * value, bias)
    yield from _matrix("attn_output", heads * value, width, attention.output_bias)
    if attention.gate == "head":
        yield from _matrix("attn_gate", width, heads)
    if attention.qk_norm is not None:
        q_norm, k_norm = (1, 1) if attention.qk_norm == "head" else (heads, kv_heads)
        yield "attn_q_norm.weight", (q_norm * key,)
        yield "attn_k_norm.weight", (k_norm * key,)
    if attention.sinks:
        yield "attn_sinks.weight", (heads,)


def _latent_attention(heads: int, mla: Mla, width: int) -> Named:
    rank, rope = mla.kv_lora_rank, mla.rope_dimension_count
    if mla.q_lora_rank:
        yield from _matrix("attn_q_a", width, mla.q_lora_rank)
        yield "attn_q_a_norm.weight", (mla.q_lora_rank,)
        yield from _matrix("attn_q_b", mla.q_lora_rank, heads * mla.key_length)
    else:
        yield from _matrix("attn_q", width, heads * mla.key_length)
    yield from _matrix("attn_kv_a_mqa", width, rank + rope)
    yield "attn_kv_a_norm.weight", (rank,)
    if mla.split:
        yield "attn_k_b.weight", (mla.key_length - rope, rank, heads)
        yield "attn_v_b.weight", (rank, mla.value_length, heads)
    else:
        yield from _matrix("attn_kv_b", rank, heads * (mla.key_length - rope + mla.value_length))
    yield from _matrix("attn_output", heads * mla.value_length, width)


def _state_space(ssm: Recurrent, width: int) -> Named:
    inner, heads = ssm.inner_size, ssm.time_step_rank
    convolved = inner + 2 * ssm.group_count * ssm.state_size
    yield from _matrix("ssm_in", width, inner + convolved + heads)
    yield "ssm_conv1d.weight", (ssm.conv_kernel, convolved)
    yield "ssm_conv1d.bias", (convolved,)
    yield "ssm_dt.bias", (heads,)
    yield "ssm_a", (1, heads)
    yield "ssm_d", (1, heads)
    if ssm.norm:
        yield "ssm_norm.weight", (inner // ssm.group_count, ssm.group_count)
    yield from _matrix("ssm_out", inner, width)


def _delta_rule(linear: Recurrent, width: int, joint: bool) -> Named:
    heads = linear.time_step_rank
    key, value = linear.state_size * linear.group_count, linear.state_size * heads
    if linear.fused:
        yield from _matrix("ssm_in", width, 2 * key + 2 * value)
    else:
        yield from _matrix("attn_qkv", width, 2 * key + value)
        yield from _matrix("attn_gate", width, value)
    yield "ssm_conv1d.weight", (linear.conv_kernel, 2 * key + value)
    yield "ssm_dt.bias", (heads,)
    yield "ssm_a", (heads,)
    if joint:
        yield from _matrix("ssm_ba", width, 2 * heads)
    else:
        yield from _matrix("ssm_beta", width, heads)
        yield from _matrix("ssm_alpha", width, heads)
    yield "ssm_norm.weight", (linear.state_size,)
    yield from _matrix("ssm_out", value, width)


def _dense(arch: Architecture, length: int) -> Named:
    width, bias = arch.embedding_length, arch.ffn_bias
    if arch.fused_gate_up:
        yield from _matrix("ffn_up", width, 2 * length, bias)
    else:
        if arch.gated_ffn:
            yield from _matrix("ffn_gate", width, length, bias)
        yield from _matrix("ffn_up", width, length, bias)
    yield from _matrix("ffn_down", length, width, bias)


def _experts(arch: Architecture) -> Named:
    experts, width = arch.experts, arch.embedding_length
    if experts is None:
        return
    count, length = experts.count, experts.feed_forward_length
    inputs = ["gate", "up"] if arch.gated_ffn else ["up"]
    inner = experts.latent_size or width
    stacked = [(name, inner, length) for name in inputs]
    if experts.fused_gate_up:
        stacked = [("gate_up", inner, 2 * length)]
    yield from _matrix("ffn_gate_inp", width, count, experts.bias)
    if experts.latent_size:
        yield from _matrix("ffn_latent_down", width, inner)
        yield from _matrix("ffn_latent_up", inner, width)
    if experts.probs_bias:
        yield "exp_probs_b.bias", (count,)
    for name, columns, rows in [*stacked, ("down", length, inner)]:
        yield f"ffn_{name}_exps.weight", (columns, rows, count)
        if experts.bias:
            yield f"ffn_{name}_exps.bias", (rows, count)
    if experts.shared_feed_forward_length:
        yield from _shared_experts(experts, inputs, width)


def _shared_experts(experts: Experts, inputs: list[str], width: int) -> Named:
    length = experts.shared_feed_forward_length
    if experts.shared_gate:
        yield "ffn_gate_inp_shexp.weight", (width, 1)
    for name in inputs:
        yield from _matrix(f"ffn_{name}_shexp", width, length)
    yield from _matrix("ffn_down_shexp", length, width)


def _mtp(arch: Architecture) -> Named:
    width = arch.embedding_length
    yield from _matrix("nextn.eh_proj", 2 * width, width)
    for name in ("enorm", "hnorm", "shared_head_norm"):
        yield f"nextn.{name}.weight", (width,)
    if arch.mtp_embeddings:
        yield from _matrix("nextn.embed_tokens", width, arch.vocab_size)
        yield from _matrix("nextn.shared_head_head", width, arch.vocab_size)
