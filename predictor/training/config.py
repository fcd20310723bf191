"""Reading a checkpoint's config.json as the shape of a Transformer that is to be trained."""

from collections.abc import Mapping
from dataclasses import dataclass

from tokcast.predictor.errors import InputError
from tokcast.predictor.mlx_config import language_part
from tokcast.predictor.text import printable
from tokcast.predictor.training.shape import TrainShape

Config = Mapping[str, object]
# No model's number comes near it; what is larger is not believed.
_LARGEST = 2**24

_WIDTH = ("hidden_size", "n_embd", "d_model", "dim")
_LAYERS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
_HEADS = ("num_attention_heads", "n_head", "num_heads", "n_heads")
_INNER = ("intermediate_size", "n_inner", "ffn_dim", "hidden_dim", "ffn_hidden_size")
_KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv")
_POSITIONS = ("max_position_embeddings", "n_positions", "n_ctx")
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts")
_USED = ("num_experts_per_tok", "num_experts_per_token", "experts_per_token")


@dataclass(frozen=True, slots=True)
class _Kind:
    """What a model type's code does and its config does not say.

    `is_gated`: three feed-forward matrices. `is_learned`: positions are a table; others turn or
    slope their heads. `is_tied`: head and embedding are one where the config is silent.
    """

    is_gated: bool = False
    is_learned: bool = False
    is_causal: bool = True
    is_tied: bool = True


_ENCODER = _Kind(is_learned=True, is_causal=False)
_GATED_ENCODER = _Kind(is_gated=True, is_causal=False)
_GPT = _Kind(is_learned=True)
_OLD = _Kind()
_UNTIED = _Kind(is_tied=False)
_TIED = _Kind(is_gated=True)
_LLAMA = _Kind(is_gated=True, is_tied=False)
_KNOWN = {
    "albert": _ENCODER,
    "baichuan": _LLAMA,
    "bert": _ENCODER,
    "bloom": _OLD,
    "cohere": _TIED,
    "distilbert": _ENCODER,
    "electra": _ENCODER,
    "exaone": _LLAMA,
    "falcon": _OLD,
    "gemma": _TIED,
    "gemma2": _TIED,
    "gemma3": _TIED,
    "gemma3_text": _TIED,
    "glm": _LLAMA,
    "glm4": _LLAMA,
    "gpt2": _GPT,
    "gpt_bigcode": _GPT,
    "gpt_neo": _GPT,
    "gpt_neox": _UNTIED,
    "gptj": _UNTIED,
    "granite": _LLAMA,
    "internlm2": _LLAMA,
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "mixtral": _LLAMA,
    "modernbert": _GATED_ENCODER,
    "mpt": _OLD,
    "olmo": _LLAMA,
    "olmo2": _LLAMA,
    "olmoe": _LLAMA,
    "opt": _GPT,
    "phi": _OLD,
    "phi3": _LLAMA,
    "qwen2": _LLAMA,
    "qwen2_moe": _LLAMA,
    "qwen3": _LLAMA,
    "qwen3_moe": _LLAMA,
    "roberta": _ENCODER,
    "smollm3": _LLAMA,
    "stablelm": _LLAMA,
    "starcoder2": _OLD,
    "xlm-roberta": _ENCODER,
    "yi": _LLAMA,
}


def from_config(config: Config, source: str) -> tuple[TrainShape, tuple[str, ...]]:
    """Return the shape that config.json describes, and what of it is an assumption.

    Raises InputError for a model that is no plain Transformer, and for numbers that are missing,
    no whole numbers, or outside what they can be.
    """
    inner = language_part(config)
    kind = str(inner.get("model_type") or "")
    _plain_only(inner, kind, source)
    width = _needed(inner, _WIDTH, source)
    n_heads = _needed(inner, _HEADS, source)
    head_width = _number(inner, ("head_dim",), source) or width // n_heads
    if head_width == 0:
        raise InputError(f"{source}: {n_heads} heads of a width of {width}; expected fewer heads")
    known = _KNOWN.get(kind, _Kind(is_gated="silu" in str(inner.get("hidden_act"))))
    is_tied = inner.get("tie_word_embeddings")
    n_experts = _number(inner, _EXPERTS, source) or 1
    shape = TrainShape(
        name=printable(str(inner.get("_name_or_path") or kind or "model"), 40),
        n_layers=_needed(inner, _LAYERS, source),
        width=width,
        n_heads=n_heads,
        n_kv_heads=_number(inner, _KV_HEADS, source) or n_heads,
        head_width=head_width,
        inner=_inner(inner, n_experts, source) or 4 * width,
        n_vocab=_needed(inner, ("vocab_size",), source),
        n_positions=_needed(inner, _POSITIONS, source) if known.is_learned else 0,
        is_gated=known.is_gated,
        is_tied=is_tied if isinstance(is_tied, bool) else known.is_tied,
        is_causal=known.is_causal,
        n_experts=n_experts,
        n_used=min(_number(inner, _USED, source) or 1, n_experts),
    )
    return shape, _assumed(kind, known.is_gated)


def _plain_only(config: Config, kind: str, source: str) -> None:
    mixes = [name for name in ("ssm_state_size", "state_size", "mamba_d_state") if name in config]
    if config.get("is_encoder_decoder") is True:
        raise InputError(
            f"{source}: an encoder with a decoder ({printable(kind, 20)}); expected an encoder or"
            " a decoder alone, such as BERT or Llama"
        )
    if mixes:
        raise InputError(
            f"{source}: has {mixes[0]}, a recurrent state; expected attention in every block"
        )


def _inner(config: Config, n_experts: int, source: str) -> int | None:
    names = ("moe_intermediate_size", *_INNER) if n_experts > 1 else _INNER
    return _number(config, names, source)


def _assumed(kind: str, is_gated: bool) -> tuple[str, ...]:
    if kind in _KNOWN:
        return ()
    named = f"model_type {printable(kind, 40)!r} is not known" if kind else "no model_type"
    matrices = "three matrices" if is_gated else "two matrices"
    return (f"{named}: read as a decoder with {matrices} a feed-forward",)


def _number(config: Config, names: tuple[str, ...], source: str) -> int | None:
    """Return the first of the names that is there; raises InputError unless a number above 0."""
    for name in names:
        value = config.get(name)
        if value is None:
            continue
        if type(value) is not int or not 0 < value <= _LARGEST:
            raise InputError(
                f"{source}: {name} is {printable(repr(value), 40)}; expected a whole number from"
                f" 1 to {_LARGEST}"
            )
        return value
    return None


def _needed(config: Config, names: tuple[str, ...], source: str) -> int:
    value = _number(config, names, source)
    if value is None:
        raise InputError(
            f"{source}: {names[0]} is missing; expected the config.json of a Transformer"
        )
    return value
