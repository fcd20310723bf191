"""Traffic of attention on a spatial NPU, by where the scores live.

Levels: DRAM, the memory tiles shared by a column (MemTile), and the compute tile's own memory
(tile). Counts are of one head, N queries on N keys of d numbers of e bytes, without a mask; keys
and values are read again for each block of queries.
"""

from dataclasses import dataclass

from tokcast.predictor.roofs.mapping import Traffic


@dataclass(frozen=True, slots=True)
class FlashAttention:
    """The shape: tokens, numbers a head, bytes a number, queries served by one read of K and V."""

    n_tokens: float
    head_length: float
    number_bytes: float
    n_query: float

    @property
    def flops(self) -> float:
        """Return the operations of the two products: 4 N^2 d."""
        return 4 * self.n_tokens**2 * self.head_length

    @property
    def score_bytes(self) -> float:
        """Return the bytes of all scores: N^2 e."""
        return self.n_tokens**2 * self.number_bytes

    @property
    def rows_bytes(self) -> float:
        """Return the bytes of one of Q, K, V and the output: N d e."""
        return self.n_tokens * self.head_length * self.number_bytes

    @property
    def operand_bytes(self) -> float:
        """Return Q and the output once, K and V once for each block of queries."""
        n_blocks = max(self.n_tokens / self.n_query, 1.0)
        return 2 * self.rows_bytes + 2 * self.rows_bytes * n_blocks


def mappings_of(a: FlashAttention) -> tuple[Traffic, ...]:
    """Return the mappings from least to most fused.

    `separate` writes scores and probabilities to DRAM and reads each again; `two hops` passes
    both through the MemTiles; `one hop` keeps one of them in the tile; `fused` keeps both there,
    where they are written and read either way.
    """
    in_tile = 4 * a.score_bytes
    operands = a.operand_bytes

    def mapping(name: str, dram: float, memtile: float) -> Traffic:
        return Traffic(name, a.flops, {"DRAM": dram, "MemTile": memtile, "tile": in_tile})

    return (
        mapping("separate", 4 * a.score_bytes + operands, 4 * a.score_bytes + operands),
        mapping("two hops", 4 * a.rows_bytes, 4 * a.score_bytes + operands),
        mapping("one hop", 4 * a.rows_bytes, 2 * a.score_bytes + operands),
        mapping("fused", 4 * a.rows_bytes, operands),
    )
