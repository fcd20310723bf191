"""Many placements of one model on one machine, tried out: what fits, and how fast it is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tokcast.predictor.memory import Setting
from tokcast.predictor.placement.devices import Machine
from tokcast.predictor.placement.fit import MARGIN_BYTES, fit
from tokcast.predictor.placement.inventory import Inventory
from tokcast.predictor.placement.memory import DeviceMemory, device_memory, fits
from tokcast.predictor.placement.plan import Placement, PlacementOptions, place
from tokcast.predictor.placement.speed import Speed
from tokcast.predictor.prediction import Prediction

# Speeds nearer to each other than this are taken for the same.
HARDLY_SLOWER = 0.98
# How much faster a plan may seem that has less on the cards.
MODEL_NOISE = 0.8


@dataclass(frozen=True, slots=True)
class Plan:
    """One placement with what it needs and how fast it generates.

    `n_away` counts the layers that are not whole on the cards, along the sweep it is part of;
    None for a plan of another kind.
    """

    placement: Placement
    memory: tuple[DeviceMemory, ...]
    fits: bool | None
    decode: Prediction
    n_away: int | None = None

    @property
    def cards_bytes(self) -> float:
        """Return what the cards hold."""
        return sum(m.total_bytes for m in self.memory[:-1])

    @property
    def host_bytes(self) -> float:
        """Return what main memory holds."""
        return self.memory[-1].total_bytes


@dataclass(frozen=True, slots=True)
class Trial:
    """What is tried: a model on a machine at a context, timed by `speed`.

    A plan fits that leaves each card the margin which llama.cpp leaves it.
    """

    model: Inventory
    machine: Machine
    n_context: int
    setting: Setting
    speed: Speed

    def __call__(self, options: PlacementOptions, n_away: int | None = None) -> Plan:
        """Return one plan."""
        placement = place(self.model, self.machine.devices, options)
        memory = device_memory(placement, self.n_context, self.setting)
        held = fits(memory, self.machine.is_unified, MARGIN_BYTES)
        return Plan(placement, memory, held, self.speed(placement), n_away)


def sweep(trial: Trial, base: PlacementOptions) -> tuple[Plan, ...]:
    """Return plans from all on the cards to nothing there, a layer at a time.

    Of a model with routed experts, the experts leave the cards before anything else does.
    """
    return tuple(trial(o, n) for n, o in enumerate(_steps(trial, base)))


def _steps(trial: Trial, base: PlacementOptions) -> Iterator[PlacementOptions]:
    model = trial.model
    n_all = model.n_layer + 1
    if not trial.machine.cards:
        yield base
        return
    n_first = min((x.layer for x in model.items if x.is_expert), default=0)
    counts = [0, *range(n_first + 1, model.n_expert_layer + 1)] if model.n_expert_layer else [0]
    for n in counts:
        yield _shared(trial, replace(base, n_cpu_moe=n))
    for n in range(n_all - 1, -1, -1):
        yield _shared(trial, replace(base, n_gpu_layers=n, n_cpu_moe=counts[-1]))


def others(trial: Trial, base: PlacementOptions) -> tuple[Plan, ...]:
    """Return plans of other kinds: as llama.cpp fits one, caches in main memory, one card only."""
    options = []
    if trial.machine.cards and all(c.memory_bytes for c in trial.machine.cards):
        options.append(
            fit(trial.model, trial.machine.devices, trial.n_context, trial.setting, base)
        )
    if trial.machine.cards and not trial.machine.is_unified:
        options.append(replace(base, no_kv_offload=True))
    if len(trial.machine.cards) > 1:
        options += [replace(base, split_mode="none", main_gpu=c.index) for c in trial.machine.cards]
    return tuple(trial(o) for o in options)


def _shared(trial: Trial, options: PlacementOptions) -> PlacementOptions:
    """Return options whose layers are shared so that cards fill alike; as they are for one card.

    llama.cpp shares layers by number, which leaves a card empty whose experts are elsewhere.
    """
    cards = trial.machine.cards
    if len(cards) < 2 or options.split_mode != "layer" or not any(c.memory_bytes for c in cards):
        return options
    devices = (cards[0], replace(trial.machine.processor, index=1))
    alone = place(trial.model, devices, options)
    weights = _layer_bytes(alone)
    room = [float(c.memory_bytes or 0.0) for c in cards]
    counts = _counts(
        [w for w, at in zip(weights, alone.layer_devices, strict=True) if at == 0], room
    )
    return replace(options, tensor_split=tuple(map(float, counts))) if sum(counts) else options


def _layer_bytes(placement: Placement) -> list[float]:
    found = [0.0] * len(placement.layer_devices)
    for part, at in zip(placement.parts, placement.part_devices, strict=True):
        if at == 0 and part.layer >= 0:
            found[part.layer] += part.sum.n_bytes
    return found


def _counts(weights: Sequence[float], room: Sequence[float]) -> list[int]:
    """Return how many of consecutive layers each card takes, by its share of the room."""
    total, all_room = sum(weights), sum(room)
    counts, card, filled, until = [0] * len(room), 0, 0.0, room[0] / all_room * total
    for weight in weights:
        while filled + weight / 2 > until and card < len(room) - 1:
            card += 1
            until += room[card] / all_room * total
        counts[card] += 1
        filled += weight
    return counts


def best(plans: Sequence[Plan]) -> Plan | None:
    """Return the fastest plan that fits, None where none does.

    One of the sweep, which takes few words to say, is preferred to others hardly faster; and of
    the sweep the first that fits to a later one that seems a little faster, for less on the cards
    gains nothing: such a gain is the difference between what was fitted with and without cards
    beside them.
    """
    fitting = [p for p in plans if p.fits is not False]
    if not fitting:
        return None
    fastest = max(fitting, key=lambda p: p.decode.tok_per_s)
    first = next((p for p in fitting if p.n_away is not None), fastest)
    limit = MODEL_NOISE if fastest.n_away is not None else HARDLY_SLOWER
    return first if first.decode.tok_per_s >= limit * fastest.decode.tok_per_s else fastest


def leanest(plans: Sequence[Plan], min_tok_per_s: float) -> Plan | None:
    """Return the plan that fits, is fast enough and holds least on the cards."""
    enough = [p for p in plans if p.fits is not False and p.decode.tok_per_s >= min_tok_per_s]
    return min(enough, key=lambda p: p.cards_bytes, default=None)


def cliff(plans: Sequence[Plan]) -> tuple[Plan, Plan] | None:
    """Return the neighbours of a sweep between which most tokens/s are lost."""
    found = max(pairwise(plans), key=lambda pair: _lost(*pair), default=None)
    return found if found is not None and _lost(*found) > 0 else None


def _lost(before: Plan, after: Plan) -> float:
    return before.decode.tok_per_s - after.decode.tok_per_s
