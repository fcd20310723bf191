"""Small model files for tests of where models come from."""

import json
import random
import struct

from gguf_bytes import ARRAY, F32, I32, STRING, Build


def small_gguf(name: bytes = b"small", n_data: int = 64) -> bytes:
    """Return a whole GGUF file of one F32 tensor of 16 elements."""
    build = Build(n_data=n_data).string(b"general.architecture", b"llama")
    return build.string(b"general.name", name).tensor(b"output.weight", (4, 4)).bytes()


def split_gguf(n_parts: int) -> list[bytes]:
    """Return the files of a model in parts, one tensor each."""
    parts = []
    for part in range(n_parts):
        build = Build(n_data=64).string(b"general.architecture", b"llama")
        for key, value in ((b"split.no", part), (b"split.count", n_parts)):
            build.entry(key, 2, struct.pack("<H", value))
        build.entry(b"split.tensors.count", I32, struct.pack("<i", n_parts))
        parts.append(build.tensor(b"blk.%d.weight" % part, (4, 4)).bytes())
    return parts


def large_vocabulary(n_tokens: int, n_merges: int = 0, n_tensors: int = 200) -> tuple[bytes, int]:
    """Return the start of a GGUF file and its header's length.

    Tokens are of 1 to 14 bytes, merges longer, later ones longer than early ones: as in real
    vocabularies. Without merges the vocabulary has scores, as SentencePiece ones have.
    """
    build = Build(n_data=0).string(b"general.architecture", b"llama")
    build.string(b"tokenizer.ggml.model", b"gpt2" if n_merges else b"llama")
    build.entry(b"tokenizer.ggml.tokens", ARRAY, _strings(build, n_tokens, 8))
    if not n_merges:
        scores = build.array(F32, n_tokens, bytes(4 * n_tokens))
        build.entry(b"tokenizer.ggml.scores", ARRAY, scores)
    types = build.array(I32, n_tokens, bytes(4 * n_tokens))
    build.entry(b"tokenizer.ggml.token_type", ARRAY, types)
    if n_merges:
        build.entry(b"tokenizer.ggml.merges", ARRAY, _strings(build, n_merges, 10))
    build.string(b"tokenizer.chat_template", b"{{ messages }}" * 400)
    for index in range(n_tensors):
        build.tensor(b"blk.%d.ffn_gate.weight" % index, (64, 64), 0, index * 64 * 64 * 4)
    header = build.header()
    n_header = -(-len(header) // 32) * 32
    return header + bytes(n_header - len(header)), n_header


def _strings(build: Build, n: int, mean_bytes: int) -> bytes:
    spread = random.Random(n)
    length = struct.Struct("<Q").pack
    texts = []
    for index in range(n):
        size = spread.randint(1, 2 * mean_bytes - 3) + 2 * index // n
        texts.append(length(size) + (b"%x" % index).rjust(size, b"t")[:size])
    return build.array(STRING, n, b"".join(texts))


CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 32,
    "quantization": {"bits": 4, "group_size": 32},
}


def safetensors(tensors: dict[str, tuple[str, tuple[int, ...]]]) -> bytes:
    """Return a safetensors file whose weights are zeros."""
    sizes = {"F16": 2, "U32": 4}
    listing: dict[str, object] = {}
    at = 0
    for name, (dtype, shape) in tensors.items():
        n_bytes = sizes[dtype]
        for dimension in shape:
            n_bytes *= dimension
        listing[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + n_bytes]}
        at += n_bytes
    text = json.dumps(listing).encode()
    return struct.pack("<Q", len(text)) + text + bytes(at)


def mlx_files() -> dict[str, bytes]:
    """Return a tiny MLX model in two shards."""
    embedding = {
        "model.embed_tokens.weight": ("U32", (32, 8)),
        "model.embed_tokens.scales": ("F16", (32, 2)),
        "model.embed_tokens.biases": ("F16", (32, 2)),
    }
    rest = {
        "model.layers.0.mlp.up_proj.weight": ("U32", (128, 8)),
        "model.layers.0.mlp.up_proj.scales": ("F16", (128, 2)),
        "model.layers.0.mlp.up_proj.biases": ("F16", (128, 2)),
        "model.norm.weight": ("F16", (64,)),
    }
    return {
        "config.json": json.dumps(CONFIG).encode(),
        "model-00001-of-00002.safetensors": safetensors(embedding),
        "model-00002-of-00002.safetensors": safetensors(rest),
        "tokenizer.json": b"{}",
    }
