"""A mapping of work onto a machine: operations, and bytes across each level of memory."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Traffic:
    """The operations of a mapping and the bytes it moves across each level, by level's name."""

    name: str
    flops: float
    n_bytes: Mapping[str, float]
