"""Which batches are measured: requests of mixed lengths that share one pass of the model."""

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tokcast.predictor.errors import InputError

Kind = Literal["decode", "prefill", "mixed"]

# Shortest and longest cached prefix that a slot is given.
SHORTEST = 16
# Tokens that a prefill reads together, at least and at most.
FEWEST_READ, MOST_READ = 16, 256
# The most requests that read at once.
MOST_READING = 6


@dataclass(frozen=True, slots=True)
class Batch:
    """One pass: the slots that take part, each with its new tokens."""

    kind: Kind
    parts: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Round:
    """Cached tokens by slot, and the batches run on top of them."""

    number: int
    cached: tuple[int, ...]
    batches: tuple[Batch, ...]


@dataclass(frozen=True, slots=True)
class Size:
    """How large the rounds are: slots, cells they share, the longest prefix, batches of a kind."""

    n_slots: int = 16
    n_cells: int = 8192
    longest: int = 2048
    n_decode: int = 12
    n_prefill: int = 6
    n_mixed: int = 4


def round_of(size: Size, number: int, seed: int) -> Round:
    """Return one round, the same for the same seed and number.

    Raises InputError where the cells can't hold every slot's shortest prefix and its reading.
    """
    room = size.n_cells - MOST_READ - size.n_slots
    if size.n_slots < 1 or size.n_slots * SHORTEST > room or size.longest < SHORTEST:
        raise InputError(
            f"{size.n_slots} slots in {size.n_cells} cells: expected 1 or more slots, and"
            f" {SHORTEST} cells for each beside {MOST_READ}"
        )
    draw = random.Random(f"{seed}/{number}")
    cached = [_log_uniform(draw, SHORTEST, size.longest) for _ in range(size.n_slots)]
    while sum(cached) > room:
        cached[cached.index(max(cached))] //= 2
    batches = [_decode(draw, size.n_slots) for _ in range(size.n_decode)]
    batches += [_prefill(draw, size.n_slots) for _ in range(size.n_prefill)]
    batches += [_mixed(draw, size.n_slots) for _ in range(size.n_mixed)]
    return Round(number, tuple(cached), tuple(batches))


def from_json(data: Mapping[str, Any]) -> Round:
    """Return a round from its JSON."""
    batches = (Batch(b["kind"], tuple((s, n) for s, n in b["parts"])) for b in data["batches"])
    return Round(data["number"], tuple(data["cached"]), tuple(batches))


def _log_uniform(draw: random.Random, low: int, high: int) -> int:
    return round(math.exp(draw.uniform(math.log(low), math.log(high))))


def _slots(draw: random.Random, n_slots: int, most: int) -> list[int]:
    return sorted(draw.sample(range(n_slots), draw.randint(1, min(most, n_slots))))


def _decode(draw: random.Random, n_slots: int) -> Batch:
    return Batch("decode", tuple((slot, 1) for slot in _slots(draw, n_slots, n_slots)))


def _prefill(draw: random.Random, n_slots: int) -> Batch:
    slots = _slots(draw, n_slots, MOST_READING)
    weights = [draw.expovariate(1.0) for _ in slots]
    tokens = max(_log_uniform(draw, FEWEST_READ, MOST_READ), 2 * len(slots))
    left = tokens - 2 * len(slots)
    return Batch(
        "prefill",
        tuple((s, 2 + int(left * w / sum(weights))) for s, w in zip(slots, weights, strict=True)),
    )


def _mixed(draw: random.Random, n_slots: int) -> Batch:
    """Return a chunk of one prompt read beside others' generation."""
    slots = _slots(draw, n_slots, n_slots)
    reader = draw.choice(slots)
    n_read = _log_uniform(draw, FEWEST_READ, MOST_READ // 2)
    return Batch("mixed", tuple((s, n_read if s == reader else 1) for s in slots))
