"""Whether a model fits a host's memory, and up to which context."""

from dataclasses import dataclass

from tokcast.cli.render import count, size
from tokcast.predictor.host import Host
from tokcast.predictor.memory import LONGEST, MemoryUse, Setting, largest_context, memory
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

    @property
    def parts_bytes(self) -> dict[str, float]:
        """Return the bytes by what they are for, then by where they lie."""
        use = self.use
        return {
            "weights_bytes": use.weights_bytes,
            "kv_bytes": use.kv_bytes,
            "recurrent_bytes": use.recurrent_bytes,
            "compute_bytes": use.compute_device_bytes + use.compute_host_bytes,
            "device_bytes": use.device_bytes,
            "host_bytes": use.host_bytes,
        }

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


def fit(spec: ModelSpec, host: Host, n_context: int, setting: Setting) -> Fit:
    """Return whether a context fits the host; raises InputError as `memory` does."""
    available = available_bytes(host)
    use = memory(spec, n_context, setting)
    largest = None
    if available is not None:
        largest = largest_context(spec, available, setting, is_unified=host.is_unified)
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
