"""How a token travels between devices: the order in which a placed model is computed."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from tokcast.predictor.placement.inventory import INPUT
from tokcast.predictor.placement.plan import ROWS, Placement

# Components in the order in which a block computes them.
_FIRST = frozenset({"attention", "recurrent", "norm", "other"})


@dataclass(frozen=True, slots=True)
class Route:
    """Hand-overs of one pass through the model.

    `n_crossings` are those between a card and the processor, `n_hops` those between cards,
    `n_shared` the matrices whose rows several cards share, after which they wait for each other.
    """

    n_crossings: int
    n_hops: int
    n_shared: float


def route(placement: Placement, is_streamed: bool) -> Route:
    """Return the hand-overs of a pass; `is_streamed`: cards compute what the processor keeps."""
    n_crossings = n_hops = 0
    for a, b in pairwise(_stops(placement, is_streamed)):
        if a != b:
            if placement.cpu in (a, b):
                n_crossings += 1
            else:
                n_hops += 1
    shared = 0.0
    if placement.split_mode == "row":
        pairs = zip(placement.parts, placement.part_devices, strict=True)
        shared = sum(part.sum.n_tensors for part, at in pairs if at == ROWS)
    return Route(n_crossings, n_hops, shared)


def _stops(placement: Placement, is_streamed: bool) -> Iterator[int]:
    """Yield the devices in the order in which they compute."""
    n_layer = len(placement.layer_devices) - 1
    early: list[set[int]] = [set() for _ in range(n_layer + 1)]
    late: list[set[int]] = [set() for _ in range(n_layer + 1)]
    for part, at in zip(placement.parts, placement.part_devices, strict=True):
        if part.layer != INPUT:
            (early if part.key[0] in _FIRST else late)[part.layer].add(at)
    for i, home in enumerate(placement.layer_devices):
        for device in (*_ordered(early[i], home), *_kept(placement, i), *_ordered(late[i], home)):
            if not is_streamed or device != placement.cpu:
                yield device


def _ordered(devices: set[int], home: int) -> list[int]:
    """Return a block's devices, its own first; shared rows are multiplied there too."""
    if len(devices) == 1 and ROWS not in devices:
        return list(devices)
    others = sorted(devices - {home, ROWS})
    return [home, *others] if devices & {home, ROWS} else others


def _kept(placement: Placement, layer: int) -> list[int]:
    """Return the device of a layer's cache, where it is another than the layer's own."""
    if layer >= len(placement.kv_devices):
        return []
    kept = placement.kv_devices[layer]
    home = placement.layer_devices[layer]
    return [kept, home] if kept != home else []
