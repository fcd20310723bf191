"""What each device holds of a placed model, and what a token reads there."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tokcast.predictor.placement.inventory import Key, Part
from tokcast.predictor.placement.plan import ROWS, Placement
from tokcast.predictor.spec import ModelSpec, WeightGroup
from tokcast.predictor.weights import Sum, group_of


@dataclass(slots=True)
class DeviceLoad:
    """Weights on one device, in bytes; `active_bytes` are those that a decoded token reads.

    `layers` are the blocks computed there; `has_output` whether the head is.
    """

    weight_bytes: float = 0.0
    active_bytes: float = 0.0
    expert_bytes: float = 0.0
    active_expert_bytes: float = 0.0
    layers: tuple[int, ...] = ()
    kv_layers: tuple[int, ...] = ()
    has_output: bool = False


def device_loads(placement: Placement) -> tuple[DeviceLoad, ...]:
    """Return the load of each device, the processor last."""
    loads = [DeviceLoad() for _ in placement.devices]
    for part, device in zip(placement.parts, placement.part_devices, strict=True):
        if part.is_copy and not is_copied(placement):
            continue
        for index, share in _where(placement, device):
            _add(loads[index], part, share)
    for index, load in enumerate(loads):
        own = range(len(placement.layer_devices) - 1)
        load.layers = tuple(i for i in own if placement.layer_devices[i] == index)
        load.kv_layers = tuple(i for i in own if placement.kv_devices[i] == index)
        load.has_output = placement.layer_devices[-1] == index
    return tuple(loads)


def is_copied(placement: Placement) -> bool:
    """Return whether a tied table is there twice: once as the head on a card of its own memory."""
    head = placement.layer_devices[-1]
    return head != placement.cpu and not placement.devices[head].host.is_unified


def device_spec(placement: Placement, device: int) -> ModelSpec:
    """Return the share of the model that one device computes, as a model of its own.

    Its ledger is the device's work; the ledgers of all devices add up to the whole model's.
    """
    sums: dict[Key, Sum] = {}
    for part, at in zip(placement.parts, placement.part_devices, strict=True):
        if part.is_copy:
            continue
        for index, share in _where(placement, at):
            if index == device:
                sums.setdefault(part.key, Sum()).add(_scaled(part.sum, share))
    groups = tuple(group_of(key, total) for key, total in sorted(sums.items()))
    return replace(placement.spec, groups=groups, layers=_layers(placement, device))


def device_groups(placement: Placement, device: int) -> tuple[WeightGroup, ...]:
    """Return the weights on one device by component and type."""
    return device_spec(placement, device).groups


def _layers(placement: Placement, device: int) -> tuple:  # type: ignore[type-arg]
    return tuple(x for x in placement.spec.layers if placement.kv_devices[x.index] == device)


def _where(placement: Placement, device: int) -> Sequence[tuple[int, float]]:
    if device != ROWS:
        return ((device, 1.0),)
    return tuple((i, share) for i, share in enumerate(placement.row_shares) if share)


def _scaled(total: Sum, share: float) -> Sum:
    if share == 1.0:
        return total
    return Sum(
        round(total.n_params * share),
        round(total.n_bytes * share),
        total.n_tensors,
        round(total.n_matmul_params * share),
        total.n_activations,
        total.n_lookup_bytes,
    )


def _add(load: DeviceLoad, part: Part, share: float) -> None:
    n_bytes, active = part.sum.n_bytes * share, part.active_bytes * share
    load.weight_bytes += n_bytes
    load.active_bytes += active
    if part.is_expert:
        load.expert_bytes += n_bytes
        load.active_expert_bytes += active
