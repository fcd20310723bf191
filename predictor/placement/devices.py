"""The devices of a machine in the order in which llama.cpp counts them."""

from dataclasses import dataclass, replace
from typing import Literal

from tokcast.predictor.host import Host


@dataclass(frozen=True, slots=True)
class Device:
    """One card, or the processor with its main memory, which is always the last device.

    `name` is llama.cpp's ("CUDA0", "CPU"). `memory_bytes` is what a model may take there, None
    where it is not known. `is_assumed` says that the bandwidth was not stated, only typical.
    """

    name: str
    kind: Literal["gpu", "cpu"]
    host: Host
    memory_bytes: float | None
    index: int
    is_assumed: bool = False


@dataclass(frozen=True, slots=True)
class Machine:
    """Cards first, the processor last; `notes` are sentences on what was assumed of them.

    `is_unified`: the one accelerator and the processor have the same memory.
    """

    devices: tuple[Device, ...]
    notes: tuple[str, ...] = ()
    is_unified: bool = False

    @property
    def cards(self) -> tuple[Device, ...]:
        """Return the accelerators."""
        return self.devices[:-1]

    @property
    def processor(self) -> Device:
        """Return the processor."""
        return self.devices[-1]

    @property
    def host(self) -> Host:
        """Return the first device's chip, with how many cards of that chip there are."""
        first = self.devices[0].host
        return replace(first, n_devices=max(1, sum(c.host == first for c in self.cards)))
