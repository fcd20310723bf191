"""Memory of many models at one context length."""

from dataclasses import replace

from tokcast.predictor.cache import default_cache_type
from tokcast.predictor.memory import MemoryUse, memory
from tokcast.predictor.spec import ModelSpec


class Needs:
    """What models need for a context; `n_context` None is the most each was trained for.

    Caches and buffers are worked out once for all file types that share their layers.
    """
