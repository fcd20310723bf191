"""Reading a checkpoint's config.json: which model it is, and its numbers by name."""

from collections.abc import Iterable, Mapping

from tokcast.predictor import mlx_tables as tables
from tokcast.predictor.text import printable

# Parts of a multimodal config that describe the language model.
_NESTED = ("text_config", "language_config", "llm_config")
_LAYER_COUNTS = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
_LAYER_LISTS = ("layers_block_type", "hybrid_override_pattern", "layer_types", "block_configs")
# No config's number comes near it; what is larger is not believed.
_LARGEST = 2**31 - 1
LARGEST_LAYER_COUNT = 10_000

Config = Mapping[str, object]


def language_part(config: Config) -> Config:
    """Return the config of the language model, with what only the outer config has."""
    outer = config.get("thinker_config")
    config = outer if isinstance(outer, Mapping) else config
    for name in _NESTED:
        nested = config.get(name)
        if isinstance(nested, Mapping):
            return {**config, **nested}
    return config


def number(config: Config, names: Iterable[str]) -> int | None:
    """Return the first of the names that holds a whole number from 0 to 2^31 - 1.

    Of a list the largest entry counts: it gives one number a layer.
    """
    for name in names:
        value = config.get(name)
        entries = value if isinstance(value, list) else [value]
        found = [v for v in entries if type(v) is int and 0 <= v <= _LARGEST]
        if found:
            return max(found)
    return None


def layer_count(config: Config) -> int | None:
    """Return the number of blocks, those of multi-token prediction not counted."""
    count = number(config, _LAYER_COUNTS)
    if count is None:
        lists = (config.get(name) for name in _LAYER_LISTS)
        count = next((len(v) for v in lists if isinstance(v, list | str)), None)
    return count if count is not None and 0 < count <= LARGEST_LAYER_COUNT else None


def architecture(config: Config) -> tuple[str, str]:
    """Return what llama.cpp calls the architecture, and a warning or ''."""
    inner = language_part(config).get("model_type")
    named = [t for t in (inner, config.get("model_type")) if isinstance(t, str) and t]
    for model_type in named:
        known = model_type.replace("-", "_").removesuffix("_text")
        if known in tables.ARCHITECTURES:
            return tables.ARCHITECTURES[known], ""
        if known in tables.SAME_ARCHITECTURES:
            return known, ""
    if not named:
        return "unknown", "config.json has no model_type; the model is read from its tensors alone"
    return named[0], f"model_type {printable(named[0], 40)!r} has no llama.cpp name that is known"


def is_sliding(config: Config, n_layers: int) -> tuple[bool, ...] | None:
    """Return for each block whether it sees a window only, None where the config doesn't say."""
    kinds = config.get("layer_types")
    if isinstance(kinds, list) and kinds:
        return tuple("sliding" in str(k) or "chunked" in str(k) for k in kinds[:n_layers])
    flags = config.get("hybrid_layer_pattern")
    if isinstance(flags, list) and flags:
        return tuple(f == 1 for f in flags[:n_layers])
    pattern = config.get("sliding_window_pattern", config.get("_sliding_window_pattern"))
    if isinstance(pattern, str) and pattern:
        return tuple(pattern[i % len(pattern)] == "L" for i in range(n_layers))
    every = number(config, ("sliding_window_pattern", "_sliding_window_pattern"))
    every = every or number(config, ("global_attn_every_n_layers",))
    return None if not every else tuple((i + 1) % every != 0 for i in range(n_layers))


def window(config: Config) -> int | None:
    """Return how many positions a sliding or chunked layer sees; None if none does."""
    if config.get("use_sliding_window") is False:
        return None
    names = ("sliding_window", "sliding_window_size", "window_size", "attention_chunk_size")
    return number(config, names) or None
