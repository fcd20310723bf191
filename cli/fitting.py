"""Whether a model fits a host's memory, and up to which context."""

from dataclasses import dataclass

from tokcast.cli.render import count, size
from tokcast.predictor.host import Host
from tokcast.predictor.memory import LONGEST, MemoryUse, largest_context, memory
from tokcast.predictor.placement.memory import DeviceMemory, fits
from tokcast.predictor.spec import ModelSpec

# What an operating system and its programs keep of a memory shared with the accelerator.
UNIFIED_SHARE = 0.75


@dataclass(frozen=True, slots=True)
class Fit:
    """Bytes needed and there, and the largest context."""

    use: MemoryUse
    n_context: int
    is_unified: bool
    available_bytes: float | None
    largest_context: int | None

    @property
    def need_bytes(self) -> float:
        """Return what the memory that the model runs from must hold."""
        return self.use.unified_bytes if self.is_unified else self.use.device_bytes

    @property
    def fits(self) -> bool | None:
        """Return None when the host's memory is not known."""
        if self.available_bytes is None:
            return None
        return self.need_bytes <= self.available_bytes

    def __str__(self) -> str:
        """Return in words whether the model fits."""
        need = f"{size(self.need_bytes)} at a context of {count(self.n_context)}"
        if self.available_bytes is None:
            return f"Needs {need}; this host's memory is not known (--memory)"
        there, most = size(self.available_bytes), self.largest_context
        if self.fits:
            longest = f"; largest context {count(most)}" if most and most < LONGEST else ""
            return f"Fits: {need}, {there} usable{longest}"
        shorter = f"; a context of {count(most)} would fit" if most else ""
        return f"Does not fit: {need}, {there} usable{shorter}"


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


def fit(
    spec: ModelSpec,
    host: Host,
    n_context: int,
    *,
    type_k: str,
    type_v: str,
    n_ubatch: int,
    flash_attention: bool,
) -> Fit:
    """Return whether a context fits the host; raises InputError as `memory` does."""
    available = available_bytes(host)
    use = memory(spec, n_context, type_k, type_v, n_ubatch, flash_attention)
    largest = None
    if available is not None:
        largest = largest_context(
            spec, available, type_k, type_v, n_ubatch, flash_attention, is_unified=host.is_unified
        )
    return Fit(use, n_context, host.is_unified, available, largest)


def available_bytes(host: Host) -> float | None:
    """Return the memory that a model may take on a host, None where it is not known."""
    known = host.memory_bytes or max(host.memory_options_bytes, default=0.0)
    if not known:
        return None
    return known * host.n_devices * (UNIFIED_SHARE if host.is_unified else 1.0)


def memory_notes(host: Host) -> tuple[str, ...]:
    """Return what is assumed of the memory of a chip that is sold with several sizes."""
    options = host.memory_options_bytes
    if host.memory_bytes is not None or len(options) < 2:
        return ()
    sizes = "/".join(f"{option / 1024**3:g}" for option in options)
    return (f"sold with {sizes} GiB, of which the largest is assumed; --memory says otherwise",)
