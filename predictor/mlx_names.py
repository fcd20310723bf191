"""llama.cpp's tensor names for those of Hugging Face and MLX checkpoints."""

import re
from dataclasses import dataclass
from functools import lru_cache

from tokcast.predictor import mlx_tables as tables

# Longest first: what stands before `layers.0`, `embed_tokens` and so on.
_PREFIXES = (
    "model.language_model.model.",
    "language_model.model.",
    "model.language_model.",
    "language_model.",
    "model.text_model.",
    "text_model.",
    "thinker.model.",
    "thinker.",
    "backbone.",
    "transformer.",
    "gpt_neox.",
    "model.",
)
_PARTS = re.compile(
    r"(?P<mtp>mtp\.)?(?:(?:layers|h|blocks)\.(?P<layer>\d{1,5})\.)?(?P<local>.+)", re.ASCII
)
_MEMBER = re.compile(r"(?<=\.)\d{1,5}(?=\.)", re.ASCII)
# Constants that every runtime computes anew, and four numbers a block that GGUF has as metadata.
_BUFFERS = (
    "rotary_emb.inv_freq",
    "attn.masked_bias",
    "position_ids",
    "act_fn.alpha_n",
    "act_fn.alpha_p",
    "act_fn.beta",
    "act_fn.eps",
)
_FFN = re.compile(
    r"(?:(?:mlp|feed_forward|block_sparse_moe|mixer|ffn|moe)\.)?"
    r"(?:(?P<experts>(?:experts|switch_mlp)(?:\.(?:#|switch_glu|mlp))?)\."
    r"|(?P<shared>shared_experts?|shared_mlp|share_expert)\.)?"
    r"(?P<matrix>[a-zA-Z0-9_.]+)"
)


@dataclass(frozen=True, slots=True)
class Place:
    """A tensor's GGUF name, and its number where several make up one (single experts)."""

    name: str
    member: int | None = None


def is_tower(name: str) -> bool:
    """Return whether a tensor belongs to a vision or audio part."""
    return not tables.TOWERS.isdisjoint(name.split(".")[:3])


def is_buffer(name: str) -> bool:
    """Return whether a tensor is a constant and no weight."""
    return name.endswith(_BUFFERS)


def place(name: str, architecture: str, n_layers: int) -> Place | None:
    """Return where a checkpoint's tensor goes in a GGUF file, None for an unknown name.

    `n_layers` is the number of blocks before those of multi-token prediction (MTP).
    """
    own = next((name.removeprefix(p) for p in _PREFIXES if name.startswith(p)), name)
    found = _PARTS.fullmatch(own)
    if found is None:
        return None
    local, members = found["local"], _MEMBER.findall(found["local"])
    layer = None if found["layer"] is None else int(found["layer"])
    if found["mtp"]:
        local = local if layer is not None else f"mtp.{local}"
        layer = n_layers + (layer or 0)
    pattern = _MEMBER.sub("#", local)
    stem = _outside(pattern) if layer is None else _in_block(pattern, architecture)
    if stem is None or len(members) > 1:
        return None
    prefix = "" if layer is None else f"blk.{layer}."
    return Place(prefix + stem, int(members[0]) if members else None)


def _outside(local: str) -> str | None:
    module, _, last = local.rpartition(".")
    stem = tables.TOP.get(module)
    return f"{stem}.{last}" if stem and last in {"weight", "bias"} else None


@lru_cache(maxsize=1024)
def _in_block(local: str, architecture: str) -> str | None:
    module, _, last = local.rpartition(".")
    if local in tables.LAST or last in tables.LAST:
        return tables.LAST.get(local) or tables.LAST[last]
    if last not in {"weight", "bias"}:
        return None
    stem = _module(module)
    if architecture == "rwkv7":
        stem = tables.RWKV.get(module, stem)
    if module == "post_attention_layernorm" and architecture in tables.NORM_AFTER_ATTENTION:
        stem = "post_attention_norm"
    return f"{stem}.{last}" if stem else None


def _module(local: str) -> str | None:
    if local in tables.BLOCK:
        return tables.BLOCK[local]
    container, _, inner = local.partition(".")
    if container == "mtp":
        return tables.MTP_TOP.get(inner)
    for table in tables.CONTAINERS.get(container, ()):
        if inner in table:
            return table[inner]
    # Nemotron-H calls whatever a block holds its mixer, a feed-forward part too.
    if container in tables.CONTAINERS and container != "mixer":
        return None
    return _feed_forward(local)


def _feed_forward(local: str) -> str | None:
    found = _FFN.fullmatch(local)
    if found is None:
        return None
    matrix = found["matrix"]
    if matrix == "shared_expert_gate":
        return "ffn_gate_inp_shexp"
    is_plain = not found["experts"] and not found["shared"]
    if matrix in tables.ROUTERS and is_plain:
        return "ffn_gate_inp"
    if matrix not in tables.MATRICES:
        return None
    group = "_exps" if found["experts"] else "_shexp" if found["shared"] else ""
    return f"ffn_{tables.MATRICES[matrix]}{group}"
