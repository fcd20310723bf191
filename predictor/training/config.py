"""Reading a checkpoint's config.json as the shape of a Transformer that is to be trained."""

from collections.abc import Mapping

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

# Two matrices a feed-forward; the others that are known have a gate, three.
_UNGATED = frozenset(
    ("bert", "roberta", "xlm-roberta", "distilbert", "electra", "gpt2", "gpt_neo", "gpt_neox")
    + ("gptj", "gpt_bigcode", "bloom", "opt", "falcon", "mpt", "phi", "starcoder2", "albert")
)
_GATED = frozenset(
    ("llama", "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "gemma", "gemma2")
    + ("gemma3", "gemma3_text", "phi3", "olmo", "olmo2", "olmoe", "granite", "smollm3", "cohere")
    + ("stablelm", "internlm2", "baichuan", "yi", "modernbert", "exaone", "glm", "glm4")
)
_BOTH_WAYS = frozenset(
    ("bert", "roberta", "xlm-roberta", "distilbert", "electra", "modernbert", "albert")
)
# Learned positions; the others turn or slope their heads.
_LEARNED = frozenset(
    ("bert", "roberta", "xlm-roberta", "distilbert", "electra", "gpt2", "gpt_neo", "opt")
    + ("gpt_bigcode", "albert")
)
# Where config.json is silent, transformers ties the head to the embedding but in these.
_UNTIED = _GATED - {"gemma", "gemma2", "gemma3", "gemma3_text", "cohere"} | {"gptj", "gpt_neox"}


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
    is_gated = kind in _GATED or (kind not in _UNGATED and "silu" in str(inner.get("hidden_act")))
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
        n_positions=_needed(inner, _POSITIONS, source) if kind in _LEARNED else 0,
        is_gated=is_gated,
        is_tied=_tied(inner, kind),
        is_causal=kind not in _BOTH_WAYS,
        n_experts=n_experts,
        n_used=min(_number(inner, _USED, source) or 1, n_experts),
    )
    return shape, _assumed(kind, is_gated)


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


def _tied(config: Config, kind: str) -> bool:
    said = config.get("tie_word_embeddings")
    return said if isinstance(said, bool) else kind not in _UNTIED


def _inner(config: Config, n_experts: int, source: str) -> int | None:
    names = ("moe_intermediate_size", *_INNER) if n_experts > 1 else _INNER
    return _number(config, names, source)


def _assumed(kind: str, is_gated: bool) -> tuple[str, ...]:
    if kind in _GATED or kind in _UNGATED:
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
