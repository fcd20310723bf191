"""Memory a model needs at a context length, and the longest context that fits.

The form is llama.cpp's (MIT, commit 0c1e570) with every layer on one device;
`docs/ledger.md` derives it, `tokcast.predictor.placement.memory` has several devices.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from tokcast.predictor.cache import cache_bytes, far_row, near_row, v_row
from tokcast.predictor.errors import InputError
from tokcast.predictor.ledger import F32_BYTES, Workload
from tokcast.predictor.spec import Layer, ModelSpec

# Caches and contexts are rounded up to whole blocks of so many positions.
PADDING = 256
# No runtime offers more positions than fit a signed 32-bit number.
LONGEST = 2**31 - PADDING


@dataclass(frozen=True, slots=True)
class MemoryUse:
    """Bytes a model takes at `n_context` positions (padded).

    The input embedding stays in host memory, a tied one is there as well as on the device.
    `weights_bytes` counts every loaded tensor once. Caches and states are on the device.
    """

    n_context: int
    weights_bytes: float
    weights_device_bytes: float
    weights_host_bytes: float
    kv_bytes: float
    recurrent_bytes: float
    compute_device_bytes: float
    compute_host_bytes: float

    @property
    def device_bytes(self) -> float:
        """Return what a card of its own memory must hold."""
        return (
            self.weights_device_bytes
            + self.kv_bytes
            + self.recurrent_bytes
            + self.compute_device_bytes
        )

    @property
    def host_bytes(self) -> float:
        """Return what stays in main memory beside such a card."""
        return self.weights_host_bytes + self.compute_host_bytes

    @property
    def unified_bytes(self) -> float:
        """Return what one memory shared by processor and accelerator must hold."""
        compute = self.compute_device_bytes + self.compute_host_bytes
        return self.weights_bytes + self.kv_bytes + self.recurrent_bytes + compute


@dataclass(frozen=True, slots=True)
class Setting:
    """How caches are kept: their types and how many sequences share the context.

    `swa_full` keeps all positions of sliding layers, as llama.cpp's `--swa-full` does. Each of
    `n_sequences` has its own stretch of the cache, as llama.cpp's `-np` does.
    """

    type_k: str = "F16"
    type_v: str = "F16"
    n_ubatch: int = 512
    flash_attention: bool = True
    swa_full: bool = False
    n_sequences: int = 1

    @classmethod
    def of(cls, load: Workload) -> Self:
        """Return the setting that a workload is run in, of one sequence."""
        return cls(load.type_k, load.type_v, load.n_ubatch, load.flash_attention)


PLAIN = Setting()


def longest_context(limit: int, holds: Callable[[int], bool]) -> int:
    """Return the most positions, in whole blocks and about `limit` at most, that `holds` allows.

    It is asked about whole blocks; what holds a context is taken to hold every shorter one.
    """
    good, bad = 0, padded(limit) // PADDING + 1
    while bad - good > 1:
        middle = (good + bad) // 2
        if holds(middle * PADDING):
            good = middle
        else:
            bad = middle
    return good * PADDING


def largest_context(
    spec: ModelSpec, available_bytes: float, setting: Setting = PLAIN, *, is_unified: bool = False
) -> int:
    """Return the most positions that fit, 0 if not even one block of them does.

    At most the length the model was trained for, where the header tells. `available_bytes`
    are a card's own or, with `is_unified`, those of a memory shared with the processor.
    Raises InputError as `memory` does.
    """

    def holds(n_context: int) -> bool:
        use = memory(spec, n_context, setting)
        return (use.unified_bytes if is_unified else use.device_bytes) <= available_bytes

    limit = min(spec.context_length or LONGEST, LONGEST)
    return min(longest_context(limit, holds), limit)


def check(n_context: int, setting: Setting) -> None:
    """Raise InputError for lengths below 1 or beyond 32 bits."""
    counted = ("n_context", n_context), ("n_ubatch", setting.n_ubatch)
    for name, value in (*counted, ("n_sequences", setting.n_sequences)):
        if not 1 <= value <= LONGEST:
            raise InputError(f"{name} is {value}, expected 1 to {LONGEST}")


def memory(spec: ModelSpec, n_context: int, setting: Setting = PLAIN) -> MemoryUse:
    """Return the bytes needed for `n_context` positions in micro-batches.

    The sequences of the setting share the context.
    Raises InputError for lengths below 1 or beyond 32 bits and for unknown cache types.
    """
    check(n_context, setting)
    cells = padded(n_context)
    loaded = [g for g in spec.groups if g.component != "mtp"]
    weights = float(sum(g.n_bytes for g in loaded))
    on_host = float(sum(g.n_bytes for g in loaded if g.component == "embedding"))
    n_query = min(setting.n_ubatch, cells)
    caches = layer_caches(spec, n_context, setting)
    return MemoryUse(
        n_context=cells,
        weights_bytes=weights,
        weights_device_bytes=weights - on_host,
        weights_host_bytes=on_host + _tied_table_bytes(spec),
        kv_bytes=float(sum(kept for kept, _ in caches)),
        recurrent_bytes=float(sum(state for _, state in caches)),
        compute_device_bytes=max(
            head_bytes(spec, n_query), body_bytes(spec, n_context, n_query, setting)
        ),
        compute_host_bytes=input_bytes(spec, n_query)
        + mask_bytes(spec, n_context, n_query, setting),
    )


def padded(n: int) -> int:
    """Return a number of positions rounded up to whole blocks."""
    return -(-n // PADDING) * PADDING


def cells_of(layer: Layer, n_context: int, setting: Setting) -> int:
    """Return the positions one sequence's cache of a layer holds.

    A sliding layer's holds its window and a micro-batch.
    """
    n_cell = padded(n_context // setting.n_sequences)
    if layer.window is None or setting.swa_full:
        return n_cell
    return padded(min(n_cell, layer.window + setting.n_ubatch))


def layer_caches(
    spec: ModelSpec, n_context: int, setting: Setting
) -> tuple[tuple[float, float], ...]:
    """Return the bytes of each layer's K/V cache and recurrent state, of all sequences.

    Raises InputError for an unknown cache type.
    """
    k_size, v_size = cache_bytes(setting.type_k), cache_bytes(setting.type_v)
    caching = {x.index for x in spec.layers if x.attention != "none" and x.has_kv}
    # Without flash attention values are kept transposed, all layers as wide as the widest.
    widest = max((v_row(x) for x in spec.layers if x.index in caching), default=0)
    found = []
    for layer in spec.layers:
        kept = 0.0
        if layer.index in caching:
            values = v_row(layer)
            if values and not setting.flash_attention:
                values = widest
            row = near_row(layer) * k_size + values * v_size
            kept = row * cells_of(layer, n_context, setting)
            kept += far_row(layer) * k_size * padded(n_context // setting.n_sequences)
            kept *= setting.n_sequences
        found.append((kept, float(F32_BYTES * layer.state_elements * setting.n_sequences)))
    return tuple(found)


def _tied_table_bytes(spec: ModelSpec) -> float:
    rows = sum(g.n_lookup_bytes for g in spec.groups if g.component == "head")
    return float(rows * spec.vocab_size)


def mask_bytes(spec: ModelSpec, n_context: int, n_query: int, setting: Setting) -> float:
    """Return the size of attention masks: one for each number of cells that layers look over."""
    cells = {cells_of(x, n_context, setting) for x in spec.layers if x.attention != "none"}
    cells |= {padded(n_context) // x.compress_ratio for x in spec.layers if x.compress_ratio}
    size = 2 if setting.flash_attention else F32_BYTES
    return float(size * n_query * sum(cells))


def input_bytes(spec: ModelSpec, n_query: int) -> float:
    """Return the size of the embeddings that a micro-batch begins with."""
    return float(F32_BYTES * n_query * spec.embedding_length)


def head_bytes(spec: ModelSpec, n_query: int) -> float:
    """Return what the head of a micro-batch keeps at once: logits of all its tokens."""
    return float(F32_BYTES * n_query * (spec.vocab_size + spec.embedding_length))


def body_bytes(spec: ModelSpec, n_context: int, n_query: int, setting: Setting) -> float:
    """Return the most that a feed-forward part or attention keep at once."""
    width = spec.embedding_length
    # Three matrices' inputs and outputs beside the residual stream and its norm.
    wide = [
        3 * g.n_activations / g.n_tensors
        for g in spec.groups
        if g.n_tensors and g.component in {"ffn", "experts", "recurrent"}
    ]
    # Queries and the output beside the residual stream and its norm.
    attention = 4 * width
    if not setting.flash_attention:
        cells = (x.n_head * cells_of(x, n_context, setting) for x in spec.layers)
        attention += max(cells, default=0)
    most = max(2 * width + max(wide, default=0.0), attention)
    return F32_BYTES * n_query * most + mask_bytes(spec, n_context, n_query, setting)
