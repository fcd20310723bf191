"""Memory of many models at one context length."""


class Needs:
    """What models need for a context; `n_context` None is the most each was trained for.

    Caches and buffers are worked out once for all file types that share their layers.
    """
