"""From what was typed about a placement to a machine and llama.cpp's options."""

import re
from dataclasses import dataclass, field, replace
from typing import cast

from tokcast.cli.fitting import UNIFIED_SHARE, memory_notes
from tokcast.cli.options import host_of, one_count
from tokcast.cli.placement_words import Words
from tokcast.cli.render import cut
from tokcast.hosts.machine import machine, of_hosts
from tokcast.hosts.parts import has_parts
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.memory import Setting
from tokcast.predictor.placement.devices import Machine
from tokcast.predictor.placement.plan import PlacementOptions, SplitMode

SPLIT_MODES = ("layer", "row", "none")


@dataclass(frozen=True, slots=True)
class Placing:
    """The same, parsed: the devices and how a model is to be laid out over them."""

    machine: Machine
    options: PlacementOptions = field(default_factory=PlacementOptions)
    is_fitted: bool = False
    n_sequences: int = 1
    swa_full: bool = False
    n_threads: int | None = None
    n_batch: int | None = None

    def setting(self, type_k: str, type_v: str, n_ubatch: int, flash_attention: bool) -> Setting:
        """Return how caches are kept."""
        return Setting(type_k, type_v, n_ubatch, flash_attention, self.swa_full, self.n_sequences)


def placing_of(
    words: Words,
    host: str | None,
    bandwidth: str | None = None,
    tflops: str | None = None,
    memory: str | None = None,
) -> Placing:
    """Return the parsed placement; raises InputError naming the flag."""
    return Placing(
        machine=machine_of(host, bandwidth, tflops, memory),
        options=PlacementOptions(
            n_gpu_layers=_layers(words.n_gpu_layers, "-ngl"),
            n_cpu_moe=_layers(words.n_cpu_moe, "-ncmoe") or 0,
            overrides=tuple(_overrides(words.override_tensor)),
            tensor_split=_proportions(words.tensor_split),
            split_mode=_split_mode(words.split_mode),
            no_kv_offload=words.no_kv_offload,
            main_gpu=0 if words.main_gpu is None else one_count(words.main_gpu, "-mg", 0),
        ),
        is_fitted=words.fit,
        n_sequences=1 if words.n_parallel is None else one_count(words.n_parallel, "-np"),
        swa_full=words.swa_full,
        n_threads=None if words.n_threads is None else one_count(words.n_threads, "-t"),
        n_batch=None if words.n_batch is None else one_count(words.n_batch, "-b"),
    )


def placing_on(host: Host, notes: tuple[str, ...] = ()) -> Placing:
    """Return several equal cards, over which llama.cpp lays a model out by layers."""
    return Placing(_noted(of_hosts([host], unified_share=UNIFIED_SHARE), notes))


def machine_of(
    host: str | None,
    bandwidth: str | None = None,
    tflops: str | None = None,
    memory: str | None = None,
) -> Machine:
    """Return the devices of a host by its name, or of this machine.

    Raises InputError for what is no host, and for numbers where it is not clear whose they are.
    """
    numbers = [name for name, x in (("--bandwidth", bandwidth), ("--tflops", tflops)) if x]
    if host is not None and has_parts(host):
        if numbers or memory:
            raise InputError(
                f"--host {host!r}: has several parts, so that {(*numbers, '--memory')[0]} is not"
                " clear; expected memory in the name, as 'RTX 3060 12GB + 64G DDR4-3200'"
            )
        return _noted(machine(host, UNIFIED_SHARE))
    if host is None and not numbers:
        return _here(memory)
    found, notes = host_of(host, bandwidth, tflops, memory)
    return _noted(of_hosts([found], unified_share=UNIFIED_SHARE, text=host or ""), notes)


def _noted(machine: Machine, notes: tuple[str, ...] = ()) -> Machine:
    """Return the machine with what is to be said of its chips."""
    of_cards = (note for card in machine.cards for note in memory_notes(card.host))
    return replace(machine, notes=tuple(dict.fromkeys((*notes, *of_cards, *machine.notes))))


def _here(memory: str | None) -> Machine:
    """Return the devices of this machine: the fastest kind of card, and the processor."""
    from tokcast.hosts.detect import detect
    from tokcast.hosts.quantity import parse_bytes

    found = detect()
    if not found.hosts:
        raise InputError("this machine was not recognised; give --host NAME or --bandwidth GB/s")
    hosts = [h for h in found.hosts if h.kind != "cpu"][:1] + [
        h for h in found.hosts if h.kind == "cpu"
    ][:1]
    if memory is not None:
        hosts[0] = replace(hosts[0], memory_bytes=parse_bytes(memory))
    made = of_hosts(hosts, (found.memory_bytes, None, ()), UNIFIED_SHARE)
    return replace(made, notes=(*found.notes, *made.notes))


def _layers(text: str | None, flag: str) -> int | None:
    if text is None or text.lower() in ("all", "auto"):
        return None
    if re.fullmatch(r"\d{1,6}", text.strip()) is None:
        raise InputError(
            f"{flag} {cut(text, 40)!r}: expected a number of layers from 0 up"
            + (", or all" if flag == "-ngl" else "")
        )
    return int(text)


def _overrides(texts: tuple[str, ...]) -> list[tuple[str, str]]:
    # A comma may be in a pattern, as in a{1,2}; a new one begins after a device's name.
    found = []
    for text in texts:
        if not text.strip():
            raise InputError("-ot: expected REGEX=DEVICE, such as 'ffn_.*_exps=CPU', not nothing")
        for each in re.findall(r"(?:[^=]|=(?!\w+(?:,|;|$)))+=\w+(?:[,;]|$)|.+", text):
            pattern, _, device = each.rstrip(",;").rpartition("=")
            if not pattern or not device:
                raise InputError(
                    f"-ot {cut(text, 60)!r}: expected REGEX=DEVICE, such as 'ffn_.*_exps=CPU'"
                )
            try:
                re.compile(pattern)
            except re.error as error:
                raise InputError(
                    f"-ot {cut(pattern, 60)!r}: {error}; expected a regular expression"
                ) from None
            found.append((pattern, device))
    return found


def _proportions(text: str | None) -> tuple[float, ...]:
    if text is None:
        return ()
    try:
        shares = tuple(float(part) for part in re.split(r"[,/]", text))
    except ValueError:
        shares = ()
    if not all(0 <= x < 1e9 for x in shares) or sum(shares) < 1e-6:
        raise InputError(
            f"-ts {cut(text, 40)!r}: expected proportions from 0 up, one for each card, as 3,1"
        )
    return shares


def _split_mode(text: str | None) -> SplitMode:
    if text is None:
        return "layer"
    if text.lower() not in SPLIT_MODES:
        raise InputError(f"-sm {cut(text, 40)!r}: expected one of {', '.join(SPLIT_MODES)}")
    return cast(SplitMode, text.lower())
