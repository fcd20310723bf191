"""Which wall a deployment meets first as the number of concurrent requests grows."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tokcast.predictor.catalogue import header
from tokcast.predictor.model import model_spec
from tokcast.predictor.roofs.deployment import Deployment, deployment, stored_as
from tokcast.predictor.roofs.floor import Floor
from tokcast.predictor.roofs.resources import Peaks

CAPACITY = "K/V capacity"
# Concurrency is looked at so many times a doubling before a change is bisected.
_PER_DOUBLING = 8
# A deployment without a capacity wall is looked at up to here.
LARGEST = 2**16


@dataclass(frozen=True, slots=True)
class Wall:
    """A resource that binds from a concurrency on; the first one of a deployment binds at 1."""

    resource: str
    n_requests: int


def walls(d: Deployment) -> tuple[Wall, ...]:
    """Return the resources that bind one after another, the K/V capacity last.

    Empty where the weights don't leave room for one request.
    """
    most = math.floor(min(d.most_requests, LARGEST))
    if most < 1:
        return ()
    found = [Wall(d.floor(1).binding, 1)]
    previous = 1
    for n in _grid(most):
        now = d.floor(n).binding
        if now != found[-1].resource:
            found.append(Wall(now, _change(d, previous, n)))
        previous = n
    if d.most_requests < LARGEST:
        found.append(Wall(CAPACITY, most))
    return tuple(found)


def _grid(most: int) -> Iterator[int]:
    last = 1
    for i in range(1, _PER_DOUBLING * most.bit_length() + 1):
        n = min(math.ceil(2 ** (i / _PER_DOUBLING)), most)
        if n > last:
            yield n
        last = n


def _change(d: Deployment, low: int, high: int) -> int:
    """Return the first concurrency after `low` that is bound as `high` is."""
    after = d.floor(high).binding
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if d.floor(middle).binding == after else (middle, high)
    return high


def crossover(one: Deployment, other: Deployment) -> int | None:
    """Return the least concurrency at which `other` serves a step faster, or alone can.

    Compared at the optimistic floors. None where it never does.
    """
    most = math.floor(min(other.most_requests, LARGEST))
    for n in (1, *_grid(most)) if most >= 1 else ():
        if n > one.most_requests or _faster(other, one, n):
            low = max(n // 2, 1)
            return next(
                i for i in range(low, n + 1) if i > one.most_requests or _faster(other, one, i)
            )
    return None


def _faster(a: Deployment, b: Deployment, n_requests: int) -> bool:
    return a.floor(n_requests).optimistic < b.floor(n_requests).optimistic


def plan(
    model: str,
    layout: str,
    n_devices: int,
    n_depth: int,
    bytes_per_s: float,
    flops_per_s: float,
    memory_bytes: float,
    *,
    usable: float = 1.0,
    weights: str = "F8_E4M3",
    cache_type: str = "BF16",
    network_bytes_per_s: float = math.inf,
    message_seconds: float = 0.0,
) -> Deployment:
    """Return a deployment of a model of the catalogue from plain numbers, in SI units.

    Raises InputError for an unknown model and as `deployment` does.
    """
    spec = stored_as(model_spec(header(model, "Q8_0")), weights)
    peaks = Peaks(bytes_per_s, flops_per_s, network_bytes_per_s, message_seconds)
    room = usable * memory_bytes
    return deployment(spec, layout, n_devices, n_depth, peaks, room, cache_type)


def single_stream_ratio(slower: str, faster: str, pick: str = "optimistic", **common: Any) -> float:
    """Return how many times longer a lone request's step takes under one layout than another.

    `pick` is the floor compared, optimistic or pessimistic; the rest is as for `plan`.
    """
    times = {
        layout: float(getattr(plan(layout=layout, **common).floor(1), pick))
        for layout in (slower, faster)
    }
    return times[slower] / times[faster]


def weight_traffic_ratio(slower: str, faster: str, n_requests: int, **common: Any) -> float:
    """Return how many times more bytes of weights and cache one layout moves at a batch."""
    moved = {
        layout: plan(layout=layout, **common).step(n_requests).memory_bytes
        for layout in (slower, faster)
    }
    return moved[slower] / moved[faster]


def rates(floor: Floor, n_requests: int) -> Mapping[str, float]:
    """Return tokens/s of all requests at the optimistic and the pessimistic floor."""
    return {
        "optimistic": n_requests / floor.optimistic,
        "pessimistic": n_requests / floor.pessimistic,
    }
