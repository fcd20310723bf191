"""GGUF files with random weights of given shapes and types, for measuring without a download.

Speed depends on shapes and types, hardly on what the weights say. Each block's scales are drawn
from as wide a range as trained models have, small and finite: llama.cpp looks half-precision
scales up in a table, and a single value in all blocks decodes a fifth too fast. No tokenizer is
written: llama.cpp takes `no_vocab` and a vocabulary size.
"""

import errno
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tokcast.predictor.errors import InputError
from tokcast.predictor.gguf_write import data_offsets, header_bytes
from tokcast.predictor.header import Header, SkippedArray, Tensor, Value
from tokcast.predictor.quants import TYPES_BY_NAME

Bytes = npt.NDArray[np.uint8]
_TILE_BYTES = 4 << 20
_DEVIATION = 0.02
_SUFFIX = ".partial"

# Where the half-precision scales lie in a block, and a value that keeps weights near 0.02:
# (offset, value). From the field order of each block structure in ggml-common.h (MIT).
_SCALES: Mapping[str, tuple[tuple[int, float], ...]] = {
    "Q4_0": ((0, 2.5e-3),),
    "Q4_1": ((0, 2.5e-3), (2, -0.02)),
    "Q5_0": ((0, 1.25e-3),),
    "Q5_1": ((0, 1.25e-3), (2, -0.02)),
    "Q8_0": ((0, 2.7e-4),),
    "Q2_K": ((80, 1.2e-3), (82, 2e-3)),
    "Q3_K": ((108, 3e-4),),
    "Q4_K": ((0, 8e-5), (2, 6e-4)),
    "Q5_K": ((0, 4e-5), (2, 6e-4)),
    "Q6_K": ((208, 1.5e-5),),
    "IQ4_NL": ((0, 2.7e-4),),
    "IQ4_XS": ((0, 1.7e-5),),
    "IQ3_XXS": ((0, 1e-4),),
    "IQ3_S": ((0, 1e-4),),
    "IQ2_XXS": ((0, 2e-4),),
    "IQ2_XS": ((0, 2e-4),),
    "IQ2_S": ((0, 2e-4),),
    "IQ1_S": ((0, 1e-3),),
    "TQ1_0": ((52, 0.02),),
    "TQ2_0": ((64, 0.02),),
}
# Standard deviation of a trained model's log scales: 0.28 to 0.41 in the types of gemma3-270m.
_LOG_SPREAD = 0.38
# Types whose scale carries the sign of the block's largest weight.
_SIGNED = frozenset({"Q4_0", "Q5_0", "Q3_K", "Q6_K", "IQ4_NL", "IQ4_XS"})
# MXFP4's scale is a power of two with exponent byte - 127.
_MXFP4_EXPONENTS = (118, 123)
FLOATS = ("F32", "F16", "BF16")
SUPPORTED = (*FLOATS, *_SCALES, "MXFP4")


class NoRoomError(InputError):
    """The disk has no room for a model: every further one would fail alike."""


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


def _scales(type_name: str, value: float, n: int, random: np.random.Generator) -> Bytes:
    """Return scales of n blocks around a value, (n, 2)."""
    drawn = value * np.exp(_LOG_SPREAD * random.standard_normal(n))
    if type_name in _SIGNED:
        drawn *= random.choice((-1.0, 1.0), n)
    return drawn.astype(np.float16).view(np.uint8).reshape(n, 2)


def _floats(type_name: str, n: int, random: np.random.Generator) -> Bytes:
    x = random.standard_normal(n, dtype=np.float32) * np.float32(_DEVIATION)
    if type_name == "F16":
        return x.astype(np.float16).view(np.uint8)
    if type_name == "BF16":
        return (x.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    return x.view(np.uint8)


def tile(type_name: str, random: np.random.Generator) -> Bytes:
    """Return some mebibytes of whole random blocks of a type, with valid scales."""
    known = TYPES_BY_NAME[type_name]
    if type_name in FLOATS:
        return _floats(type_name, _TILE_BYTES // known.n_bytes, random)
    n_blocks = _TILE_BYTES // known.n_bytes
    blocks = random.integers(0, 256, (n_blocks, known.n_bytes), dtype=np.uint8)
    if type_name == "MXFP4":
        blocks[:, 0] = random.integers(*_MXFP4_EXPONENTS, n_blocks, dtype=np.uint8)
    for offset, value in _SCALES.get(type_name, ()):
        blocks[:, offset : offset + 2] = _scales(type_name, value, n_blocks, random)
    return blocks.reshape(-1)


def _bytes_of(tensor: Tensor, tiles: dict[str, Bytes], seed: int) -> Iterator[memoryview]:
    if len(tensor.shape) == 1 and tensor.type == "F32":
        # Norms of one keep activations in range through any number of layers.
        yield memoryview(np.ones(tensor.n_params, np.float32).view(np.uint8).data)
        return
    if tensor.type not in tiles:
        tiles[tensor.type] = tile(tensor.type, np.random.default_rng(seed + len(tiles)))
    data, left = tiles[tensor.type], tensor.n_bytes
    while left > 0:
        part = data[: min(left, data.size)]
        yield memoryview(part.data)
        left -= part.size


def need_bytes(header: Header) -> int:
    """Return the size of the file that `write` makes."""
    head, n_data = header_bytes(_with_tokenizer(header).metadata, header.tensors)
    return len(head) + n_data


def _with_tokenizer(header: Header) -> Header:
    metadata = {**header.metadata, "tokenizer.ggml.model": "no_vocab"}
    return replace(header, metadata=metadata)


def check_room(folder: Path, n_bytes: int) -> None:
    """Raise NoRoomError where a folder's disk has no room for so many bytes."""
    free = shutil.disk_usage(folder).free
    if free < n_bytes * 1.05 + (64 << 20):
        raise NoRoomError(
            f"{folder}: {n_bytes / 1e9:.2f} GB needed, {free / 1e9:.2f} GB free; free some space"
            " or set TOKCAST_SCRATCH to a folder on another disk"
        )


def write(path: Path, header: Header, seed: int = 0) -> None:
    """Write a GGUF file with random weights; what is there already is replaced when done.

    Raises NoRoomError when the disk fills up; nothing is left of the file then.
    """
    made = _with_tokenizer(header)
    head, n_data = header_bytes(made.metadata, made.tensors)
    check_room(path.parent, len(head) + n_data)
    offsets = data_offsets(made.tensors)
    tiles: dict[str, Bytes] = {}
    unfinished = path.with_name(path.name + _SUFFIX)
    try:
        with unfinished.open("wb") as file:
            file.write(head)
            for tensor, offset in zip(made.tensors, offsets, strict=False):
                file.seek(len(head) + offset)
                for part in _bytes_of(tensor, tiles, seed):
                    file.write(part)
            file.truncate(len(head) + n_data)
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoRoomError(
                f"{path.parent}: the disk is full; free {n_data / 1e9:.2f} GB or set"
                " TOKCAST_SCRATCH to a folder on another disk"
            ) from error
        raise InputError(f"{path}: {error.strerror}; expected a folder to write to") from error
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
