"""Headers of models to be filled with random weights: made to measure, or of another's shapes."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tokcast.measurements.random_blocks import SUPPORTED
from tokcast.predictor.errors import InputError
from tokcast.predictor.header import Header, SkippedArray, Tensor, Value
from tokcast.predictor.quants import TYPES_BY_NAME


@dataclass(frozen=True, slots=True)
class Shape:
    """A dense or expert model to be made; `type` is that of all its matrices.

    With `n_expert`, the feed-forward width is one expert's. `head_type` is the embedding's and
    the output matrix's, which are one where `tied`.
    """

    type: str
    n_layer: int
    width: int
    n_ff: int
    n_head: int
    n_head_kv: int
    n_vocab: int = 32000
    head_length: int = 0
    n_expert: int = 0
    n_expert_used: int = 0
    tied: bool = True
    head_type: str = ""

    @property
    def name(self) -> str:
        """Return a name that tells this shape from others."""
        experts = f"-{self.n_expert}x{self.n_expert_used}e" if self.n_expert else ""
        return f"synthetic-{self.type}-{self.n_layer}x{self.width}{experts}"


def _tensor(name: str, type_name: str, *shape: int) -> Tensor:
    return Tensor(name, shape, type_name, TYPES_BY_NAME[type_name].size(shape))


def _layer(s: Shape, i: int) -> Iterator[Tensor]:
    b, e, t = f"blk.{i}.", s.width, s.type
    head = s.head_length or e // s.n_head
    yield _tensor(b + "attn_norm.weight", "F32", e)
    yield _tensor(b + "attn_q.weight", t, e, s.n_head * head)
    yield _tensor(b + "attn_k.weight", t, e, s.n_head_kv * head)
    yield _tensor(b + "attn_v.weight", t, e, s.n_head_kv * head)
    yield _tensor(b + "attn_output.weight", t, s.n_head * head, e)
    yield _tensor(b + "ffn_norm.weight", "F32", e)
    if not s.n_expert:
        yield _tensor(b + "ffn_gate.weight", t, e, s.n_ff)
        yield _tensor(b + "ffn_up.weight", t, e, s.n_ff)
        yield _tensor(b + "ffn_down.weight", t, s.n_ff, e)
        return
    yield _tensor(b + "attn_q_norm.weight", "F32", head)
    yield _tensor(b + "attn_k_norm.weight", "F32", head)
    yield _tensor(b + "ffn_gate_inp.weight", "F32", e, s.n_expert)
    yield _tensor(b + "ffn_gate_exps.weight", t, e, s.n_ff, s.n_expert)
    yield _tensor(b + "ffn_up_exps.weight", t, e, s.n_ff, s.n_expert)
    yield _tensor(b + "ffn_down_exps.weight", t, s.n_ff, e, s.n_expert)


def shaped(s: Shape) -> Header:
    """Return the header of a model of this shape: llama, or qwen3moe with experts."""
    a = "qwen3moe" if s.n_expert else "llama"
    head = s.head_length or s.width // s.n_head
    keys: dict[str, Value] = {
        "context_length": 131072,
        "embedding_length": s.width,
        "block_count": s.n_layer,
        "feed_forward_length": s.n_ff,
        "attention.head_count": s.n_head,
        "attention.head_count_kv": s.n_head_kv,
        "attention.key_length": head,
        "attention.value_length": head,
        "attention.layer_norm_rms_epsilon": 1e-5,
        "rope.dimension_count": head,
        "rope.freq_base": 10000.0,
        "vocab_size": s.n_vocab,
    }
    if s.n_expert:
        keys |= {
            "expert_count": s.n_expert,
            "expert_used_count": s.n_expert_used,
            "expert_feed_forward_length": s.n_ff,
        }
    general: dict[str, Value] = {"general.architecture": a, "general.name": s.name}
    head_type = s.head_type or s.type
    tensors = [_tensor("token_embd.weight", head_type, s.width, s.n_vocab)]
    if not s.tied:
        tensors.append(_tensor("output.weight", head_type, s.width, s.n_vocab))
    tensors.append(_tensor("output_norm.weight", "F32", s.width))
    tensors += [t for i in range(s.n_layer) for t in _layer(s, i)]
    metadata = general | {f"{a}.{k}": v for k, v in keys.items()}
    return Header("gguf", metadata, tuple(tensors), source=s.name)


def clone(header: Header) -> Header:
    """Return a header with the same shapes, types and keys, but no tokenizer.

    Raises InputError for MLX models and types that can't be filled at random.
    """
    if header.format != "gguf":
        raise InputError(f"{header.source}: only GGUF models can be cloned with random weights")
    for t in header.tensors:
        if t.type not in SUPPORTED:
            raise InputError(f"{header.source}: {t.name} is {t.type}, which can't be random here")
    a = str(header.metadata.get("general.architecture", ""))
    metadata = {
        k: v
        for k, v in header.metadata.items()
        if not k.startswith(("tokenizer.", "split.", "quantize."))
        and k != "general.alignment"
        # A list that was skipped on reading is a tokenizer's in all known models.
        and not isinstance(v, SkippedArray)
    }
    embedding = next((t for t in header.tensors if t.name == "token_embd.weight"), None)
    if f"{a}.vocab_size" not in metadata and embedding is not None:
        metadata[f"{a}.vocab_size"] = embedding.shape[1]
    return replace(header, metadata=metadata, source=f"clone of {header.source}")
