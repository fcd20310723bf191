"""The placement that llama.cpp would choose so that a model fits its cards.

The rules are those of `llama-fit-params` (MIT, commit 0c1e570, `common/fit.cpp`) at a context
that is given: all on the cards if that leaves a margin free; else layers from the last one on,
those of a model with experts first without them; then experts from the front as far as there is
room, and part of one layer more.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tokcast.predictor.errors import InputError
from tokcast.predictor.memory import Setting
from tokcast.predictor.placement.devices import Device
from tokcast.predictor.placement.filling import (
    PATTERNS,
    Filling,
    Overflow,
    made_whole,
    next_partial,
)
from tokcast.predictor.placement.inventory import Inventory
from tokcast.predictor.placement.memory import device_memory
from tokcast.predictor.placement.plan import PlacementOptions, place

# What is left free on each card.
MARGIN_BYTES = 1024.0 * 2**20


def fit(
    model: Inventory,
    devices: tuple[Device, ...],
    n_context: int,
    setting: Setting | None = None,
    options: PlacementOptions | None = None,
    margin_bytes: float = MARGIN_BYTES,
) -> PlacementOptions:
    """Return options that fit a context into the cards, as llama.cpp would choose them.

    Of `options`, what is not about layers is kept. What does not fit goes to main memory, whatever
    its size. Raises InputError where a card's memory is not known, for a split by rows, and where
    layers or overrides are given already.
    """
    asked = options or PlacementOptions()
    _check(devices, asked)
    cards = (devices[asked.main_gpu],) if asked.split_mode == "none" else devices[:-1]
    if not cards:
        return asked
    return _Fitter(model, devices, cards, n_context, setting or Setting(), asked, margin_bytes)()


def _check(devices: Sequence[Device], asked: PlacementOptions) -> None:
    unknown = [d.host.name for d in devices[:-1] if d.memory_bytes is None]
    if unknown:
        raise InputError(f"--fit: the memory of {unknown[0]} is not known; say it with --memory")
    if asked.n_gpu_layers is not None or asked.overrides or asked.n_cpu_moe or asked.tensor_split:
        raise InputError("--fit chooses -ngl, -ncmoe, -ot and -ts; expected none of them with it")
    if asked.split_mode == "row":
        raise InputError("--fit: llama.cpp does not fit a split by rows; expected -sm layer")


@dataclass(slots=True)
class _Fitter:
    model: Inventory
    devices: tuple[Device, ...]
    cards: tuple[Device, ...]
    n_context: int
    setting: Setting
    asked: PlacementOptions
    margin_bytes: float

    def __call__(self) -> PlacementOptions:
        targets = self._targets()
        if all(m <= t for m, t in zip(self._memory_of(self.asked), targets, strict=True)):
            return self.asked
        has_experts = self.model.n_expert_layer > 0
        has_room = has_experts and self._has_room_without_experts(targets)
        fillings = self._from_the_back(targets, has_experts)
        if has_room:
            fillings = self._with_experts(targets, fillings)
        return self._options(fillings)

    def _n_layer(self) -> int:
        # llama.cpp leaves blocks that predict further tokens out of this count.
        return len(self.model.spec.layers)

    def _targets(self) -> list[float]:
        return [(c.memory_bytes or 0.0) - self.margin_bytes for c in self.cards]

    def _memory_of(self, options: PlacementOptions) -> list[float]:
        placement = place(self.model, self.devices, options)
        memory = device_memory(placement, self.n_context, self.setting)
        return [memory[c.index].total_bytes for c in self.cards]

    def _memory(self, fillings: Sequence[Filling]) -> list[float]:
        return self._memory_of(self._options(fillings))

    def _has_room_without_experts(self, targets: Sequence[float]) -> bool:
        bare = replace(self.asked, n_cpu_moe=self.model.n_layer)
        return sum(targets) > sum(self._memory_of(bare))

    def _options(self, fillings: Sequence[Filling]) -> PlacementOptions:
        """Return the words for a filling: layers a card, and patterns for what overflows."""
        n_gpu_layers = sum(f.n_layer for f in fillings)
        layer = self._n_layer() + 1 - n_gpu_layers
        first: list[tuple[str, str]] = []
        bare: list[int] = []
        for filling in fillings:
            layer += filling.n_full
            # llama.cpp's own last one may lie behind the last block.
            partial = range(layer, min(layer + filling.n_part, self.model.n_layer))
            if filling.n_part and filling.overflow != "experts":
                pattern = rf"blk\.{layer}{PATTERNS[filling.overflow]}"
                first.append((pattern, filling.overflow_to))
                partial = partial[1:]
            bare += partial
            layer += filling.n_part
        if bare:
            numbers = "|".join(map(str, bare))
            first.append((rf"blk\.({numbers}){PATTERNS['experts']}", "CPU"))
        split = tuple(float(f.n_layer) for f in fillings) if len(fillings) > 1 else ()
        if not any(split):
            split = ()
        return replace(
            self.asked, n_gpu_layers=n_gpu_layers, overrides=tuple(first), tensor_split=split
        )

    def _from_the_back(self, targets: Sequence[float], has_experts: bool) -> list[Filling]:
        """Return layers a card, the last card first; experts stay in main memory."""
        fillings = [Filling() for _ in self.cards]
        last = len(fillings) - 1
        for card in range(last, -1, -1):
            left = self._n_layer() + 1 - sum(f.n_layer for f in fillings[card + 1 :])

            before = tuple(fillings)

            def of(n: int, card: int = card, before: tuple[Filling, ...] = before) -> list[Filling]:
                # The output is a layer too and can't be in part.
                n_part = (n - (card == last and n > 0)) if has_experts else 0
                return [*before[:card], Filling(n, n_part), *before[card + 1 :]]

            fillings = of(self._most(of, 0, left, card, targets[card]))
        return fillings

    def _most(
        self,
        of: Callable[[int], list[Filling]],
        low: int,
        high: int,
        card: int,
        target: float,
    ) -> int:
        """Return the most of `low` to `high` that fit a card, by false position as llama.cpp."""
        memory = self._memory(of(low))[card]
        memory_high = self._memory(of(high))[card]
        if memory_high <= target:
            return high
        while high - low > 1:
            delta = high - low
            step = int(delta * (target - memory) / (memory_high - memory))
            # Below zero llama.cpp's unsigned number wraps around.
            step = delta - 1 if step < 0 else min(max(step, 1), delta - 1)
            tried = self._memory(of(low + step))[card]
            if tried <= target:
                low, memory = low + step, tried
            else:
                high, memory_high = low + step, tried
        return low

    def _with_experts(self, targets: Sequence[float], fillings: list[Filling]) -> list[Filling]:
        """Return the layers with experts again, from the front as far as they fit."""
        start = next(i for i, f in enumerate(fillings) if f.n_layer)
        for card in range(len(fillings)):
            start = next_partial(fillings, start)
            if card > start or start == len(fillings):
                break
            before = list(fillings)

            def of(
                n: int, card: int = card, before: list[Filling] = before, start: int = start
            ) -> list[Filling]:
                return made_whole(before, card, n, start)

            n_most = sum(f.n_part for f in before[start:])
            fillings = of(self._most(of, 0, n_most, card, targets[card]))
            start = next_partial(fillings, start)
            fillings = self._one_more(targets, fillings, card, start)
        return fillings

    def _one_more(
        self, targets: Sequence[float], fillings: list[Filling], card: int, start: int
    ) -> list[Filling]:
        """Return the same with part of one more layer, as much of it as fits.

        What does not fit of that layer goes to the next card if there is one.
        """
        if start == len(fillings):
            return fillings
        is_last = card == len(fillings) - 1
        moved = list(fillings)
        for at, step in ((start, -1), (card, 1)):
            moved[at] = replace(
                moved[at], n_layer=moved[at].n_layer + step, n_part=moved[at].n_part + step
            )
        target = "CPU" if is_last else self.cards[card + 1].name

        def tried(overflow: Overflow) -> list[Filling] | None:
            found = list(moved)
            found[card] = replace(found[card], overflow=overflow, overflow_to=target)
            memory = self._memory(found)
            has_room = is_last or memory[card + 1] < targets[card + 1]
            return found if memory[card] < targets[card] and has_room else None

        with_up = tried("up")
        if with_up is None:
            # The one that only keeps attention overflows to main memory.
            target = "CPU"
            return tried("attention") or fillings
        return tried("gate") or with_up
