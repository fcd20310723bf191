"""Requests that share one pass of the model, and what each of them adds to it.

Every figure is proportional to operations or to bytes moved, and a request's add up to the
batch's, so that a cost linear in them can be divided among requests.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul

from tokcast.predictor.cache import capped_sum
from tokcast.predictor.errors import InputError
from tokcast.predictor.ledger import LedgerPlan, compile_ledger
from tokcast.predictor.memory import padded
from tokcast.predictor.spec import ModelSpec

# llama.cpp's repacked matrix products on a processor take so many tokens at once, the rest singly.
TILE_TOKENS = 4
# From so many new tokens on, its attention takes queries in blocks of as many, and each block goes
# over every row of all sequences that have a query in it.
BLOCK_TOKENS = 64

# What of a batch enters its time, in this order: the pass itself; weights read for its tiles of
# tokens and again for those that fill none; operations on weights for either; operations on the
# output head, of attention, and of attention in blocks of queries; bytes of keys and values; cache
# cells looked over; bytes of experts beyond what one token picks.
FEATURES = (
    "pass",
    "tile_read",
    "rest_read",
    "tile_flops",
    "rest_flops",
    "head_flops",
    "pair_flops",
    "block_flops",
    "kv_bytes",
    "cells",
    "expert_bytes",
)


@dataclass(frozen=True, slots=True)
class Request:
    """One request's part of a pass: new tokens on top of those in its cache.

    Raises InputError for a part without new tokens or with a negative number of cached ones.
    """

    n_new: int
    n_past: int = 0

    def __post_init__(self) -> None:
        if self.n_new < 1 or self.n_past < 0:
            raise InputError(
                f"a request of {self.n_new} new tokens on {self.n_past}: expected 1 or more on 0"
                " or more"
            )


@dataclass(frozen=True, slots=True)
class BatchShape:
    """What a model makes of a request's tokens; made by `batch_shape`.

    `spans` has, for each window, operations of a (query, key) pair and bytes of a cached row.
    `experts` are pairs of a group's bytes and the share of it that one token reads.
    """

    weight_bytes: float
    flops_per_token: float
    head_flops: float
    spans: tuple[tuple[float, float, float], ...]
    experts: tuple[tuple[float, float], ...]
    n_context: int | None

    def pairs_and_rows(
        self, requests: Sequence[Request], window: float
    ) -> tuple[Sequence[float], Sequence[float]]:
        """Return each request's (query, key) pairs and cached rows read by layers of a window."""
        if sum([r.n_new for r in requests]) == len(requests):
            rows: list[float] = [r.n_past + 1 for r in requests]
            if window < math.inf:
                rows = [row if row < window else window for row in rows]
            return rows, rows
        lengths = [(r.n_new, r.n_past) for r in requests]
        if window == math.inf:
            # Query t of n sees what is cached, those before it and itself.
            return (
                [n * past + n * (n + 1) / 2 for n, past in lengths],
                [n + past for n, past in lengths],
            )
        pairs = [
            (past + 1 if past < window else window)
            if n == 1
            else capped_sum(past + 1, 1, n, window)
            for n, past in lengths
        ]
        return pairs, [past + n if past < window else window + n - 1 for n, past in lengths]

    def expert_bytes(self, n_new: int) -> float:
        """Return the experts' bytes that so many tokens read beyond those of one."""
        return sum(
            size * (1 - (1 - share) ** n_new - share) for size, share in self.experts if n_new
        )

    def features(self, requests: Sequence[Request], n_held: int = 0) -> tuple[float, ...]:
        """Return a batch's figures in the order of FEATURES; raises InputError as `extent` does.

        `n_held` are the cells in use before, those of requests outside the batch included.
        """
        n_new, n_cells = self.extent(requests, n_held)
        touched = blocks(requests, n_new)
        flops = block_flops = n_bytes = 0.0
        for window, pair_flops, row_bytes in self.spans:
            pairs, rows = self.pairs_and_rows(requests, window)
            flops += sum(pairs) * pair_flops
            block_flops += sum(map(mul, rows, touched)) * pair_flops
            n_bytes += sum(rows) * row_bytes
        n_rest = n_new % TILE_TOKENS
        return (
            1.0,
            self.weight_bytes * (n_new > n_rest),
            self.weight_bytes * (n_rest > 0),
            self.flops_per_token * (n_new - n_rest),
            self.flops_per_token * n_rest,
            self.head_flops * len(requests),
            flops,
            block_flops,
            n_bytes,
            float(n_new * n_cells),
            self.expert_bytes(n_new),
        )

    def extent(self, requests: Sequence[Request], n_held: int = 0) -> tuple[int, int]:
        """Return a batch's new tokens, and the cache cells that each of them looks over.

        A unified cache is looked over in whole blocks as far as it is used, whoever's cells they
        are. Raises InputError for a batch of none and for a request beyond the model's context.
        """
        ends = [r.n_past + r.n_new for r in requests]
        if not ends:
            raise InputError("a batch of no request: expected one at least")
        if self.n_context and max(ends) > self.n_context:
            raise InputError(
                f"a request ends at {max(ends)} tokens, but the model has a context of"
                f" {self.n_context}; expected shorter ones"
            )
        n_new = sum([r.n_new for r in requests])
        return n_new, padded(max(n_held, sum(ends) - n_new) + n_new)


def blocks(requests: Sequence[Request], n_new: int) -> list[int]:
    """Return the queries that each request's rows are met with in blocks; 0 for a small batch."""
    if n_new < BLOCK_TOKENS:
        return [0] * len(requests)
    found, start = [], 0
    for r in requests:
        end = start + r.n_new
        n_blocks = (end - 1) // BLOCK_TOKENS - start // BLOCK_TOKENS + 1
        found.append(BLOCK_TOKENS * n_blocks)
        start = end
    return found


def batch_shape(spec: ModelSpec, type_k: str = "F16", type_v: str = "F16") -> BatchShape:
    """Return a model's figures; raises InputError for an unknown cache type."""
    plan: LedgerPlan = compile_ledger(spec, type_k, type_v)
    works = plan.fixed(1, 1)
    return BatchShape(
        weight_bytes=float(sum(g.n_bytes * g.read_fraction for g in plan.groups)),
        flops_per_token=sum(w.flops for w in works if w.component != "head"),
        head_flops=sum(w.flops for w in works if w.component == "head"),
        spans=tuple((s.window, s.k_flops + s.v_flops, s.k_bytes + s.v_bytes) for s in plan.spans),
        experts=tuple(
            (float(g.n_bytes), g.read_fraction) for g in plan.groups if 0 < g.read_fraction < 1
        ),
        n_context=spec.context_length,
    )
