"""Models as mlx-lm writes them: recorded listings, tiny folders, and the library itself."""

import contextlib
import copy
import io
import json
import re
from pathlib import Path

from tokcast.predictor.mlx import read_mlx

FOLDER = Path(__file__).parent / "data" / "mlx"
DTYPES = {"uint32": "U32", "uint8": "U8", "bfloat16": "BF16", "float16": "F16", "float32": "F32"}
_BLOCK = re.compile(r"(?<=layers\.)\d+(?=\.)")

AFFINE = {"group_size": 64, "bits": 4}
LLAMA = {
    "model_type": "llama",
    "hidden_size": 256,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}

TINY = {
    # 4 and 6 bits mixed as `mlx_lm.convert --quant-predicate mixed_4_6` does.
    "tiny-llama-mixed": (
        {
            "model_type": "llama",
            "hidden_size": 128,
            "num_hidden_layers": 4,
            "intermediate_size": 256,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "rms_norm_eps": 1e-5,
            "vocab_size": 512,
            "rope_theta": 1e4,
            "max_position_embeddings": 2048,
            "tie_word_embeddings": False,
        },
        {"group_size": 64, "bits": 4},
        "mixed_4_6",
    ),
    # Experts as MXFP4, the router at 8 bits as the model's own predicate wants it.
    "tiny-qwen3-moe-mxfp4": (
        {
            "model_type": "qwen3_moe",
            "hidden_size": 128,
            "num_hidden_layers": 2,
            "intermediate_size": 256,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 64,
            "num_experts": 8,
            "num_experts_per_tok": 2,
            "decoder_sparse_step": 1,
            "mlp_only_layers": [],
            "moe_intermediate_size": 96,
            "norm_topk_prob": True,
            "rms_norm_eps": 1e-6,
            "vocab_size": 512,
            "rope_theta": 1e4,
            "max_position_embeddings": 2048,
            "tie_word_embeddings": True,
        },
        {"group_size": None, "bits": None, "mode": "mxfp4"},
        None,
    ),
    "tiny-gemma3-8bit": (
        {
            "model_type": "gemma3_text",
            "hidden_size": 128,
            "num_hidden_layers": 7,
            "intermediate_size": 256,
            "num_attention_heads": 4,
            "num_key_value_heads": 1,
            "head_dim": 32,
            "rms_norm_eps": 1e-6,
            "vocab_size": 512,
            "sliding_window": 32,
            "sliding_window_pattern": 6,
            "query_pre_attn_scalar": 32,
            "max_position_embeddings": 2048,
        },
        {"group_size": 32, "bits": 8},
        None,
    ),
}


def recordings():
    """Return the names of the recorded models."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def recorded(name):
    """Return (recording, its config, {tensor name: (dtype, shape)})."""
    recording = json.loads((FOLDER / f"{name}.json").read_text())
    return recording, recording["config"], expanded(recording["tensors"])


def build(config, quantize, recipe=None):
    """Return (model, config) as mlx-lm makes them, in BF16 or quantized, nothing computed yet."""
    import mlx.core as mx
    from mlx_lm.convert import mixed_quant_predicate_builder
    from mlx_lm.utils import _get_classes, quantize_model

    classes = _get_classes(config)
    model = classes[0](classes[1].from_dict(copy.deepcopy(config)))
    model.set_dtype(mx.bfloat16)
    if config["model_type"] == "gemma3_text":
        # Made for every model, dropped on loading a checkpoint without it: all of them.
        model.pop("lm_head")
    if quantize:
        own = {"quant_predicate": mixed_quant_predicate_builder(recipe, model)} if recipe else {}
        # It prints the bits per weight.
        with contextlib.redirect_stdout(io.StringIO()):
            model, config = quantize_model(model, config, **quantize, **own)
    return model, config


def listing_of(model):
    """Return {name: (safetensors dtype, shape)} of a model's parameters."""
    from mlx.utils import tree_flatten

    return {
        name: (DTYPES[str(array.dtype).rpartition(".")[2]], tuple(array.shape))
        for name, array in tree_flatten(model.parameters())
    }


def save_tiny(name, folder):
    """Save one of the TINY models into a folder and return the model."""
    from mlx_lm.utils import save_config, save_model

    model, config = build(*TINY[name])
    save_model(folder, model)
    save_config(dict(config), folder / "config.json")
    return model


def compressed(tensors):
    """Return rows (pattern, dtype, shape, blocks), blocks as in '0-2,5' or '' outside of them."""
    rows = {}
    for name, (dtype, shape) in tensors.items():
        found = _BLOCK.search(name)
        pattern = name if found is None else f"{name[: found.start()]}*{name[found.end() :]}"
        blocks = rows.setdefault((pattern, dtype, tuple(shape)), [])
        if found is not None:
            blocks.append(int(found[0]))
    return [[p, d, list(s), _ranges(sorted(b))] for (p, d, s), b in rows.items()]


def expanded(rows):
    """Return {name: (dtype, shape)} from such rows."""
    tensors = {}
    for pattern, dtype, shape, blocks in rows:
        for part in blocks.split(","):
            first, _, last = part.partition("-")
            numbers = range(int(first), int(last or first) + 1) if first else [""]
            for number in numbers:
                tensors[pattern.replace("*", str(number), 1)] = (dtype, tuple(shape))
    return tensors


def _ranges(numbers):
    parts = []
    for number in numbers:
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in parts)


def tensors_of(header):
    """Return a header's tensors by name."""
    return {t.name: t for t in header.tensors}


def one(tensors, config=LLAMA, **changes):
    """Return the one tensor that a checkpoint of these parts has."""
    header = read_mlx({**config, **changes}, tensors, "org/model")
    assert len(header.tensors) == 1
    return header.tensors[0]
