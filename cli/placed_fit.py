"""Whether a placed model fits its devices, and up to which context."""

from dataclasses import dataclass

from tokcast.cli.render import count, size
from tokcast.predictor.memory import LONGEST, MemoryUse
from tokcast.predictor.placement.memory import DeviceMemory, fits


@dataclass(frozen=True, slots=True)
class PlacedFit:
    """Bytes that each device must hold and has, and the largest context of that placement.

    `use` is the model's as if it were on one device.
    """

    devices: tuple[DeviceMemory, ...]
    use: MemoryUse
    n_context: int
    is_unified: bool
    largest_context: int | None

    @property
    def need_bytes(self) -> float:
        """Return what all devices together must hold."""
        return sum(d.total_bytes for d in self.devices)

    @property
    def available_bytes(self) -> float | None:
        """Return the memory of all devices, None where a card's is not known.

        Main memory of unknown size is not counted.
        """
        known = [d.device.memory_bytes for d in self.devices[: 1 if self.is_unified else None]]
        cards = known[:-1] or known
        return None if None in cards else sum(filter(None, known))

    @property
    def fits(self) -> bool | None:
        """Return None when a memory that is needed is not known."""
        return fits(self.devices, self.is_unified)

    @property
    def parts_bytes(self) -> dict[str, float]:
        """Return the bytes by what they are for, then those of the cards and the processor's."""
        held = self.devices
        return {
            "weights_bytes": sum(d.weights_bytes for d in held),
            "kv_bytes": sum(d.kv_bytes for d in held),
            "recurrent_bytes": sum(d.recurrent_bytes for d in held),
            "compute_bytes": sum(d.compute_bytes for d in held),
            "device_bytes": sum(d.total_bytes for d in held[:-1]),
            "host_bytes": held[-1].total_bytes,
        }

    def __str__(self) -> str:
        """Return in words whether every device holds its share."""
        there = self.available_bytes
        is_all_known = self.devices[-1].device.memory_bytes is not None
        if there is not None and is_all_known and self.need_bytes > there:
            need = f"{size(self.need_bytes)} at a context of {count(self.n_context)}"
            return f"Does not fit: {need}, {size(there)} in all devices together"
        lacking = [d for d in self.devices if (d.free_bytes or 0) < 0]
        shown = lacking if self.fits is False and lacking else self.devices
        parts = ", ".join(_share(d) for d in shown)
        context = f"at a context of {count(self.n_context)}"
        if self.fits is False:
            return f"Does not fit: {parts} {context}; --fit or tokcast plan finds what does"
        most = self.largest_context
        longest = f"; largest context {count(most)}" if most and most < LONGEST else ""
        return f"{'Fits' if self.fits else 'Needs'}: {parts} {context}{longest}"


def _share(memory: DeviceMemory) -> str:
    of = memory.device.memory_bytes
    there = f" of {size(of)}" if of is not None else ""
    return f"{memory.device.name} {size(memory.total_bytes)}{there}"
