"""Which device each part of a model and each layer's cache is on, by llama.cpp's rules.

The rules are those of llama.cpp (MIT, commit 0c1e570, `src/llama-model.cpp`): the last
`n_gpu_layers` of all layers and the output, which counts as one more, go to the cards; the
cards share them in the given proportions, or by free memory; tables that are only looked up
stay with the processor; a pattern moves single tensors.
"""

import struct
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tokcast.predictor.errors import InputError
from tokcast.predictor.placement.devices import Device
from tokcast.predictor.placement.inventory import Inventory, Part
from tokcast.predictor.placement.overrides import device_named, without_effect
from tokcast.predictor.spec import ModelSpec

SplitMode = Literal["layer", "row", "none"]
# The place of a matrix whose rows all cards share.
ROWS = -1


@dataclass(frozen=True, slots=True)
class PlacementOptions:
    """What llama.cpp is told: `None` leaves a matter to it.

    `overrides` are (regular expression, device name); the first that names a tensor decides.
    `tensor_split` are proportions of the cards. `n_cpu_moe` keeps the routed experts of the
    first so many layers with the processor, after the overrides.
    """

    n_gpu_layers: int | None = None
    n_cpu_moe: int = 0
    overrides: tuple[tuple[str, str], ...] = ()
    tensor_split: tuple[float, ...] = ()
    split_mode: SplitMode = "layer"
    no_kv_offload: bool = False
    main_gpu: int = 0


@dataclass(frozen=True, slots=True)
class Placement:
    """A model laid out over devices; the last device is the processor.

    `part_devices` gives each part's device, or ROWS; `layer_devices` the device that computes
    each layer, the output last; `kv_devices` where each layer's cache is. `row_shares` are the
    cards' shares of a matrix that is split by rows.
    """

    spec: ModelSpec
    devices: tuple[Device, ...]
    parts: tuple[Part, ...]
    part_devices: tuple[int, ...]
    layer_devices: tuple[int, ...]
    kv_devices: tuple[int, ...]
    row_shares: tuple[float, ...]
    options: PlacementOptions
    split_mode: SplitMode
    n_gpu_layers: int
    n_cpu_moe: int
    flags: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def cpu(self) -> int:
        """Return the processor's index."""
        return len(self.devices) - 1


def place(
    model: Inventory, devices: tuple[Device, ...], options: PlacementOptions | None = None
) -> Placement:
    """Return where a model's tensors and caches go; raises InputError for options that can't be.

    More layers than there are mean all of them, as in llama.cpp.
    """
    asked = options or PlacementOptions()
    _check(asked, devices)
    cards = _cards(devices, asked)
    n_all = model.n_layer + 1
    ngl, warnings = _layers_on_cards(asked.n_gpu_layers, n_all, bool(cards))
    cpu = len(devices) - 1
    splits = _split_points(cards, asked.tensor_split)
    layer_devices = _layer_devices(model.n_layer, ngl, cards, splits, cpu)
    targets = tuple(device_named(name, devices) for _, name in asked.overrides)
    patterns = tuple(pattern for pattern, _ in asked.overrides)
    parts = model.parts(patterns)
    warnings = (*warnings, *without_effect(parts, patterns, asked.n_cpu_moe, model))
    part_devices = _part_devices(parts, layer_devices, targets, asked, cpu)
    kv_devices = tuple(cpu if asked.no_kv_offload else d for d in layer_devices[:-1])
    return Placement(
        spec=model.spec,
        devices=devices,
        parts=parts,
        part_devices=part_devices,
        layer_devices=layer_devices,
        kv_devices=kv_devices,
        row_shares=_shares(cards, splits, devices),
        options=asked,
        split_mode=asked.split_mode if len(cards) > 1 else "none",
        n_gpu_layers=ngl,
        n_cpu_moe=min(asked.n_cpu_moe, model.n_layer),
        flags=flags(asked, ngl, n_all, bool(cards)),
        warnings=warnings,
    )


def _layers_on_cards(asked: int | None, n_all: int, has_cards: bool) -> tuple[int, tuple[str, ...]]:
    """Return how many layers go to cards, and that more were asked for than there are."""
    n = (n_all if asked is None else min(asked, n_all)) if has_cards else 0
    # Nines alone are how people say "all".
    if asked is None or asked <= n_all or not str(asked).strip("9"):
        return n, ()
    return n, (f"-ngl {asked}: the model has {n_all} layers with the output",)


def is_pipelined(placement: Placement) -> bool:
    """Return whether several cards work on different micro-batches at once.

    llama.cpp (`src/llama-context.cpp`) lets them where all layers and caches are on cards, divided
    by layers, and no tensor was moved by hand.
    """
    asked = placement.options
    return (
        placement.split_mode == "layer"
        and len(set(placement.layer_devices)) > 1
        and placement.cpu not in placement.layer_devices
        and not (asked.no_kv_offload or asked.overrides or asked.n_cpu_moe)
    )


def flags(options: PlacementOptions, ngl: int, n_all: int, has_cards: bool) -> tuple[str, ...]:
    """Return the words that make llama.cpp place a model so."""
    if not has_cards:
        return ()
    words = ["-ngl", "99" if ngl == n_all and n_all <= 99 else str(ngl)]
    if options.n_cpu_moe:
        words += ["-ncmoe", str(options.n_cpu_moe)]
    if options.overrides:
        words += ["-ot", ",".join(f"{pattern}={name}" for pattern, name in options.overrides)]
    if options.tensor_split:
        words += ["-ts", ",".join(f"{x:g}" for x in options.tensor_split)]
    if options.split_mode != "layer":
        words += ["-sm", options.split_mode]
    if options.main_gpu:
        words += ["-mg", str(options.main_gpu)]
    if options.no_kv_offload:
        words += ["-nkvo"]
    return tuple(words)


def _check(options: PlacementOptions, devices: Sequence[Device]) -> None:
    n_cards = len(devices) - 1
    for flag, value in (("-ngl", options.n_gpu_layers or 0), ("-ncmoe", options.n_cpu_moe)):
        if value < 0:
            raise InputError(f"{flag} {value}: expected a number of layers from 0 up")
    if len(options.tensor_split) > n_cards:
        raise InputError(
            f"-ts has {len(options.tensor_split)} proportions, the host "
            f"{n_cards} card{'s' * (n_cards != 1)}; expected at most one for each"
        )
    if any(x < 0 for x in options.tensor_split) or (
        options.tensor_split and not sum(options.tensor_split)
    ):
        raise InputError("-ts: expected proportions from 0 up, one of them above 0, such as 3,1")
    if n_cards and not 0 <= options.main_gpu < n_cards:
        raise InputError(f"-mg {options.main_gpu}: expected a card from 0 to {n_cards - 1}")


def _cards(devices: tuple[Device, ...], options: PlacementOptions) -> tuple[Device, ...]:
    cards = devices[:-1]
    if options.split_mode == "none" and cards:
        return (cards[options.main_gpu],)
    return cards


def _single(x: float) -> float:
    """Return a number as single precision keeps it: ties are decided by llama.cpp's rounding."""
    return float(struct.unpack("f", struct.pack("f", x))[0])


def _split_points(cards: Sequence[Device], tensor_split: tuple[float, ...]) -> list[float]:
    shares = [*tensor_split, *[0.0] * (len(cards) - len(tensor_split))]
    if not any(shares):
        shares = [card.memory_bytes or 1.0 for card in cards]
    points, total = [], 0.0
    for share in shares[: len(cards)]:
        total = _single(total + _single(share))
        points.append(total)
    return [_single(x / total) for x in points]


def _layer_devices(
    n_layer: int, ngl: int, cards: Sequence[Device], splits: Sequence[float], cpu: int
) -> tuple[int, ...]:
    first = max(n_layer + 1 - ngl, 0)
    found = []
    for i in range(n_layer + 1):
        if i < first:
            found.append(cpu)
        else:
            at = bisect_right(splits, _single((i - first) / ngl))
            found.append(cards[at].index)
    return tuple(found)


def _part_devices(
    parts: Sequence[Part],
    layer_devices: Sequence[int],
    targets: Sequence[int],
    asked: PlacementOptions,
    cpu: int,
) -> tuple[int, ...]:
    # INPUT is the last of them: what is looked up stays with the processor.
    homes, n_bare = (*layer_devices, cpu), asked.n_cpu_moe
    found = [
        targets[part.override]
        if part.override is not None
        else (cpu if part.layer < n_bare and part.is_expert else homes[part.layer])
        for part in parts
    ]
    if asked.split_mode == "row" and cpu > 1:
        # Stacked experts are not multiplied by rows of several cards.
        for i, part in enumerate(parts):
            if part.override is None and part.largest_bytes and not part.is_expert:
                found[i] = ROWS if found[i] != cpu else cpu
    return tuple(found)


def _shares(
    cards: Sequence[Device], splits: Sequence[float], devices: Sequence[Device]
) -> tuple[float, ...]:
    shares = [0.0] * len(devices)
    before = 0.0
    for card, point in zip(cards, splits, strict=False):
        shares[card.index] = point - before
        before = point
    return tuple(shares)
