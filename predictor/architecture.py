"""The figures that fix every tensor of a model, and the GGUF keys that state them.

An `Architecture` says in a few dozen numbers what a GGUF header spells out tensor by
tensor. Each block has a letter for what mixes its tokens and one for its feed-forward part:

=======  ==============================================  =======  ======================
layers   mixer                                           ffn      feed-forward part
=======  ==============================================  =======  ======================
``a``    attention over the whole context                ``d``    dense
``s``    attention over a sliding window                 ``e``    routed experts
``m``    state space (Mamba-2)                           ``b``    dense and experts
``b``    attention and state space side by side          ``-``    none
``l``    linear attention (gated delta rule)
``c``    short convolution
``-``    none
=======  ==============================================  =======  ======================
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from tokcast.predictor.header import Value

Shape = tuple[int, ...]
ATTENTION_LAYERS = frozenset("asb")


@dataclass(frozen=True, slots=True)
class Mla:
    """Multi-head latent attention; lengths are those of one head after decompression.

    `split` is the form written since 2025, one matrix a head for keys and one for values;
    files before it hold both in one matrix. `q_lora_rank` is 0 where queries are not compressed.
    """

    kv_lora_rank: int
    key_length: int
    value_length: int
    rope_dimension_count: int
    q_lora_rank: int = 0
    split: bool = True


@dataclass(frozen=True, slots=True)
class Attention:
    """One kind of attention block.

    `qk_norm` normalizes queries and keys by head or over all heads; `gate` adds an output
    gate: a second set of query rows, one row a head, or none.
    """

    head_count: int
    head_count_kv: int = 1
    key_length: int = 0
    value_length: int = 0
    rope_dimension_count: int | None = None
    qk_norm: Literal["head", "full"] | None = None
    gate: Literal["query", "head"] | None = None
    fused_qkv: bool = False
    qkv_bias: bool = False
    output_bias: bool = False
    sinks: bool = False
    value: bool = True
    mla: Mla | None = None

    @property
    def value_rows(self) -> int:
        """Return the length of one head's value, which is the key's unless stated."""
        return self.value_length or self.key_length


@dataclass(frozen=True, slots=True)
class Recurrent:
    """State-space or linear-attention part; `fused` is one input matrix for all its parts."""

    conv_kernel: int
    state_size: int
    group_count: int
    inner_size: int
    time_step_rank: int
    norm: bool = True
    fused: bool = False


@dataclass(frozen=True, slots=True)
class Experts:
    """Routed and shared experts of the blocks that have them."""

    count: int
    used: int
    feed_forward_length: int
    shared_count: int = 0
    shared_feed_forward_length: int = 0
    leading_dense_block_count: int = 0
    bias: bool = False
    probs_bias: bool = False
    shared_gate: bool = False
    fused_gate_up: bool = False


@dataclass(frozen=True, slots=True)
class Architecture:
    """A model's shape.

    `layers` and `ffn` hold one letter a block. `block_count` includes the `mtp_blocks` at the
    end. `extra_tensors` are tensors outside the blocks that nothing else implies;
    `block_tensors` are (letters of the blocks that have them, name, shape).
    """

    arch: str
    block_count: int
    embedding_length: int
    vocab_size: int
    context_length: int
    tied_embeddings: bool
    layers: str
    ffn: str
    feed_forward_length: int = 0
    attention: Attention | None = None
    sliding: Attention | None = None
    sliding_window: int | None = None
    recurrent: Recurrent | None = None
    conv_kernel: int | None = None
    experts: Experts | None = None
    full_attention_interval: int | None = None
    mtp_blocks: int = 0
    mtp_embeddings: bool = False
    norms: tuple[str, ...] = ("attn_norm.weight", "ffn_norm.weight")
    final_norm: str = "output_norm"
    norm_bias: bool = False
    gated_ffn: bool = True
    fused_gate_up: bool = False
    ffn_bias: bool = False
    extra_tensors: tuple[tuple[str, Shape], ...] = ()
    block_tensors: tuple[tuple[str, str, Shape], ...] = ()
    extra_metadata: Mapping[str, Value] = field(default_factory=dict)

    def attention_of(self, block: int) -> Attention | None:
        """Return the attention of one block, None where it has none."""
        letter = self.layers[block]
        if letter == "s" and self.sliding is not None:
            return self.sliding
        return self.attention if letter in ATTENTION_LAYERS else None

    def head_count_kv(self) -> int | tuple[int, ...]:
        """Return K/V heads as GGUF files state them: one number, or one a block.

        A file in which a fixed interval separates the attention blocks states one number.
        """
        if self.attention is None:
            return 0
        if self.attention.mla is not None:
            return 1 if self.attention.mla.split else self.attention.head_count
        if self.full_attention_interval:
            return self.attention.head_count_kv
        return _one_or_all(
            [a.head_count_kv if (a := self.attention_of(i)) else 0 for i in range(self.block_count)]
        )

    def head_count(self) -> int | tuple[int, ...]:
        """Return query heads as GGUF files state them, blocks without attention included."""
        if self.attention is None:
            return 0
        default = self.attention
        return _one_or_all(
            [(self.attention_of(i) or default).head_count for i in range(self.block_count)]
        )


def _one_or_all(values: list[int]) -> int | tuple[int, ...]:
    return values[0] if len(set(values)) == 1 else tuple(values)


def from_mapping(data: Mapping[str, Any]) -> Architecture:
    """Return the architecture that a catalogue entry's plain values describe.

    `layers` and `ffn` may give a pattern that repeats; `sliding` only what differs from
    `attention`. Raises TypeError for a key that is not a field.
    """
    known = dict(data)
    blocks = known["block_count"]
    plain = known.get("attention")
    if plain is not None:
        known["attention"] = _attention(plain)
    if "sliding" in known:
        known["sliding"] = _attention({**(plain or {}), **known["sliding"]})
    for name, kind in (("recurrent", Recurrent), ("experts", Experts)):
        if name in known:
            known[name] = kind(**known[name])
    known["layers"] = _repeat(known.get("layers") or _interval(known), blocks)
    known["ffn"] = _repeat(known["ffn"], blocks) if "ffn" in known else _ffn(known)
    known["norms"] = tuple(known.get("norms", ("attn_norm.weight", "ffn_norm.weight")))
    known["extra_tensors"] = tuple(
        (name, tuple(shape)) for name, shape in known.get("extra_tensors", {}).items()
    )
    known["block_tensors"] = tuple(
        (letters, name, tuple(shape))
        for letters, tensors in known.get("block_tensors", {}).items()
        for name, shape in tensors.items()
    )
    known["extra_metadata"] = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in known.get("extra_metadata", {}).items()
    }
    return Architecture(**known)


def _attention(data: Mapping[str, Any]) -> Attention:
    mla = data.get("mla")
    return Attention(**{**data, "mla": Mla(**mla) if mla else None})


def _repeat(pattern: str, length: int) -> str:
    return (pattern * (length // len(pattern) + 1))[:length]


def _interval(known: Mapping[str, Any]) -> str:
    interval = known.get("full_attention_interval")
    if not interval:
        return "a"
    mtp = known.get("mtp_blocks", 0)
    main = _repeat("l" * (interval - 1) + "a", known["block_count"] - mtp)
    return main + "a" * mtp


def _ffn(known: Mapping[str, Any]) -> str:
    experts = known.get("experts")
    dense = known["block_count"] if experts is None else experts.leading_dense_block_count
    has_dense = bool(known.get("feed_forward_length"))
    return ("d" if has_dense else "-") * dense + "e" * (known["block_count"] - dense)


def metadata(arch: Architecture, file_type: int | None, name: str) -> dict[str, Value]:
    """Return the GGUF keys a reader needs to load or to judge the model.

    `file_type` is the number of `general.file_type`, None for a format that has none. Keys
    about tokens and prompts are left out, and rope bases too: they change no shape.
    """
    keys: dict[str, Value] = {
        "general.architecture": arch.arch,
        "general.type": "model",
        "general.name": name,
        "general.quantization_version": 2,
    }
    if file_type is not None:
        keys["general.file_type"] = file_type
    parts = {
        **_shape_keys(arch),
        **_attention_keys(arch),
        **_recurrent_keys(arch),
        **_expert_keys(arch),
        **arch.extra_metadata,
    }
    keys.update({f"{arch.arch}.{key}": value for key, value in parts.items() if value is not None})
    return keys


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
    """Return one length, or one a block where some blocks have no feed-forward part."""
    if "-" not in arch.ffn:
        return arch.feed_forward_length
    experts = arch.experts.feed_forward_length if arch.experts else 0
    lengths = {"d": arch.feed_forward_length, "e": experts, "-": 0}
    return _one_or_all([lengths[letter] for letter in arch.ffn])


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
        "expert_shared_count": experts.shared_count or None,
        "expert_shared_feed_forward_length": experts.shared_feed_forward_length or None,
        "leading_dense_block_count": experts.leading_dense_block_count or None,
    }
