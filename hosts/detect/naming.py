"""From the name a driver reports to a chip of the registry."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tokcast.hosts import registry
from tokcast.hosts.detect.probe import GIB, MIB, Found
from tokcast.hosts.match import candidates
from tokcast.predictor.host import Host

ACCELERATORS = frozenset({"discrete_gpu", "apple_soc", "apu"})
# Drivers keep some memory for themselves: of "16 GB", a T4 reports 15360 MiB.
_LEAST_REPORTED, _MOST_REPORTED = 0.85, 1.02
_RATE_TOLERANCE = 0.03


def known(
    name: str,
    memory_bytes: float | None = None,
    data_rate_gbps: float | None = None,
    kinds: frozenset[str] = ACCELERATORS,
    n_devices: int = 1,
) -> Found:
    """Return the chip that a driver names, told from its variants by memory size and data rate.

    Where variants remain, the slowest is taken and a note says which others it could be. An
    unknown name gives no chip and a note. `memory_bytes` is what the driver reports and becomes
    the host's.
    """
    fitting = _fitting(name, memory_bytes, kinds)
    if not fitting:
        return Found((), (_unknown(name, memory_bytes),))
    fitting = _narrowed(fitting, lambda host: _has_rate(host, data_rate_gbps))
    fitting = _narrowed(fitting, lambda host: _has_memory(host, memory_bytes))
    fitting = _narrowed(fitting, lambda host: host.name.casefold() == name.casefold())
    host = min(fitting, key=lambda candidate: candidate.bytes_per_s)
    notes = list(_doubts(host, fitting, memory_bytes))
    if memory_bytes is not None:
        host = replace(host, memory_bytes=memory_bytes)
    return Found((replace(host, n_devices=n_devices),), tuple(notes))


def size(n_bytes: float) -> str:
    """Return a memory size as a note writes it."""
    return f"{n_bytes / GIB:.3g} GiB" if n_bytes >= GIB else f"{n_bytes / MIB:.0f} MiB"


def _fitting(name: str, memory_bytes: float | None, kinds: frozenset[str]) -> list[Host]:
    texts = [name]
    if memory_bytes is not None:
        texts.insert(0, f"{name} {round(memory_bytes / GIB)}GB")
    for text in texts:
        fitting = [host for host in candidates(text, with_variants=True) if host.kind in kinds]
        if fitting:
            return fitting
    return []


def _narrowed(hosts: Sequence[Host], fits: Callable[[Host], bool]) -> list[Host]:
    return [host for host in hosts if fits(host)] or list(hosts)


def _has_rate(host: Host, data_rate_gbps: float | None) -> bool:
    published = registry.facts(host.name)["data_rate_gbps"]
    if data_rate_gbps is None or not published:
        return True
    return abs(data_rate_gbps / float(published) - 1) <= _RATE_TOLERANCE


def _has_memory(host: Host, memory_bytes: float | None) -> bool:
    if memory_bytes is None or not host.memory_options_bytes:
        return True
    shares = [memory_bytes / option for option in registry.chip(host.name).memory_options_bytes]
    return any(_LEAST_REPORTED <= share <= _MOST_REPORTED for share in shares)


def _doubts(host: Host, fitting: Sequence[Host], memory_bytes: float | None) -> tuple[str, ...]:
    notes: tuple[str, ...] = ()
    others = [other.name for other in fitting if other.name != host.name]
    if others:
        notes += (f"taken for {host.name}, could be {', '.join(others)}: say which with --host",)
    if memory_bytes is not None and not _has_memory(host, memory_bytes):
        sold = ", ".join(size(option) for option in registry.chip(host.name).memory_options_bytes)
        notes += (
            f"{host.name} reports {size(memory_bytes)} where it was sold with {sold}: "
            "if it is another chip, say which with --host",
        )
    return notes


def _unknown(name: str, memory_bytes: float | None) -> str:
    memory = f" ({size(memory_bytes)})" if memory_bytes is not None else ""
    return (
        f"{name}{memory} is not in the registry: its bandwidth is not known, "
        "give --bandwidth, --tflops and --memory to predict for it"
    )
