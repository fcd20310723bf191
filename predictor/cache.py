"""What attention keeps and reads: cached rows of keys and values."""

from collections.abc import Sequence
from dataclasses import dataclass

from tokcast.predictor.errors import InputError
from tokcast.predictor.quants import bits_per_weight
from tokcast.predictor.spec import Layer


def cache_bytes(type_name: str) -> float:
    """Return the bytes of one cached number; raises InputError for an unknown type."""
    try:
        return bits_per_weight(type_name) / 8
    except (KeyError, ValueError, ZeroDivisionError):
        raise InputError(
            f"cache type {type_name!r} is not known; expected a ggml type such as F16, BF16, "
            "Q8_0 or Q4_0"
        ) from None


def k_row(layer: Layer) -> int:
    """Return the numbers a layer caches a position as keys, a sparse indexer's included."""
    return layer.n_head_kv * layer.key_length + layer.index_length


def v_row(layer: Layer) -> int:
    """Return the numbers a layer caches a position as values, none for MLA: its key has them."""
    return 0 if layer.attention == "mla" else layer.n_head_kv * layer.value_length


@dataclass(frozen=True, slots=True)
class Span:
    """Attention layers that see the same positions, added up.

    Bytes are a cached position's, operations and score heads a (query, key) pair's.
    """

    window: float
    k_bytes: float
    v_bytes: float
    k_flops: float
    v_flops: float
    n_head: int


def spans(layers: Sequence[Layer], k_size: float, v_size: float) -> tuple[Span, ...]:
    """Return attention layers by how far they see, from the bytes of one cached number."""
    by_window: dict[float, list[Layer]] = {}
    for layer in layers:
        window = float("inf") if layer.window is None else float(layer.window)
        by_window.setdefault(window, []).append(layer)
    return tuple(
        Span(
            window=window,
            k_bytes=k_size * sum(k_row(x) for x in group),
            v_bytes=v_size * sum(v_row(x) for x in group),
            k_flops=2.0
            * sum(x.n_head * x.key_length + x.n_index_head * x.index_length for x in group),
            v_flops=2.0 * sum(x.n_head * x.value_length for x in group),
            n_head=sum(x.n_head for x in group),
        )
        for window, group in by_window.items()
    )


def capped_sum(first: int, step: int, count: int, cap: float) -> float:
    """Return the sum of min(first + i step, cap) for i from 0 to count - 1."""
    if count == 1:
        return min(first, cap)
    # Terms below the cap form an arithmetic series; the rest are the cap itself.
    last = first + step * (count - 1)
    n_below = count if last <= cap else max(0, min(count, int((cap - first) // step) + 1))
    below = n_below * first + step * (n_below * (n_below - 1) // 2)
    return below + ((count - n_below) * cap if n_below < count else 0)
