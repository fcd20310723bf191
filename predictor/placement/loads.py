"""What each device holds of a placed model, and what a token reads there."""

from collections.abc import Sequence
from dataclasses import dataclass

from tokcast.predictor.placement.inventory import Part
from tokcast.predictor.placement.plan import ROWS, Placement


@dataclass(slots=True)
class DeviceLoad:
    """Weights on one device, in bytes; `active_bytes` are those that a decoded token reads.

    `layers` are the blocks computed there; `has_output` whether the head is.
    """

    weight_bytes: float = 0.0
    active_bytes: float = 0.0
    expert_bytes: float = 0.0
    layers: tuple[int, ...] = ()
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
        load.has_output = placement.layer_devices[-1] == index
    return tuple(loads)


def weight_bytes(placement: Placement) -> list[float]:
    """Return the bytes of weights on each device: what `device_loads` says of them, sooner."""
    held = [0.0] * len(placement.devices)
    copied = is_copied(placement)
    for part, device in zip(placement.parts, placement.part_devices, strict=True):
        if part.is_copy and not copied:
            continue
        if device == ROWS:
            for index, share in enumerate(placement.row_shares):
                held[index] += part.sum.n_bytes * share
        else:
            held[device] += part.sum.n_bytes
    return held


def is_copied(placement: Placement) -> bool:
    """Return whether a tied table is there twice: once as the head on a card of its own memory."""
    head = placement.layer_devices[-1]
    return head != placement.cpu and not placement.devices[head].host.is_unified


def _where(placement: Placement, device: int) -> Sequence[tuple[int, float]]:
    if device != ROWS:
        return ((device, 1.0),)
    return tuple((i, share) for i, share in enumerate(placement.row_shares) if share)


def _add(load: DeviceLoad, part: Part, share: float) -> None:
    n_bytes, active = part.sum.n_bytes * share, part.active_bytes * share
    load.weight_bytes += n_bytes
    load.active_bytes += active
    if part.is_expert:
        load.expert_bytes += n_bytes
