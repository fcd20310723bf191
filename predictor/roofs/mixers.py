"""What a layer keeps and reads of the sequence: one declaration for each variant.

A new variant of attention or of a state-space layer enters by declaring one class here and
naming it in `mixers_of`; nothing else has to know of it.
"""

from dataclasses import dataclass
from typing import Protocol

from tokcast.predictor.cache import far_row, k_row, near_row, v_row
from tokcast.predictor.ledger import F32_BYTES, STATE_FLOPS
from tokcast.predictor.spec import Layer

# DeepSeek-V3.2's index_topk: the positions that its sparse attention reads of all it keeps.
SPARSE_TOP_K = 2048
# Its indexer's keys are kept in FP8 with one F32 scale for 128 of them.
INDEX_BYTES = 1 + 4 / 128


class Mixer(Protocol):
    """What one layer does with one sequence, for one token at a depth.

    `kept` and `read` are bytes, `flops` operations; `n_shards` is how many devices can divide
    what is kept among them, 1 where each needs all of it.
    """

    @property
    def n_shards(self) -> int:
        """Return the devices that can share what is kept."""

    def kept(self, n_depth: int) -> float:
        """Return the bytes kept of a sequence."""

    def read(self, n_depth: int) -> float:
        """Return the bytes read for one token."""

    def flops(self, n_depth: int) -> float:
        """Return the operations of one token."""


@dataclass(frozen=True, slots=True)
class GroupedAttention:
    """Keys and values by heads, all positions or a window: divided by heads."""

    layer: Layer
    number_bytes: float

    @property
    def n_shards(self) -> int:
        """Return the key heads."""
        return max(self.layer.n_head_kv, 1)

    def kept(self, n_depth: int) -> float:
        """Return the rows of the positions seen."""
        return self._seen(n_depth) * (k_row(self.layer) + v_row(self.layer)) * self.number_bytes

    def read(self, n_depth: int) -> float:
        """Return what is kept."""
        return self.kept(n_depth)

    def flops(self, n_depth: int) -> float:
        """Return two products with every position seen."""
        x = self.layer
        return 2.0 * self._seen(n_depth) * x.n_head * (x.key_length + x.value_length)

    def _seen(self, n_depth: int) -> int:
        return n_depth if self.layer.window is None else min(n_depth, self.layer.window)


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """One compressed row a position that all heads need: every device keeps all of it."""

    layer: Layer
    number_bytes: float
    n_shards: int = 1

    def kept(self, n_depth: int) -> float:
        """Return one row a position."""
        return n_depth * self.layer.key_length * self.number_bytes

    def read(self, n_depth: int) -> float:
        """Return what is kept."""
        return self.kept(n_depth)

    def flops(self, n_depth: int) -> float:
        """Return two products with every position, in the compressed width."""
        x = self.layer
        return 2.0 * n_depth * x.n_head * (x.key_length + x.value_length)


@dataclass(frozen=True, slots=True)
class SparseLatentAttention:
    """Latent attention that reads the positions an indexer picks, and keeps them all.

    The indexer's own keys are kept and read whole.
    """

    layer: Layer
    number_bytes: float
    n_shards: int = 1

    def kept(self, n_depth: int) -> float:
        """Return one row a position and its index key."""
        return n_depth * (self.layer.key_length * self.number_bytes + self._index_bytes)

    def read(self, n_depth: int) -> float:
        """Return the rows picked and all index keys."""
        picked = min(n_depth, SPARSE_TOP_K) * self.layer.key_length * self.number_bytes
        return picked + n_depth * self._index_bytes

    def flops(self, n_depth: int) -> float:
        """Return the products with the rows picked and with all index keys."""
        x = self.layer
        picked = min(n_depth, SPARSE_TOP_K) * x.n_head * (x.key_length + x.value_length)
        return 2.0 * (picked + n_depth * x.n_index_head * x.index_length)

    @property
    def _index_bytes(self) -> float:
        return self.layer.index_length * INDEX_BYTES


@dataclass(frozen=True, slots=True)
class CompressedAttention:
    """A window of rows beside rows that stand for several positions each (DeepSeek V4)."""

    layer: Layer
    number_bytes: float
    n_shards: int = 1

    def kept(self, n_depth: int) -> float:
        """Return the window's rows and the compressed ones, the indexer's included."""
        near = min(n_depth, self.layer.window or n_depth) * near_row(self.layer)
        return (near + n_depth * far_row(self.layer)) * self.number_bytes

    def read(self, n_depth: int) -> float:
        """Return all that is kept: rows are copied together before any is picked."""
        return self.kept(n_depth)

    def flops(self, n_depth: int) -> float:
        """Return the products with the window, the rows picked and all index keys."""
        x = self.layer
        n_seen = float(min(n_depth, x.window or n_depth))
        if x.compress_ratio:
            n_seen += min(n_depth, x.n_picked or n_depth) / x.compress_ratio
        indexed = n_depth * x.n_index_head * x.index_length / max(x.compress_ratio, 1)
        return 2.0 * (n_seen * x.n_head * (x.key_length + x.value_length) + indexed)


@dataclass(frozen=True, slots=True)
class Recurrence:
    """A state of fixed size, read and written for every token: divided by its heads."""

    layer: Layer
    n_shards: int = 1024

    def kept(self, n_depth: int) -> float:
        """Return the state, whatever the depth."""
        return float(F32_BYTES * self.layer.state_elements)

    def read(self, n_depth: int) -> float:
        """Return the state, read and written."""
        return 2 * self.kept(n_depth)

    def flops(self, n_depth: int) -> float:
        """Return the operations on every number of the state."""
        return float(STATE_FLOPS[self.layer.mixer] * self.layer.state_elements)


def mixers_of(layer: Layer, number_bytes: float) -> tuple[Mixer, ...]:
    """Return the mixers of a layer that keeps numbers of so many bytes; a hybrid has two."""
    found: list[Mixer] = []
    if layer.state_elements:
        found.append(Recurrence(layer))
    if layer.attention == "mla" and (layer.compress_ratio or layer.window):
        found.append(CompressedAttention(layer, number_bytes))
    elif layer.attention == "mla":
        sparse = bool(layer.index_length)
        found.append((SparseLatentAttention if sparse else LatentAttention)(layer, number_bytes))
    elif layer.attention != "none":
        found.append(GroupedAttention(layer, number_bytes))
    return tuple(found)
