"""A batch's time as the largest of a few sums, and each request's share of it.

A pass is bound by memory or by arithmetic, whichever takes longer; each of the two is a sum of
costs in proportion to bytes and operations (LLMVisor's form: piecewise linear, the maximum of
affine functions). The sum that is largest divides the time: a request pays for what it adds to
it, and what is there whoever takes part is paid in equal parts. For a cost c + sum of f_i those
are its Shapley values.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import mul
from typing import Literal, NamedTuple

from tokcast.predictor.batch import BLOCK_TOKENS, FEATURES, TILE_TOKENS, BatchShape, Request, blocks
from tokcast.predictor.errors import InputError

Phase = Literal["decode", "reading"]
PHASES: tuple[Phase, ...] = ("decode", "reading")
# A window's layers: each request's pairs and rows, operations of a pair, bytes of a row.
_Span = tuple[Sequence[float], Sequence[float], float, float]


@dataclass(frozen=True, slots=True)
class Piece:
    """One affine function: seconds for each unit of FEATURES, none below 0.

    Raises InputError for a number of costs other than that of FEATURES, or one below 0.
    """

    costs: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.costs) != len(FEATURES) or not all(0 <= c < math.inf for c in self.costs):
            raise InputError(f"costs {self.costs}: expected {len(FEATURES)} of 0 or more")

    def seconds(self, features: Sequence[float]) -> float:
        """Return the function's value."""
        return sum(c * x for c, x in zip(self.costs, features, strict=True))


@dataclass(frozen=True, slots=True)
class Shares:
    """A batch's seconds and each request's part of them; `piece` tells which function was largest.

    The parts add up to `seconds` exactly, in whatever order.
    """

    seconds: float
    parts: tuple[float, ...]
    piece: int


@dataclass(frozen=True, slots=True)
class BatchTimes:
    """Fitted functions of one model on one host, by phase: all generate, or somebody reads."""

    shape: BatchShape
    pieces: Mapping[Phase, tuple[Piece, ...]]

    def seconds(self, requests: Sequence[Request], n_held: int = 0) -> float:
        """Return a batch's seconds; raises InputError as `BatchShape.extent` does."""
        touched = blocks(requests, sum(r.n_new for r in requests))
        return self._largest(requests, n_held, self._spans(requests), touched).seconds

    def shares(
        self, requests: Sequence[Request], n_held: int = 0, measured_s: float | None = None
    ) -> Shares:
        """Return what each request has of a batch's seconds, of those measured where given.

        Raises InputError as `BatchShape.extent` does, and for a measured time of no length.
        """
        spans = self._spans(requests)
        touched = blocks(requests, sum([r.n_new for r in requests]))
        best = self._largest(requests, n_held, spans, touched)
        if best.each_new == 1:
            parts = [best.token + best.each] * len(requests)
        else:
            parts = [r.n_new * best.token + best.each for r in requests]
        for pairs, rows, f, b in spans:
            pair, row = best.pair * f, best.byte * b
            if pairs is rows:
                cost = pair + row
                parts = [x + n * cost for x, n in zip(parts, rows, strict=True)]
            else:
                block = best.block * f
                rest = zip(parts, pairs, rows, touched, strict=True)
                parts = [x + n * pair + m * (row + q * block) for x, n, m, q in rest]
        seconds = best.seconds if measured_s is None else measured_s
        return Shares(seconds, exact_parts(parts, seconds), best.number)

    def _spans(self, requests: Sequence[Request]) -> list[_Span]:
        return [
            (*self.shape.pairs_and_rows(requests, window), pair_flops, row_bytes)
            for window, pair_flops, row_bytes in self.shape.spans
        ]

    def _largest(
        self, requests: Sequence[Request], n_held: int, spans: Sequence[_Span], touched: list[int]
    ) -> "_Best":
        """Return the function that is largest, its costs added up by what a request has of them."""
        shape, n = self.shape, len(requests)
        n_new, n_cells = shape.extent(requests, n_held)
        flops = sum([sum(pairs) * f for pairs, _, f, _ in spans])
        n_bytes = sum([sum(rows) * b for _, rows, _, b in spans])
        met = 0.0
        if n_new >= BLOCK_TOKENS:
            met = sum([sum(map(mul, rows, touched)) * f for _, rows, f, _ in spans])
        n_rest = n_new % TILE_TOKENS
        read_tile = shape.weight_bytes if n_new > n_rest else 0.0
        read_rest = shape.weight_bytes if n_rest else 0.0
        extra = shape.expert_bytes(n_new) if shape.experts else 0.0
        best: _Best | None = None
        pieces = self.pieces.get("decode" if n_new == n else "reading", ())
        for number, piece in enumerate(pieces):
            once, tile_byte, rest_byte, tile, rest, head, pair, block, byte, cell, expert = (
                piece.costs
            )
            once += read_tile * tile_byte + read_rest * rest_byte
            per_flop = tile + (rest - tile) * n_rest / n_new
            token = per_flop * shape.flops_per_token + cell * n_cells + expert * extra / n_new
            each = once / n + head * shape.head_flops
            seconds = token * n_new + each * n + pair * flops + block * met + byte * n_bytes
            if best is None or seconds > best.seconds:
                best = _Best(seconds, number, token, each, pair, block, byte, n_new / n)
        if best is None:
            raise InputError(
                f"no fitted times of a batch with requests that are {phase_of(requests)}; expected"
                " measured batches of that kind"
            )
        return best


class _Best(NamedTuple):
    """The largest function: its seconds, and costs of a token, a request, pairs and a byte."""

    seconds: float
    number: int
    token: float
    each: float
    pair: float
    block: float
    byte: float
    each_new: float


def phase_of(requests: Sequence[Request]) -> Phase:
    """Return whether all requests generate one token, or somebody reads a prompt."""
    return "decode" if sum([r.n_new for r in requests]) == len(requests) else "reading"


def exact_parts(weights: Sequence[float], total: float) -> tuple[float, ...]:
    """Return parts of a total in proportion to weights, that add up to it exactly in any order.

    All are whole multiples of the spacing of floating-point numbers at the total, so that no sum of
    some of them is rounded. Raises InputError for weights that are not above 0 together.
    """
    weight = sum(weights)
    if not 0 < total < math.inf or not 0 < weight < math.inf:
        raise InputError(
            f"{total} s to divide by weights of {weight}: expected a time and weights above 0"
        )
    step = math.ulp(total)
    per_weight = total / weight / step
    counts = [int(w * per_weight) for w in weights]
    rest = int(total / step) - sum(counts)
    counts[weights.index(max(weights))] += rest
    return tuple([n * step for n in counts])
