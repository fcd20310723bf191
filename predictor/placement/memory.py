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
from tokcast.predictor.placement.loads import device_loads
from tokcast.predictor.placement.plan import Placement

# Batches that several cards work on at once (GGML_SCHED_MAX_COPIES).
PIPELINE_COPIES = 4
# Of a layer's activations, what is there beside the copy of its largest matrix: 0.5 to 1.1 in
# nine models (docs/placement.md).
BESIDE_COPY = 0.65


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
    for layer, (kept, recurrent) in zip(
        placement.spec.layers, layer_caches(placement.spec, n_context, how), strict=True
    ):
        at = placement.kv_devices[layer.index]
        kv[at] += kept
        state[at] += recurrent
    compute = _compute(placement, n_context, how)
    return tuple(
        DeviceMemory(device, load.weight_bytes, kv[i], state[i], compute[i])
        for i, (device, load) in enumerate(
            zip(placement.devices, device_loads(placement), strict=True)
        )
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


def is_pipelined(placement: Placement) -> bool:
    """Return whether llama.cpp lets several cards work on different batches at once."""
    asked = placement.options
    return (
        placement.cpu > 1
        and placement.split_mode == "layer"
        and placement.n_gpu_layers == len(placement.layer_devices)
        and not (asked.no_kv_offload or asked.overrides or asked.n_cpu_moe)
    )


def _compute(placement: Placement, n_context: int, setting: Setting) -> list[float]:
    spec = placement.spec
    n_query = min(setting.n_ubatch, padded(n_context))
    body = body_bytes(spec, n_context, n_query, setting)
    entry = input_bytes(spec, n_query)
    inputs = entry + mask_bytes(spec, n_context, n_query, setting)
    compute = [0.0] * len(placement.devices)
    cpu = placement.cpu
    used = set(placement.layer_devices)
    for index in used:
        compute[index] = body
    if cpu:
        # Large batches are multiplied on the first card, by a copy of weights in main memory.
        own, others = _copied_bytes(placement)
        if own:
            compute[0] = max(compute[0], own + BESIDE_COPY * body, others)
        if placement.n_gpu_layers:
            compute[cpu] = 0.0
    compute[placement.layer_devices[-1]] = max(
        compute[placement.layer_devices[-1]], head_bytes(spec, n_query)
    )
    if is_pipelined(placement):
        for index in used - {cpu}:
            # Cards but the first take the activations of the one before as well.
            compute[index] += PIPELINE_COPIES * (inputs + (entry if index else 0.0))
        inputs *= PIPELINE_COPIES
    compute[cpu] += inputs
    return compute


def _copied_bytes(placement: Placement) -> tuple[float, float]:
    """Return the most that is copied from main memory: for the first card's layers, for others'.

    A layer of another card goes back and forth, so that two of its matrices are held at once.
    """
    cpu = placement.cpu
    own, others = 0.0, 0.0
    of_layer: dict[int, list[float]] = {}
    for part, at in zip(placement.parts, placement.part_devices, strict=True):
        if at == cpu and part.largest_bytes:
            own = max(own, float(part.largest_bytes))
            is_several = part.sum.n_bytes >= 2 * part.largest_bytes
            sizes = of_layer.setdefault(part.layer, [])
            sizes += [float(part.largest_bytes)] * (2 if is_several else 1)
    for layer, sizes in of_layer.items():
        if placement.layer_devices[layer] not in (0, cpu):
            others = max(others, sum(sorted(sizes)[-2:]))
    return own, others
