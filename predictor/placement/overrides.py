"""What patterns name: the device that tensors go to, and what has no effect."""

from collections.abc import Sequence

from tokcast.predictor.errors import InputError
from tokcast.predictor.placement.devices import Device
from tokcast.predictor.placement.inventory import Inventory, Part


def device_named(name: str, devices: Sequence[Device]) -> int:
    """Return the index of the device that `-ot` names; raises InputError without one."""
    wanted = name.strip().lower()
    for device in devices:
        if wanted in (device.name.lower(), f"gpu{device.index}" if device.kind == "gpu" else "cpu"):
            return device.index
    # A host buffer of a card's driver is main memory.
    if wanted.endswith("_host"):
        return len(devices) - 1
    raise InputError(
        f"-ot: no device {name!r}; expected one of {', '.join(d.name for d in devices)}"
    )


def without_effect(
    parts: Sequence[Part], patterns: Sequence[str], n_cpu_moe: int, model: Inventory
) -> list[str]:
    """Return sentences on patterns and numbers of layers that move nothing."""
    used = {part.override for part in parts}
    found = [
        f"-ot {pattern}: matches no tensor that is left to it; nothing moves"
        for i, pattern in enumerate(patterns)
        if i not in used
    ]
    if n_cpu_moe and not model.n_expert_layer:
        found.append(f"-ncmoe {n_cpu_moe}: the model has no routed experts")
    elif n_cpu_moe > model.n_layer:
        found.append(f"-ncmoe {n_cpu_moe}: the model has {model.n_layer} layers")
    return found
