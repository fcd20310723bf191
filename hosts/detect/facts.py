"""Everything that one operating system tells of a machine."""

from dataclasses import dataclass

from tokcast.hosts.detect.cpu import Cpu
from tokcast.hosts.detect.memory import Module
from tokcast.hosts.detect.probe import Found


@dataclass(frozen=True, slots=True)
class Machine:
    """Accelerators, processor, memory modules and what a user should know.

    `how_to_read_memory` completes "memory speed not readable: ... give --bandwidth".
    """

    accelerators: Found
    cpu: Cpu
    modules: tuple[Module, ...]
    memory_bytes: float | None
    how_to_read_memory: str
    notes: tuple[str, ...] = ()
