"""Memory a model needs at a context length, and the longest context that fits.

The form is llama.cpp's (MIT, commit 0c1e570) with every layer on one device and one
sequence; `docs/ledger.md` derives it.
"""

from dataclasses import dataclass

from tokcast.predictor.cache import cache_bytes, k_row, v_row
from tokcast.predictor.errors import InputError
from tokcast.predictor.ledger import F32_BYTES
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
class _Setting:
    type_k: str
    type_v: str
    n_ubatch: int
    flash_attention: bool
    swa_full: bool


def memory(
    spec: ModelSpec,
    n_context: int,
    type_k: str = "F16",
    type_v: str = "F16",
    n_ubatch: int = 512,
    flash_attention: bool = True,
    swa_full: bool = False,
) -> MemoryUse:
    """Return the bytes needed for `n_context` positions in micro-batches of `n_ubatch`.

    `swa_full` keeps all positions of sliding layers, as llama.cpp's `--swa-full` does.
    Raises InputError for lengths below 1 or beyond 32 bits and for unknown cache types.
    """
    setting = _Setting(type_k, type_v, n_ubatch, flash_attention, swa_full)
    return _memory(spec, n_context, setting)


def largest_context(
    spec: ModelSpec,
    available_bytes: float,
    type_k: str = "F16",
    type_v: str = "F16",
    n_ubatch: int = 512,
    flash_attention: bool = True,
    swa_full: bool = False,
    is_unified: bool = False,
) -> int:
    """Return the most positions that fit, 0 if not even one block of them does.

    At most the length the model was trained for, where the header tells. `available_bytes`
    are a card's own or, with `is_unified`, those of a memory shared with the processor.
    Raises InputError as `memory` does.
    """
    setting = _Setting(type_k, type_v, n_ubatch, flash_attention, swa_full)
    limit = min(spec.context_length or LONGEST, LONGEST)
    fits, too_many = 0, padded(limit) // PADDING + 1
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        use = _memory(spec, middle * PADDING, setting)
        if (use.unified_bytes if is_unified else use.device_bytes) <= available_bytes:
            fits = middle
        else:
            too_many = middle
    return min(fits * PADDING, limit)


def _memory(spec: ModelSpec, n_context: int, setting: _Setting) -> MemoryUse:
    for name, value in (("n_context", n_context), ("n_ubatch", setting.n_ubatch)):
        if not 1 <= value <= LONGEST:
            raise InputError(f"{name} is {value}, expected 1 to {LONGEST}")
    cells = padded(n_context)
    loaded = [g for g in spec.groups if g.component != "mtp"]
    weights = float(sum(g.n_bytes for g in loaded))
    on_host = float(sum(g.n_bytes for g in loaded if g.component == "embedding"))
    n_query = min(setting.n_ubatch, cells)
    masks = _mask_bytes(spec, cells, n_query, setting)
    return MemoryUse(
        n_context=cells,
        weights_bytes=weights,
        weights_device_bytes=weights - on_host,
        weights_host_bytes=on_host + _tied_table_bytes(spec),
        kv_bytes=_kv_bytes(spec, cells, setting),
        recurrent_bytes=float(F32_BYTES * sum(x.state_elements for x in spec.layers)),
        compute_device_bytes=_compute_bytes(spec, cells, n_query, setting),
        compute_host_bytes=float(F32_BYTES * n_query * spec.embedding_length) + masks,
    )


def padded(n: int) -> int:
    """Return a number of positions rounded up to whole blocks."""
    return -(-n // PADDING) * PADDING


def _cells_of(layer: Layer, n_cell: int, setting: _Setting) -> int:
    """Return the positions a layer's cache holds: a sliding one its window and a micro-batch."""
    if layer.window is None or setting.swa_full:
        return n_cell
    return padded(min(n_cell, layer.window + setting.n_ubatch))


def _kv_bytes(spec: ModelSpec, n_cell: int, setting: _Setting) -> float:
    k_size, v_size = cache_bytes(setting.type_k), cache_bytes(setting.type_v)
    caching = [x for x in spec.layers if x.attention != "none" and x.has_kv]
    widest = max((v_row(x) for x in caching), default=0)
    kept = 0.0
    for layer in caching:
        values = v_row(layer)
        # Without flash attention values are kept transposed, all layers as wide as the widest.
        if values and not setting.flash_attention:
            values = widest
        row = k_row(layer) * k_size + values * v_size
        kept += row * _cells_of(layer, n_cell, setting)
    return kept


def _tied_table_bytes(spec: ModelSpec) -> float:
    rows = sum(g.n_lookup_bytes for g in spec.groups if g.component == "head")
    return float(rows * spec.vocab_size)


def _attention_cells(spec: ModelSpec, n_cell: int, setting: _Setting) -> set[int]:
    return {_cells_of(x, n_cell, setting) for x in spec.layers if x.attention != "none"}


def _mask_bytes(spec: ModelSpec, n_cell: int, n_query: int, setting: _Setting) -> float:
    """Return the masks' size: one for full layers, one for sliding ones."""
    size = 2 if setting.flash_attention else F32_BYTES
    return float(size * n_query * sum(_attention_cells(spec, n_cell, setting)))


def _compute_bytes(spec: ModelSpec, n_cell: int, n_query: int, setting: _Setting) -> float:
    """Return the most that the head, a feed-forward part or attention keep at once."""
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
        attention += max((x.n_head * _cells_of(x, n_cell, setting) for x in spec.layers), default=0)
    masks = _mask_bytes(spec, n_cell, n_query, setting)
    row_bytes = F32_BYTES * n_query
    return max(
        float(row_bytes * (spec.vocab_size + width)),
        row_bytes * (2 * width + max(wide, default=0.0)) + masks,
        row_bytes * attention + masks,
    )
