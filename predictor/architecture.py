"""The figures that fix every tensor of a model.

An `Architecture` says in a few dozen numbers what a GGUF header spells out tensor by
tensor. Each block has a letter for what mixes its tokens and one for its feed-forward part:

=======  ==============================================  =======  ======================
layers   mixer                                           ffn      feed-forward part
=======  ==============================================  =======  ======================
``a``    attention over the whole context                ``d``    dense
``s``    attention over a sliding window                 ``e``    routed experts
``m``    state space (Mamba-2)                           ``b``    dense and experts
``b``    attention and state space side by side          ``w``    dense, twice as wide
``l``    linear attention (gated delta rule)             ``-``    none
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
    """Routed and shared experts of the blocks that have them.

    `latent_size` is the width routed experts work in where tokens are projected down for them.
    """

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
    latent_size: int = 0


@dataclass(frozen=True, slots=True)
class Architecture:
    """A model's shape.

    `layers` and `ffn` hold one letter a block. `block_count` includes the `mtp_blocks` at the
    end. `extra_tensors` are tensors outside the blocks that nothing else implies;
    `block_tensors` are (blocks that have them, name, shape). Keys of `extra_metadata` are below
    the architecture's prefix, those of `file_metadata` are complete.
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
    block_tensors: tuple[tuple[frozenset[int], str, Shape], ...] = ()
    extra_metadata: Mapping[str, Value] = field(default_factory=dict)
    file_metadata: Mapping[str, Value] = field(default_factory=dict)

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
        return one_or_all(
            [a.head_count_kv if (a := self.attention_of(i)) else 0 for i in range(self.block_count)]
        )

    def head_count(self) -> int | tuple[int, ...]:
        """Return query heads as GGUF files state them, blocks without attention included."""
        if self.attention is None:
            return 0
        default = self.attention
        return one_or_all(
            [(self.attention_of(i) or default).head_count for i in range(self.block_count)]
        )


def one_or_all(values: list[int]) -> int | tuple[int, ...]:
    """Return one number where all are equal, else all of them: what GGUF keys do."""
    return values[0] if len(set(values)) == 1 else tuple(values)


def from_mapping(data: Mapping[str, Any]) -> Architecture:
    """Return the architecture that a catalogue entry's plain values describe.

    `layers` and `ffn` may give a pattern that repeats; `sliding` only what differs from
    `attention`; `block_tensors` names blocks by their letters ("as"), by ranges ("0-2 6") or
    all of them ("*"). Raises TypeError for a key that is not a field.
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
        (_blocks(where, known["layers"]), name, tuple(shape))
        for where, tensors in known.get("block_tensors", {}).items()
        for name, shape in tensors.items()
    )
    for name in ("extra_metadata", "file_metadata"):
        known[name] = {
            key: tuple(value) if isinstance(value, list) else value
            for key, value in known.get(name, {}).items()
        }
    return Architecture(**known)


def _attention(data: Mapping[str, Any]) -> Attention:
    mla = data.get("mla")
    return Attention(**{**data, "mla": Mla(**mla) if mla else None})


def _blocks(where: str, layers: str) -> frozenset[int]:
    if where[0].isdigit():
        ends = (part.partition("-") for part in where.split())
        return frozenset(i for a, _, b in ends for i in range(int(a), int(b or a) + 1))
    return frozenset(i for i, letter in enumerate(layers) if where == "*" or letter in where)


def _repeat(pattern: str, length: int) -> str:
    return (pattern * (length // len(pattern) + 1))[:length]


def _interval(known: Mapping[str, Any]) -> str:
    interval: int = known.get("full_attention_interval", 1)
    mtp: int = known.get("mtp_blocks", 0)
    return _repeat("l" * (interval - 1) + "a", known["block_count"] - mtp) + "a" * mtp


def _ffn(known: Mapping[str, Any]) -> str:
    experts = known.get("experts")
    blocks: int = known["block_count"]
    dense: int = blocks if experts is None else experts.leading_dense_block_count
    return ("d" if known.get("feed_forward_length") else "-") * dense + "e" * (blocks - dense)
