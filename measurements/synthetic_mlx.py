"""MLX model folders with random weights, written without MLX.

A folder is `config.json` and `model.safetensors`. Quantized matrices are three tensors: packed
32-bit words, and a 16-bit scale and bias for each group of weights of a row.
"""

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tokcast.measurements.synthetic import check_room
from tokcast.predictor.errors import InputError

GROUP = 64
BITS = (2, 3, 4, 5, 6, 8)
_DEVIATION = 0.02


@dataclass(frozen=True, slots=True)
class MlxShape:
    """A dense llama or, with `n_expert`, a qwen3_moe of these sizes; `bits` 16 is float16.

    `n_ff` is one expert's width where there are experts.
    """

    bits: int
    n_layer: int
    width: int
    n_ff: int
    n_head: int
    n_head_kv: int
    n_vocab: int = 32000
    n_expert: int = 0
    n_expert_used: int = 0

    @property
    def name(self) -> str:
        """Return a name that tells this shape from others."""
        experts = f"-{self.n_expert}x{self.n_expert_used}e" if self.n_expert else ""
        return f"synthetic-mlx-{self.bits}bit-{self.n_layer}x{self.width}{experts}"


def config(s: MlxShape) -> dict[str, Any]:
    """Return the folder's config.json."""
    found: dict[str, Any] = {
        "model_type": "qwen3_moe" if s.n_expert else "llama",
        "hidden_size": s.width,
        "num_hidden_layers": s.n_layer,
        "intermediate_size": s.n_ff,
        "num_attention_heads": s.n_head,
        "num_key_value_heads": s.n_head_kv,
        "head_dim": s.width // s.n_head,
        "rms_norm_eps": 1e-5,
        "vocab_size": s.n_vocab,
        "rope_theta": 10000.0,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": True,
        "torch_dtype": "float16",
    }
    if s.n_expert:
        found |= {
            "num_experts": s.n_expert,
            "num_experts_per_tok": s.n_expert_used,
            "moe_intermediate_size": s.n_ff,
            "decoder_sparse_step": 1,
            "mlp_only_layers": [],
            "norm_topk_prob": True,
        }
    if s.bits != 16:
        found["quantization"] = {"group_size": GROUP, "bits": s.bits}
    return found


def _matrices(s: MlxShape) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield matrices, output dimension before input."""
    kv = s.n_head_kv * (s.width // s.n_head)
    yield "model.embed_tokens", (s.n_vocab, s.width)
    for i in range(s.n_layer):
        b = f"model.layers.{i}."
        yield b + "self_attn.q_proj", (s.width, s.width)
        yield b + "self_attn.k_proj", (kv, s.width)
        yield b + "self_attn.v_proj", (kv, s.width)
        yield b + "self_attn.o_proj", (s.width, s.width)
        n, where = ((s.n_expert,), "switch_mlp.") if s.n_expert else ((), "")
        if s.n_expert:
            yield b + "mlp.gate", (s.n_expert, s.width)
        yield b + f"mlp.{where}gate_proj", (*n, s.n_ff, s.width)
        yield b + f"mlp.{where}up_proj", (*n, s.n_ff, s.width)
        yield b + f"mlp.{where}down_proj", (*n, s.width, s.n_ff)


def _norms(s: MlxShape) -> Iterator[tuple[str, int]]:
    yield "model.norm", s.width
    for i in range(s.n_layer):
        b = f"model.layers.{i}."
        yield b + "input_layernorm", s.width
        yield b + "post_attention_layernorm", s.width
        if s.n_expert:
            yield b + "self_attn.q_norm", s.width // s.n_head
            yield b + "self_attn.k_norm", s.width // s.n_head


def _tensors(s: MlxShape, seed: int) -> Iterator[tuple[str, str, Any]]:
    """Yield (name, safetensors type, array)."""
    random = np.random.default_rng(seed)
    for name, n in _norms(s):
        yield f"{name}.weight", "F16", np.ones(n, np.float16)
    for name, shape in _matrices(s):
        if s.bits == 16:
            values = random.standard_normal(shape, dtype=np.float32) * np.float32(_DEVIATION)
            yield f"{name}.weight", "F16", values.astype(np.float16)
            continue
        words = (*shape[:-1], shape[-1] * s.bits // 32)
        groups = (*shape[:-1], shape[-1] // GROUP)
        step = 4 * _DEVIATION / 2**s.bits
        packed = random.integers(0, 2**32, words, dtype=np.uint32)
        yield f"{name}.weight", "U32", packed
        yield f"{name}.scales", "F16", np.full(groups, step, np.float16)
        yield f"{name}.biases", "F16", np.full(groups, -2 * _DEVIATION, np.float16)


def _check(s: MlxShape) -> None:
    if s.bits not in (*BITS, 16):
        raise InputError(f"{s.bits} bits: expected 16 or one of {', '.join(map(str, BITS))}")
    for what, n in (("width", s.width), ("feed-forward width", s.n_ff)):
        if n % GROUP:
            raise InputError(f"{what} {n}: expected a multiple of {GROUP}")


def write_folder(folder: Path, s: MlxShape, seed: int = 0) -> None:
    """Write a model folder that mlx-lm loads; raises InputError for shapes it can't pack."""
    _check(s)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = list(_tensors(s, seed))
    check_room(folder, sum(int(array.nbytes) for _, _, array in tensors))
    header: dict[str, Any] = {"__metadata__": {"format": "mlx"}}
    at = 0
    for name, kind, array in tensors:
        end = at + int(array.nbytes)
        header[name] = {"dtype": kind, "shape": list(array.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    try:
        with (folder / "model.safetensors").open("wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for _, _, array in tensors:
                file.write(array.tobytes())
        (folder / "config.json").write_text(json.dumps(config(s)), encoding="utf-8")
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}; expected a folder with room") from error
