"""A whole machine from a typed name: cards, processor and main memory, joined by `+`."""

import re
from collections.abc import Sequence
from dataclasses import replace

from tokcast.hosts.match import find
from tokcast.hosts.parts import parts
from tokcast.hosts.quantity import parse_bytes
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.placement.devices import Device, Machine

_MEMORY = re.compile(
    r"(?P<size>\d+(?:\.\d+)?\s*[gt](?:i?b)?)?\s*(?:lp)?(?:ddr(?P<generation>[345])x?)?"
    r"(?:[- ]?(?P<rate>\d{4,5})(?:\s*mt/?s)?)?\s*(?:ram|memory|dram)?\s*"
    r"(?P<after>\d+(?:\.\d+)?\s*[gt](?:i?b)?)?",
    re.IGNORECASE,
)
_CHANNELS = re.compile(
    r"\b(single|dual|quad|six|eight|twelve|\d{1,2})[- ]?(?:x )?channels?\b|\b(\d{1,2})ch\b",
    re.IGNORECASE,
)
_COUNTED = {"single": 1, "dual": 2, "quad": 4, "six": 6, "eight": 8, "twelve": 12}
# A channel is 64 bits wide (JEDEC JESD79-4, JESD79-5: two halves of 32 bits in DDR5).
CHANNEL_BYTES = 8
USUAL_CHANNELS = 2
# Usual speeds of modules where only the generation is said, in million transfers/s.
_USUAL_RATE = {"3": 1600, "4": 3200, "5": 5600}
# Dual DDR4-3200 and DDR5-5600 are 51 and 90 GB/s: what an unknown machine lies between.
UNKNOWN_BYTES_PER_S = 65e9
# A six-core desktop of 2020, where nothing is known of a processor.
_UNKNOWN_FLOPS_PER_S = 0.6e12
_PREFIX = {"NVIDIA": "CUDA", "AMD": "ROCm", "Apple": "MTL", "Intel": "SYCL"}


def machine(text: str, unified_share: float = 1.0) -> Machine:
    """Return the devices of a machine: `2x RTX 3090`, `RTX 4070 Laptop + 64G DDR5-5600`.

    Parts are chips as `find` knows them and one main memory: its size, `DDR4-3200`, or both, and
    `quad-channel` where there are not two. Memory that is not described is taken as a usual
    desktop's, and said to be. `unified_share` is the part of a shared memory that a model may
    take. Raises InputError for a part that is neither.
    """
    hosts: list[Host] = []
    memory: tuple[float | None, float | None, tuple[str, ...]] | None = None
    for part in parts(text):
        found = main_memory(part)
        if found is None:
            hosts.append(find(part))
        elif memory is None:
            memory = found
        else:
            raise InputError(f"host {text!r}: two main memories; expected one, as in '64G DDR5'")
    return of_hosts(hosts, memory, unified_share, text)


def main_memory(text: str) -> tuple[float | None, float | None, tuple[str, ...]] | None:
    """Return a main memory's bytes, bytes/s and what was assumed, or None for another text.

    Bytes/s are channels x 8 bytes x transfers/s, those of JEDEC's names: dual DDR5-5600 has
    89.6e9.
    """
    channels = _CHANNELS.search(text)
    rest = _CHANNELS.sub(" ", text).strip()
    match = _MEMORY.fullmatch(rest)
    if match is None or not (match["size"] or match["after"] or match["generation"]):
        return None
    size = match["size"] or match["after"]
    n_bytes = parse_bytes(size) if size else None
    if match["generation"] is None and match["rate"] is None:
        return n_bytes, None, ()
    notes = []
    rate = float(match["rate"] or _USUAL_RATE[match["generation"] or "5"])
    if match["rate"] is None:
        notes.append(f"main memory is taken as DDR{match['generation']}-{rate:.0f}")
    n_channels = USUAL_CHANNELS
    if channels:
        word = (channels[1] or channels[2]).lower()
        n_channels = _COUNTED.get(word) or int(word)
    else:
        notes.append("main memory is taken to have two channels")
    return n_bytes, n_channels * CHANNEL_BYTES * rate * 1e6, tuple(notes)


def of_hosts(
    hosts: Sequence[Host],
    memory: tuple[float | None, float | None, tuple[str, ...]] | None = None,
    unified_share: float = 1.0,
    text: str = "",
) -> Machine:
    """Return a machine of chips and a main memory; raises InputError for two processors."""
    processors = [h for h in hosts if h.kind == "cpu"]
    chips = [h for h in hosts if h.kind != "cpu"]
    if len(processors) > 1:
        raise InputError(f"host {text!r}: two processors; expected one, and cards")
    if not hosts:
        raise InputError(f"host {text!r}: only a main memory; expected a chip too, as 'RTX 4090'")
    cards = [replace(h, n_devices=1) for h in chips for _ in range(h.n_devices)]
    size, bytes_per_s, notes = memory or (None, None, ())
    if len(cards) == 1 and cards[0].is_unified:
        return _unified(cards[0], unified_share, notes)
    names = _names(cards)
    devices = [
        Device(name, "gpu", host, _memory_of(host, unified_share), i)
        for i, (name, host) in enumerate(zip(names, cards, strict=True))
    ]
    host, is_assumed = _processor(processors[0] if processors else None, size, bytes_per_s)
    if is_assumed:
        notes = (
            *notes,
            f"main memory is taken to move {UNKNOWN_BYTES_PER_S / 1e9:.0f} GB/s, between dual DDR4"
            " and DDR5; --host 'CARD + 64G DDR5-5600' says otherwise",
        )
    processor = Device("CPU", "cpu", host, host.memory_bytes, len(devices), is_assumed)
    return Machine((*devices, processor), tuple(notes))


def _names(cards: Sequence[Host]) -> list[str]:
    vendors = {h.vendor for h in cards}
    # One backend for cards of several makers.
    prefix = _PREFIX.get(next(iter(vendors)), "Vulkan") if len(vendors) == 1 else "Vulkan"
    return [f"{prefix}{i}" for i in range(len(cards))]


def _memory_of(host: Host, unified_share: float) -> float | None:
    known = host.memory_bytes or max(host.memory_options_bytes, default=0.0)
    if not known:
        return None
    return known * (unified_share if host.is_unified else 1.0)


def _unified(host: Host, share: float, notes: tuple[str, ...]) -> Machine:
    memory = _memory_of(host, share)
    processor = replace(host, kind="cpu", name=f"{host.name} CPU")
    devices = (
        Device(_names([host])[0], "gpu", host, memory, 0),
        Device("CPU", "cpu", processor, memory, 1, is_assumed=True),
    )
    return Machine(devices, notes, is_unified=True)


def _processor(
    known: Host | None, size: float | None, bytes_per_s: float | None
) -> tuple[Host, bool]:
    """Return the processor with its memory, and whether the bandwidth is only a usual one."""
    if known is not None:
        return replace(
            known,
            bytes_per_s=bytes_per_s or known.bytes_per_s,
            memory_bytes=size or known.memory_bytes,
        ), False
    host = Host(
        name="main memory",
        vendor="",
        kind="cpu",
        architecture="",
        bytes_per_s=bytes_per_s or UNKNOWN_BYTES_PER_S,
        memory_bytes=size,
        fp32_flops_per_s=_UNKNOWN_FLOPS_PER_S,
        confidence="low",
    )
    return host, bytes_per_s is None
