"""The floor of a step: no faster than its busiest resource, no slower than all in turn."""

from collections.abc import Mapping
from dataclasses import dataclass

from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.ledger import Work, total
from tokcast.predictor.roofline import peak_ops_per_s
from tokcast.predictor.roofs.resources import (
    Peaks,
    Resources,
    positive,
    seconds_by_resource,
)


def ridge(flops_per_s: float, bytes_per_s: float) -> float:
    """Return the operations a byte at which compute and memory take equally long, FLOP/byte.

    Raises InputError for a peak that is not positive.
    """
    return positive(flops_per_s, "flops_per_s") / positive(bytes_per_s, "bytes_per_s")


@dataclass(frozen=True, slots=True)
class Floor:
    """The seconds that each resource is busy in one step, at its peak."""

    by_resource: Mapping[str, float]

    @property
    def optimistic(self) -> float:
        """Return the seconds of full overlap: the busiest resource alone."""
        return max(self.by_resource.values())

    @property
    def pessimistic(self) -> float:
        """Return the seconds without overlap: one resource after another."""
        return sum(self.by_resource.values())

    @property
    def binding(self) -> str:
        """Return the busiest resource."""
        return max(self.by_resource, key=lambda name: self.by_resource[name])


def floor_of(demand: Resources, peaks: Peaks) -> Floor:
    """Return the floor of a step on one device."""
    return Floor(seconds_by_resource(demand, peaks))


def peaks_of(host: Host) -> Peaks:
    """Return a host's nameplate peaks; raises InputError for one without a compute rate."""
    rate = peak_ops_per_s(host)
    if rate is None:
        raise InputError(
            f"{host.name}: no compute rate is known; give --tflops, or name a chip with --host"
        )
    return Peaks(host.bytes_per_s, rate)


def floor_of_works(works: tuple[Work, ...], host: Host) -> Floor:
    """Return the floor of a ledger on a host, in seconds; raises InputError as `peaks_of`."""
    n_bytes, flops = total(works)
    return floor_of(Resources(memory_bytes=n_bytes, flops=flops), peaks_of(host))
