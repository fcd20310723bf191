"""What must be wrong where a measurement beats its floor: each input, and what it had to be."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tokcast.predictor.host import Host
from tokcast.predictor.ledger import Workload, compile_decode, ledger, total
from tokcast.predictor.roofs.floor import Floor, floor_of_works
from tokcast.predictor.spec import ModelSpec

# No stored type has fewer bits a weight.
_FEWEST_BITS = 1.5


@dataclass(frozen=True, slots=True)
class Suspect:
    """An input that alone would explain the measurement: what was taken, what it had to be."""

    name: str
    taken: str
    needed: str


def suspects(
    spec: ModelSpec, workload: Workload, host: Host, floor: Floor, seconds: float
) -> tuple[Suspect, ...]:
    """Return the inputs that alone would put a measurement at its floor.

    What is known to be uncertain comes first, then what somebody typed, then what was published.
    """
    over = floor.optimistic / seconds
    found = [
        *_uncertain(spec, workload, host, floor),
        *_depth(spec, workload, host, seconds),
        *_type(spec, workload, host, floor, seconds),
    ]
    if workload.phase == "decode":
        found.append(Suspect("tokens a step", "1", f"{over:.2f} (drafts, or several users)"))
    found.append(Suspect("devices", f"{host.n_devices}", f"{math.ceil(over)} sharing each layer"))
    return (*found, _published(host, floor, over))


def _published(host: Host, floor: Floor, over: float) -> Suspect:
    if floor.binding != "memory":
        return Suspect("compute rate", "the highest published", f"{over:.2f} times that")
    rate = host.bytes_per_s / 1e9
    return Suspect("memory bandwidth", f"{rate:,.0f} GB/s", f"{over * rate:,.0f} GB/s")


def _uncertain(spec: ModelSpec, workload: Workload, host: Host, floor: Floor) -> Iterator[Suspect]:
    n_bytes, _ = total(ledger(spec, workload))
    if floor.binding == "memory" and n_bytes <= (host.cache_bytes or 0.0):
        size = f"{(host.cache_bytes or 0.0) / 2**20:,.0f} MiB"
        yield Suspect("last-level cache", "not counted", f"none: its {size} hold all that is read")
    if host.confidence == "low":
        yield Suspect("the chip's figures", "uncertain", "see tokcast hosts show")


def _depth(spec: ModelSpec, workload: Workload, host: Host, seconds: float) -> Iterator[Suspect]:
    """Yield the depth, where a shorter one explains the time by itself."""
    if workload.phase != "decode" or not workload.n_depth:
        return
    plan = compile_decode(spec, workload.type_k, workload.type_v, workload.flash_attention)

    def fits(n_depth: int) -> bool:
        return floor_of_works(plan.at(n_depth), host).optimistic <= seconds

    if not fits(0):
        return
    low, high = 0, workload.n_depth
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    yield Suspect("depth, middle token", f"{workload.n_depth}", f"at most {low}")


def _type(
    spec: ModelSpec, workload: Workload, host: Host, floor: Floor, seconds: float
) -> Iterator[Suspect]:
    """Yield the type of the weights, where one of fewer bits explains the time by itself."""
    read = [g for g in spec.groups if g.read_fraction]
    n_bytes = sum(g.n_bytes * g.read_fraction for g in read)
    n_weights = sum(g.n_params * g.read_fraction for g in read)
    excess = (floor.optimistic - seconds) * host.bytes_per_s
    if workload.phase != "decode" or floor.binding != "memory" or not 0 < excess < n_bytes:
        return
    bits = 8 * n_bytes / n_weights
    needed = 8 * (n_bytes - excess) / n_weights
    if needed >= _FEWEST_BITS:
        taken = f"{spec.file_type}, {bits:.2f} bits"
        yield Suspect("type of the weights", taken, f"{needed:.2f} bits a weight")
