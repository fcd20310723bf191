"""The GGUF keys that state an `Architecture`, as the converters of llama.cpp write them."""

from tokcast.predictor.architecture import Architecture, Mla, one_or_all
from tokcast.predictor.header import Value


def metadata(arch: Architecture, file_type: int | None, name: str) -> dict[str, Value]:
    """Return the GGUF keys a reader needs to load or to judge the model.

    `file_type` is the number of `general.file_type`, None for a format that has none. Tokens and
    prompts are left out, with the word that llama.cpp takes for that; rope bases too, as they
    change no shape.
    """
    keys: dict[str, Value] = {
        "general.architecture": arch.arch,
        "general.type": "model",
        "general.name": name,
        "general.quantization_version": 2,
    }
    if file_type is not None:
        keys["general.file_type"] = file_type
        keys["tokenizer.ggml.model"] = "none"
    parts = {
        **_shape_keys(arch),
        **_attention_keys(arch),
        **_recurrent_keys(arch),
        **_expert_keys(arch),
        **arch.extra_metadata,
    }
    keys.update({f"{arch.arch}.{key}": value for key, value in parts.items() if value is not None})
    return {**keys, **arch.file_metadata}


def _shape_keys(arch: Architecture) -> dict[str, Value | None]:
    return {
        "vocab_size": arch.vocab_size,
        "context_length": arch.context_length,
        "embedding_length": arch.embedding_length,
        "block_count": arch.block_count,
        "feed_forward_length": _feed_forward_lengths(arch),
        "nextn_predict_layers": arch.mtp_blocks or None,
    }


def _feed_forward_lengths(arch: Architecture) -> int | tuple[int, ...]:
    """Return one length, or one a block where they differ."""
    dense = arch.feed_forward_length
    if not {"-", "w"} & set(arch.ffn):
        return dense
    experts = arch.experts.feed_forward_length if arch.experts else 0
    lengths = {"d": dense, "w": 2 * dense, "e": experts, "-": 0}
    return one_or_all([lengths[letter] for letter in arch.ffn])


def _attention_keys(arch: Architecture) -> dict[str, Value | None]:
    keys: dict[str, Value | None] = {
        "attention.head_count": arch.head_count(),
        "attention.head_count_kv": arch.head_count_kv(),
        "attention.layer_norm_rms_epsilon": 1e-6,
        "attention.layer_norm_epsilon": 1e-5,
        "full_attention_interval": arch.full_attention_interval,
    }
    if arch.sliding_window:
        keys["attention.sliding_window"] = arch.sliding_window
        if arch.attention is not None:
            keys["attention.sliding_window_pattern"] = tuple(x == "s" for x in arch.layers)
    plain = arch.attention
    if plain is None:
        return keys
    if plain.mla is not None:
        return {**keys, **_mla_keys(plain.mla)}
    keys["attention.key_length"] = plain.key_length
    keys["attention.value_length"] = plain.value_rows
    keys["rope.dimension_count"] = plain.rope_dimension_count
    if arch.sliding is not None and arch.sliding.key_length != plain.key_length:
        keys["attention.key_length_swa"] = arch.sliding.key_length
        keys["attention.value_length_swa"] = arch.sliding.value_rows
    return keys


def _mla_keys(mla: Mla) -> dict[str, Value | None]:
    keys: dict[str, Value | None] = {
        "attention.q_lora_rank": mla.q_lora_rank or None,
        "attention.kv_lora_rank": mla.kv_lora_rank,
        "rope.dimension_count": mla.rope_dimension_count,
    }
    if not mla.split:
        keys["attention.key_length"] = mla.key_length
        keys["attention.value_length"] = mla.value_length
        return keys
    keys["attention.key_length"] = mla.kv_lora_rank + mla.rope_dimension_count
    keys["attention.value_length"] = mla.kv_lora_rank
    keys["attention.key_length_mla"] = mla.key_length
    keys["attention.value_length_mla"] = mla.value_length
    return keys


def _recurrent_keys(arch: Architecture) -> dict[str, Value | None]:
    keys: dict[str, Value | None] = {"shortconv.l_cache": arch.conv_kernel}
    if arch.recurrent is not None:
        for name in ("conv_kernel", "state_size", "group_count", "inner_size", "time_step_rank"):
            keys[f"ssm.{name}"] = getattr(arch.recurrent, name)
    return keys


def _expert_keys(arch: Architecture) -> dict[str, Value | None]:
    experts = arch.experts
    if experts is None:
        return {}
    return {
        "expert_count": experts.count,
        "expert_used_count": experts.used,
        "expert_feed_forward_length": experts.feed_forward_length,
        "moe_latent_size": experts.latent_size or None,
        "expert_shared_count": experts.shared_count or None,
        "expert_shared_feed_forward_length": experts.shared_feed_forward_length or None,
        "leading_dense_block_count": experts.leading_dense_block_count or None,
    }
