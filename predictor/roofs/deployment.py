"""A model on several devices under a layout: the resources of one decode step at a concurrency.

Two layouts, as serving engines ship them. `tp`: every matrix divided among all devices, two
all-reduces a layer. `ep`: routed experts divided, all else on every device, each attending to
its own requests (data-parallel attention), a dispatch and a combine for each layer of experts.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tokcast.predictor.cache import cache_bytes
from tokcast.predictor.errors import InputError
from tokcast.predictor.quants import bits_per_weight
from tokcast.predictor.roofs.floor import Floor, floor_of
from tokcast.predictor.roofs.mixers import Mixer, mixers_of
from tokcast.predictor.roofs.resources import Peaks, Resources, positive
from tokcast.predictor.spec import ModelSpec, WeightGroup

LAYOUTS = ("tp", "ep")
ACTIVATION_BYTES = 2
# Tokens are sent to experts in FP8 and come back in BF16, as DeepSeek's DeepEP does.
DISPATCH_BYTES, COMBINE_BYTES = 1, 2
# Kept in 16 bits where the matrices of a release are in 8.
_WIDE = frozenset({"embedding", "head", "router", "norm"})


def stored_as(spec: ModelSpec, type_name: str) -> ModelSpec:
    """Return a model with its matrices in a type, and tables, head and router in 16 bits or it.

    Raises InputError for an unknown type.
    """
    try:
        narrow = bits_per_weight(type_name)
    except (KeyError, ValueError, ZeroDivisionError):
        raise InputError(
            f"weights {type_name!r}: not a known type; expected one such as F8_E4M3, BF16, Q8_0"
        ) from None

    def stored(group: WeightGroup) -> WeightGroup:
        bits = max(narrow, 16.0) if group.component in _WIDE else narrow
        return replace(group, n_bytes=round(group.n_params * bits / 8))

    groups = tuple(map(stored, spec.groups))
    size = sum(g.n_bytes for g in groups)
    return replace(spec, groups=groups, n_bytes=size, file_type=type_name)


@dataclass(frozen=True, slots=True)
class Deployment:
    """A model on `n_devices` alike; `peaks` and `memory_bytes` are one device's.

    `memory_bytes` is what weights and K/V cache may take. Requests have `n_depth` tokens each.
    """

    spec: ModelSpec
    layout: str
    n_devices: int
    n_depth: int
    peaks: Peaks
    memory_bytes: float
    mixers: tuple[Mixer, ...]

    @property
    def weights_bytes(self) -> float:
        """Return the weights on one device."""
        divided = max(1.0 / self.n_devices, self._one_expert)
        experts = divided * sum(g.n_bytes for g in self._divided)
        return self._on_device(g.n_bytes for g in self._whole) + experts

    @property
    def cache_capacity_bytes(self) -> float:
        """Return what the weights leave of one device's memory; negative where they don't fit."""
        return self.memory_bytes - self.weights_bytes

    @property
    def request_bytes(self) -> float:
        """Return what one request keeps on each device that holds it."""
        return sum(m.kept(self.n_depth) / self._shards(m) for m in self.mixers)

    @property
    def n_holding(self) -> int:
        """Return the groups of devices that hold different requests."""
        return self.n_devices if self.layout == "ep" else 1

    @property
    def most_requests(self) -> float:
        """Return the concurrent requests that the memory holds, not rounded down."""
        return max(self.cache_capacity_bytes, 0.0) / self.request_bytes * self.n_holding

    def step(self, n_requests: int) -> Resources:
        """Return what one decode step of so many requests takes of the busiest device."""
        if n_requests < 1:
            raise InputError(f"a batch of {n_requests} requests; expected 1 or more")
        held = math.ceil(n_requests / self.n_holding)
        attended = Resources(
            memory_bytes=held * sum(m.read(self.n_depth) / self._shards(m) for m in self.mixers),
            flops=held
            * sum(m.flops(self.n_depth) for m in self.mixers)
            / (self.n_devices // self.n_holding),
            cache_bytes=held * self.request_bytes,
        )
        return attended + self._multiplied(n_requests, held) + self._exchanged(n_requests, held)

    def floor(self, n_requests: int) -> Floor:
        """Return the floor of one step of so many requests."""
        return floor_of(self.step(n_requests), self.peaks)

    def _multiplied(self, n_requests: int, held: int) -> Resources:
        """Return the weights read and the products done with them."""
        whole = [g for g in self._whole if g.read_fraction]
        moved = self._on_device(g.n_bytes for g in whole)
        flops = self._on_device(2.0 * g.n_matmul_params * held for g in whole)
        for group in self._divided:
            used = group.read_fraction
            share = 1.0 - (1.0 - used) ** n_requests
            moved += group.n_bytes * max(share / self.n_devices, self._one_expert)
            flops += 2.0 * group.n_matmul_params * used * n_requests / self.n_devices
        return Resources(memory_bytes=moved, flops=flops)

    @property
    def _one_expert(self) -> float:
        """Return the least share of the experts that the busiest device has: one a layer."""
        if self.layout == "tp":
            return 0.0
        return 1.0 / max(x.n_expert for x in self.spec.layers)

    def _exchanged(self, n_requests: int, held: int) -> Resources:
        """Return what goes over the network, from and to the busiest device."""
        if self.n_devices == 1:
            return Resources()
        away = (self.n_devices - 1) / self.n_devices
        width, layers = self.spec.embedding_length, self.spec.layers
        if self.layout == "tp":
            # A ring all-reduce sends every number twice.
            n_bytes = 2 * len(layers) * 2 * away * n_requests * width * ACTIVATION_BYTES
            return Resources(network_bytes=n_bytes, network_messages=2.0 * len(layers))
        routed = [x for x in layers if x.n_expert]
        sent = sum(x.n_expert_used for x in routed) * (DISPATCH_BYTES + COMBINE_BYTES)
        return Resources(
            network_bytes=away * held * width * sent, network_messages=2.0 * len(routed)
        )

    @property
    def _divided(self) -> tuple[WeightGroup, ...]:
        """Return the groups that are divided whatever a token picks."""
        return tuple(g for g in self.spec.groups if g.component == "experts")

    @property
    def _whole(self) -> tuple[WeightGroup, ...]:
        return tuple(g for g in self.spec.groups if g.component not in ("experts", "mtp"))

    def _on_device(self, counts: Iterable[float]) -> float:
        """Return what one device has of the groups that aren't experts."""
        return sum(counts) / (self.n_devices if self.layout == "tp" else 1)

    def _shards(self, mixer: Mixer) -> int:
        return min(mixer.n_shards, self.n_devices // self.n_holding)


def deployment(
    spec: ModelSpec,
    layout: str,
    n_devices: int,
    n_depth: int,
    peaks: Peaks,
    memory_bytes: float,
    cache_type: str = "BF16",
) -> Deployment:
    """Return a deployment; raises InputError for one that can't be."""
    if layout not in LAYOUTS:
        raise InputError(f"layout {layout!r}: expected one of {', '.join(LAYOUTS)}")
    if layout == "ep" and not any(x.n_expert for x in spec.layers):
        raise InputError(f"layout ep: {spec.name} has no experts to divide; expected layout tp")
    if n_devices < 1:
        raise InputError(f"{n_devices} devices; expected 1 or more")
    if n_depth < 1:
        raise InputError(f"requests of {n_depth} tokens; expected 1 or more")
    if spec.context_length and n_depth > spec.context_length:
        raise InputError(
            f"requests of {n_depth} tokens: {spec.name} was trained for {spec.context_length};"
            " expected at most that"
        )
    size = cache_bytes(cache_type)
    mixers = tuple(m for layer in spec.layers if layer.has_kv for m in mixers_of(layer, size))
    return Deployment(
        spec, layout, n_devices, n_depth, peaks, positive(memory_bytes, "memory_bytes"), mixers
    )
