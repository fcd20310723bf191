"""What attention keeps and reads: cached rows of keys and values."""

import math
from collections.abc import Iterator, Sequence
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
    return near_row(layer) + far_row(layer)


def near_row(layer: Layer) -> int:
    """Return those of them that are kept as far as the layer's window reaches."""
    index = 0 if layer.compress_ratio else layer.index_length
    return layer.n_head_kv * layer.key_length + index


def far_row(layer: Layer) -> int:
    """Return those kept of every position beyond a window: rows that stand for several."""
    if not layer.compress_ratio:
        return 0
    return (layer.n_head_kv * layer.key_length + layer.index_length) // layer.compress_ratio


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
    n_head: float


# Of a cached position: numbers as keys and as values, products with them, and score heads.
_Numbers = tuple[float, float, float, float, float]


def spans(
    layers: Sequence[Layer], k_size: float, v_size: float, *, is_picking: bool = False
) -> tuple[Span, ...]:
    """Return attention layers by how far they see, from the bytes of one cached number.

    With `is_picking` layers see no more than what their indexer picks.
    """
    by_window: dict[float, list[_Numbers]] = {}
    for layer in layers:
        for window, numbers in _seen(layer, is_picking):
            by_window.setdefault(window, []).append(numbers)
    found = []
    for window, group in by_window.items():
        k, v, k_products, v_products, n_head = map(sum, zip(*group, strict=True))
        flops = (2.0 * k_products, 2.0 * v_products)
        found.append(Span(window, k_size * k, v_size * v, *flops, n_head))
    return tuple(found)


def _seen(layer: Layer, is_picking: bool) -> Iterator[tuple[float, _Numbers]]:
    """Yield what a layer sees of a position, and up to how many positions."""
    window = math.inf if layer.window is None else float(layer.window)
    n_key, n_value = layer.n_head * layer.key_length, layer.n_head * layer.value_length
    own = (layer.n_head_kv * layer.key_length, v_row(layer), n_key, n_value, layer.n_head)
    index = (layer.index_length, 0, layer.n_index_head * layer.index_length, 0, 0)
    picked = layer.n_picked if is_picking and layer.n_picked else math.inf
    if layer.compress_ratio:
        yield window, own
        yield from _compressed(layer.compress_ratio, picked, own, index)
    elif picked < math.inf:
        yield min(window, picked), own
        yield window, index
    else:
        yield window, _sum(own, index)


def _compressed(
    ratio: int, picked: float, own: _Numbers, index: _Numbers
) -> Iterator[tuple[float, _Numbers]]:
    """Yield what is seen of rows that stand for `ratio` positions each.

    All are read, to be copied beside the window's, whichever are picked then.
    """
    k, v, n_key, n_value, n_head = (x / ratio for x in own)
    yield math.inf, (k + index[0] / ratio, v, index[2] / ratio, 0.0, 0.0)
    yield picked, (0.0, 0.0, n_key, n_value, n_head)


def _sum(a: _Numbers, b: _Numbers) -> _Numbers:
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3], a[4] + b[4])


def capped_sum(first: int, step: int, count: int, cap: float) -> float:
    """Return the sum of min(first + i step, cap) for i from 0 to count - 1."""
    if count == 1:
        return min(first, cap)
    # Terms below the cap form an arithmetic series; the rest are the cap itself.
    last = first + step * (count - 1)
    n_below = count if last <= cap else max(0, min(count, int((cap - first) // step) + 1))
    below = n_below * first + step * (n_below * (n_below - 1) // 2)
    return below + ((count - n_below) * cap if n_below < count else 0)
