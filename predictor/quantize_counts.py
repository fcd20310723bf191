"""How many tensors of one shape get which type: `quantize` asked once for many blocks."""

from collections import Counter
from collections.abc import Mapping, Sequence

from tokcast.predictor.architecture import Shape
from tokcast.predictor.quantize import Run, Traits, is_by_position, part_of, treatment_of

# A tensor's place: how many of its part come before it, and its block.
Place = tuple[int, int]
Counts = tuple[tuple[str, int], ...]
# The tensors of one kind of block: (name in the block, shape).
Kind = Sequence[tuple[str, Shape]]

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


class Rules:
    """The rules as one model meets them; what they said of a like tensor is remembered."""

    def __init__(self, traits: Traits) -> None:
        self._traits = traits
        t = traits
        self._likeness = (t.gqa >= 4, min(t.experts, 9), t.tied, t.is_70b)

    def like(self, tail: str, shape: Shape) -> int:
        """Return a number that tensors share which the rules treat alike but for their places."""
        key = (tail, shape[0] % _LARGEST_BLOCK, len(shape), self._likeness)
        return _numbers.setdefault(key, len(_numbers))

    def counts(
        self, file_type: str, like: int, tail: str, shape: Shape, where: tuple[Place, ...]
    ) -> Counts:
        """Return (type, number of tensors) of a file type for tensors of one name and shape."""
        found = _constant.get((file_type, like))
        if found is not None:
            return ((found, len(where)),)
        counts = Run(self._traits, file_type, imatrix=False, fused_as_v=True).counts(
            tail, shape, where
        )
        if not is_by_position(file_type, self._traits.experts, part_of(tail)):
            (_constant[file_type, like],) = counts
        return tuple(counts.items())


# What was found so far, for the life of the process.
_numbers: dict[tuple[object, ...], int] = {}
_constant: dict[tuple[str, int], str] = {}
