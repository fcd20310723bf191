"""How many layers a card takes, and what of the last ones goes elsewhere."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

Overflow = Literal["attention", "up", "gate", "experts"]
PATTERNS: dict[Overflow, str] = {
    "attention": r"\.ffn_(gate|up|gate_up|down).*",
    "up": r"\.ffn_(gate|gate_up|down).*",
    "gate": r"\.ffn_down.*",
    "experts": r"\.ffn_(up|down|gate_up|gate)_(ch|)exps",
}


@dataclass(frozen=True, slots=True)
class Filling:
    """One card's layers: `n_part` of `n_layer`, the last ones, lack some of their matrices.

    `overflow` says what the first of those has on the card ("up": attention and one matrix) and
    `overflow_to` where the rest of it goes; the others have all but their experts on the card.
    """

    n_layer: int = 0
    n_part: int = 0
    overflow: Overflow = "experts"
    overflow_to: str = "CPU"

    @property
    def n_full(self) -> int:
        """Return the layers that are whole on the card."""
        return self.n_layer - self.n_part


def next_partial(fillings: Sequence[Filling], start: int) -> int:
    """Return the first card from `start` on with layers in part, their number without any."""
    return next((i for i in range(start, len(fillings)) if fillings[i].n_part), len(fillings))


def made_whole(fillings: Sequence[Filling], card: int, n: int, start: int) -> list[Filling]:
    """Return fillings with the foremost n layers in part, from card `start` on, whole on a card."""
    found = list(fillings)
    left = n
    for at in range(start, len(found)):
        n_here = min(left, found[at].n_part)
        found[at] = replace(
            found[at], n_layer=found[at].n_layer - n_here, n_part=found[at].n_part - n_here
        )
        found[card] = replace(found[card], n_layer=found[card].n_layer + n_here)
        left -= n_here
    return found
