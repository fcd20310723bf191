"""What a model is, as far as its speed and memory go."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Component = Literal[
    "embedding",
    "attention",
    "ffn",
    "router",
    "experts",
    "shared_experts",
    "recurrent",
    "head",
    "norm",
    "mtp",
    "other",
]
AttentionKind = Literal["full", "sliding", "mla", "none"]
Mixer = Literal["none", "ssm", "linear", "conv", "rwkv"]
Confidence = Literal["known", "generic"]


@dataclass(frozen=True, slots=True)
class WeightGroup:
    """All weights of one component that are stored in one type and read alike.

    `read_fraction` is the share of the bytes that one decoded token reads: used / total for
    routed experts, 0 for an untied embedding table (one row is looked up) and for blocks that
    decode does not run, else 1. `n_tensors` is how many tensors one token runs through, biases
    not counted. `n_matmul_params` are the parameters of matrices (two operations each for every
    token, times `read_fraction`). `n_activations` are the numbers that go in and out of those
    matrices for one token. `n_lookup_bytes` is what one token fetches from tables by row.
    """

    component: Component
    type: str
    n_params: int
    n_bytes: int
    n_tensors: int
    read_fraction: float
    n_matmul_params: int = 0
    n_activations: int = 0
    n_lookup_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Layer:
    """The shape of one block.

    For MLA, `n_head_kv` is 1, `key_length` the cached row (kv_lora_rank + rope) and
    `value_length` the part of it that serves as value (kv_lora_rank). `window` is the
    number of positions a sliding layer sees. `has_kv` is False where a layer reuses the cache
    of an earlier one (Gemma 3n). `state_elements` are the F32 numbers a recurrent layer
    keeps a sequence, convolution state included. `index_length` and `n_index_head` describe a
    sparse-attention indexer: the extra key row it caches a position and its query heads.
    `n_picked` are the positions that a generated token attends to by such an indexer, in a
    runtime that skips the others; 0 for all. With a `compress_ratio` the layer also caches
    one row of its shape, and one of the indexer's, for every so many positions, and sees all
    of those beside its window (DeepSeek V4).
    """

    index: int
    attention: AttentionKind
    n_head: int = 0
    n_head_kv: int = 0
    key_length: int = 0
    value_length: int = 0
    window: int | None = None
    has_kv: bool = True
    mixer: Mixer = "none"
    state_elements: int = 0
    n_expert: int = 0
    n_expert_used: int = 0
    index_length: int = 0
    n_index_head: int = 0
    n_picked: int = 0
    compress_ratio: int = 0


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model's parameters, bytes and shapes, read from a `Header`.

    `active_params` counts what one decoded token runs through: routed experts by used / total,
    the head once (tied or not), no untied embedding table, no MTP blocks. `confidence` is
    "generic" where the architecture is unknown and was read from tensor names alone.
    `metadata` keeps the few plain keys that commands show (name, file type, context length).
    """

    name: str
    architecture: str
    format: Literal["gguf", "mlx"]
    file_type: str
    n_params: int
    active_params: int
    n_bytes: int
    groups: tuple[WeightGroup, ...]
    layers: tuple[Layer, ...]
    embedding_length: int
    vocab_size: int
    context_length: int | None
    tied_embeddings: bool
    confidence: Confidence
    source: str
    metadata: Mapping[str, str | int | float | bool]
    warnings: tuple[str, ...] = ()
