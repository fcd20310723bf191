"""What each device must hold of a placed model: weights, caches, states, compute buffers.

The form is llama.cpp's (MIT, commit 0c1e570); `docs/placement.md` says what it was held against.
"""

from dataclasses import dataclass

from tokcast.predictor.memory import (
    Setting,
    body_bytes,
    check,
    head_bytes,
    input_bytes,
    layer_caches,
    mask_bytes,
    padded,
)
from tokcast.predictor.placement.devices import Device
from tokcast.predictor.placement.loads import weight_bytes
from tokcast.predictor.placement.plan import Placement, is_pipelined

# Batches that several cards work on at once (GGML_SCHED_MAX_COPIES).
PIPELINE_COPIES = 4
# What of a layer's activations is there beside copies: 0.2 to 1.2 of them in ten models, this in
# the middle keeps every total within 128 MiB (docs/placement.md).
BESIDE_COPY = 0.75


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """Bytes on one device."""

    device: Device
    weights_bytes: float
    kv_bytes: float
    recurrent_bytes: float
    compute_bytes: float

    @property
    def total_bytes(self) -> float:
        """Return what the device must hold in all."""
        return self.weights_bytes + self.kv_bytes + self.recurrent_bytes + self.compute_bytes

    @property
    def free_bytes(self) -> float | None:
        """Return what is left of the device's memory, below 0 where it does not fit."""
        if self.device.memory_bytes is None:
            return None
        return self.device.memory_bytes - self.total_bytes


def device_memory(
    placement: Placement, n_context: int, setting: Setting | None = None
) -> tuple[DeviceMemory, ...]:
    """Return what each device holds at a context, the processor last.

    Raises InputError as `tokcast.predictor.memory.memory` does.
    """
    how = setting or Setting()
    check(n_context, how)
    n_devices = len(placement.devices)
    kv, state = [0.0] * n_devices, [0.0] * n_devices
    largest = 0.0
    for layer, (kept, recurrent) in zip(
        placement.spec.layers, layer_caches(placement.spec, n_context, how), strict=True
    ):
        at = placement.kv_devices[layer.index]
        kv[at] += kept
        state[at] += recurrent
        if at == placement.cpu:
            largest = max(largest, kept)
    weights, compute = weight_bytes(placement), _compute(placement, n_context, how, largest)
    return tuple(
        DeviceMemory(device, weights[i], kv[i], state[i], compute[i])
        for i, device in enumerate(placement.devices)
    )


def fits(
    memory: tuple[DeviceMemory, ...], is_unified: bool = False, margin_bytes: float = 0.0
) -> bool | None:
    """Return whether every device holds its share; None where a card's memory is not known.

    Main memory of unknown size is taken to be large enough. A card of its own memory keeps
    `margin_bytes` free. With `is_unified` all lies in one memory, that of the first device.
    """
    if is_unified:
        there = memory[0].device.memory_bytes
        return None if there is None else sum(m.total_bytes for m in memory) <= there
    for held in memory:
        margin = margin_bytes if held.device.kind == "gpu" else 0.0
        if held.free_bytes is not None and held.free_bytes < margin:
            return False
    counted = memory[:-1] or memory
    return None if any(m.free_bytes is None for m in counted) else True


def _compute(placement: Placement, n_context: int, setting: Setting, largest: float) -> list[float]:
    """Return the compute buffers of each device; `largest` is a cache in main memory."""
    spec, cpu = placement.spec, placement.cpu
    n_query = min(setting.n_ubatch, padded(n_context))
    masks = mask_bytes(spec, n_context, n_query, setting)
    body = body_bytes(spec, n_context, n_query, setting)
    head, entry = head_bytes(spec, n_query), input_bytes(spec, n_query)
    inputs = entry + masks
    if not placement.n_gpu_layers:
        # Where nothing is handed over, the masks are there once.
        alone = [0.0] * cpu + [max(head, body - masks) + inputs]
        return _with_copies(alone, placement, body, largest)
    compute = [0.0] * (cpu + 1)
    used = set(placement.layer_devices) - {cpu}
    for index in used:
        compute[index] = body
    compute = _with_copies(compute, placement, body, largest)
    last = placement.layer_devices[-1]
    compute[last] = max(compute[last], head)
    if is_pipelined(placement):
        for index in used:
            # Cards but the first take the activations of the one before as well.
            compute[index] += PIPELINE_COPIES * (inputs + (entry if index else 0.0))
        inputs *= PIPELINE_COPIES
    compute[cpu] = inputs
    return compute


def _with_copies(
    compute: list[float], placement: Placement, body: float, cache: float
) -> list[float]:
    """Return the buffers with what the first card holds of main memory for large batches.

    It multiplies by copies of the weights there and attends to copies of the caches.
    """
    if placement.cpu:
        own, others = _copied_bytes(placement)
        if own or cache:
            compute[0] = max(compute[0], own + cache + BESIDE_COPY * body, others)
    return compute


def _copied_bytes(placement: Placement) -> tuple[float, float]:
    """Return the most that is copied from main memory: for the first card's layers, for others'.

    A layer of another card goes back and forth, so that two of its matrices are held at once.
    """
    cpu = placement.cpu
    pairs = zip(placement.parts, placement.part_devices, strict=True)
    away = [part for part, at in pairs if at == cpu and part.largest_bytes]
    own = float(max((part.largest_bytes for part in away), default=0))
    if cpu == 1:
        return own, 0.0
    of_layer: dict[int, list[float]] = {}
    for part in away:
        is_several = part.sum.n_bytes >= 2 * part.largest_bytes
        sizes = of_layer.setdefault(part.layer, [])
        sizes += [float(part.largest_bytes)] * (2 if is_several else 1)
    others = (
        sum(sorted(sizes)[-2:])
        for layer, sizes in of_layer.items()
        if placement.layer_devices[layer] not in (0, cpu)
    )
    return own, max(others, default=0.0)
