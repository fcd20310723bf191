"""How many tensors of one shape get which type: `quantize` asked once for many blocks."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Protocol

from tokcast.predictor.architecture import Shape
from tokcast.predictor.quantize import Run, Traits, is_by_position, row_of
from tokcast.predictor.quantize_roles import is_kept, part_of, role_of, treatment_of
from tokcast.predictor.quantize_rules import FILE_TYPES

# A tensor's place: how many of its part come before it, and its block.
Place = tuple[int, int]
Counts = tuple[tuple[str, int], ...]
# The tensors of one kind of block: (name in the block, shape).
Kind = Sequence[tuple[str, Shape]]


class Alike(Protocol):
    """Tensors that the rules treat alike: one's name and shape, and where they are."""

    @property
    def like(self) -> int:
        """Return what `Rules.like` says of them."""

    @property
    def tail(self) -> str:
        """Return a name, without the block."""

    @property
    def shape(self) -> Shape:
        """Return a shape."""

    @property
    def where(self) -> tuple[Place, ...]:
        """Return their places."""


# Every block size divides it, so that what a row leaves over says which types it can have.
_LARGEST_BLOCK = 256


def is_fixed(tail: str, shape: Shape) -> bool:
    """Say whether a tensor has the same type whatever the file type."""
    return len(shape) < 2 or treatment_of(tail) in ("F32", "I32")


def places(
    kind_of: Sequence[int], kinds: Mapping[int, Kind]
) -> tuple[dict[tuple[int, str], tuple[Place, ...]], int]:
    """Return {(kind, name): places} of the tensors rules count, and the number of values.

    `kind_of` gives each block's kind.
    """
    seen: Counter[str] = Counter()
    found: dict[tuple[int, str], list[Place]] = {}
    counted = {kind: _counted(tensors) for kind, tensors in kinds.items()}
    for block, kind in enumerate(kind_of):
        for tail, part in counted[kind]:
            position = seen[part]
            seen[part] = position + 1
            found.setdefault((kind, tail), []).append((position, block))
    return {key: tuple(each) for key, each in found.items()}, seen["v"]


def _counted(tensors: Kind) -> list[tuple[str, str]]:
    """Return (name, part) of the tensors that the rules count, in their order."""
    names = sorted(
        tail for tail, shape in tensors if len(shape) > 1 and treatment_of(tail) == "quantized"
    )
    return [(tail, part_of(tail)) for tail in names]


@cache
def _cells(part: str, experts: int) -> tuple[str, ...]:
    """Return what every file type's rules say of a part: alike parts are quantized alike."""
    return tuple(row_of(name, experts).get(part) or "" for name in FILE_TYPES)


class Rules:
    """The rules as one model meets them; what they said of like tensors is remembered."""

    def __init__(self, traits: Traits) -> None:
        self._traits = traits
        t = traits
        self._likeness = (t.gqa >= 4, min(t.experts, 9), t.tied, t.is_70b)

    def like(self, tail: str, shape: Shape) -> int:
        """Return a number that tensors share which the rules treat alike but for their places."""
        role = role_of(tail)
        special = tail if role in ("output", "embedding") or is_kept(tail) else ""
        key = (
            special,
            _cells(part_of(tail), self._traits.experts),
            # Values can be raised in models of a certain shape.
            part_of(tail) == "v" and self._traits.is_70b,
            shape[0] % _LARGEST_BLOCK,
            len(shape),
            self._likeness,
        )
        return _numbers.setdefault(key, len(_numbers))

    def layout(self, tensors: Sequence[Alike]) -> int:
        """Return a number that models share whose tensors are alike and in the same places."""
        t = self._traits
        key = (t.n_blocks, t.n_values, *((a.like, a.where) for a in tensors))
        return _numbers.setdefault(key, len(_numbers))

    def counts(self, file_type: str, layout: int, tensors: Sequence[Alike]) -> tuple[Counts, ...]:
        """Return, for each of the tensors, (type, number of tensors) in a file type."""
        found = _of_layout.get((file_type, layout))
        if found is None:
            found = tuple(self._counts(file_type, each) for each in tensors)
            _of_layout[file_type, layout] = found
        return found

    def _counts(self, file_type: str, alike: Alike) -> Counts:
        constant = _constant.get((file_type, alike.like))
        if constant is not None:
            return ((constant, len(alike.where)),)
        run = Run(self._traits, file_type, imatrix=False, fused_as_v=True)
        counts = run.counts(alike.tail, alike.shape, alike.where)
        if not is_by_position(file_type, self._traits.experts, part_of(alike.tail)):
            (_constant[file_type, alike.like],) = counts
        return tuple(counts.items())


# What was found so far, for the life of the process.
_numbers: dict[tuple[object, ...], int] = {}
_constant: dict[tuple[str, int], str] = {}
_of_layout: dict[tuple[str, int], tuple[Counts, ...]] = {}
