"""What a step takes of each resource, and what a machine has of it.

Five resources, after Floor First: memory bytes, operations, network bytes, network messages and
K/V capacity. The first four take time; the last one fits or does not.
"""

import math
from dataclasses import dataclass, fields

from tokcast.predictor.errors import InputError

TIMED = ("memory", "compute", "network bytes", "network messages")


@dataclass(frozen=True, slots=True)
class Resources:
    """A step's demand on one device: bytes, operations, messages, and bytes of K/V kept."""

    memory_bytes: float = 0.0
    flops: float = 0.0
    network_bytes: float = 0.0
    network_messages: float = 0.0
    cache_bytes: float = 0.0

    def __add__(self, other: "Resources") -> "Resources":
        """Return the demand of two steps."""
        return Resources(
            *(getattr(self, f.name) + getattr(other, f.name) for f in fields(Resources))
        )


@dataclass(frozen=True, slots=True)
class Peaks:
    """A device's supply, in SI units; a network of infinite speed where there is none.

    `message_seconds` is what one message takes however short it is; `cache_capacity_bytes` the
    memory that weights leave to the K/V cache. Raises InputError for a peak that is not positive.
    """

    bytes_per_s: float
    flops_per_s: float
    network_bytes_per_s: float = math.inf
    message_seconds: float = 0.0
    cache_capacity_bytes: float = math.inf

    def __post_init__(self) -> None:
        for name in ("bytes_per_s", "flops_per_s", "network_bytes_per_s"):
            positive(getattr(self, name), name)
        if not 0 <= self.message_seconds < math.inf:
            raise InputError(
                f"message_seconds is {self.message_seconds:g}; expected 0 or more seconds"
            )


def positive(value: float, name: str) -> float:
    """Return a peak; raises InputError unless it is above 0 (infinite means no such limit)."""
    if not value > 0:
        raise InputError(f"{name} is {value:g}; expected a peak above 0, in SI units")
    return value


def seconds_by_resource(demand: Resources, peaks: Peaks) -> dict[str, float]:
    """Return the seconds that each timed resource is busy at its peak."""
    busy = (
        demand.memory_bytes / peaks.bytes_per_s,
        demand.flops / peaks.flops_per_s,
        demand.network_bytes / peaks.network_bytes_per_s,
        demand.network_messages * peaks.message_seconds,
    )
    return dict(zip(TIMED, busy, strict=True))
