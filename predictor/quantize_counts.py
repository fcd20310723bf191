"""How many tensors of one shape get which type: `quantize` asked once for many blocks."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache

from tokcast.predictor.architecture import Shape
from tokcast.predictor.quantize import VALUE_LIKE, Run, Traits, role_of, row_of, treatment_of

# A tensor's place: how many of its part come before it, and its block.
Place = tuple[int, int]
Counts = tuple[tuple[str, int], ...]
# The tensors of one kind of block: (name in the block, shape).
Kind = Sequence[tuple[str, Shape]]

_BY_POSITION = ("first16", "first8", "middle", "more", "top2", "top4")
# Every block size divides it, so that what a row leaves over says which types it can have.
_LARGEST_BLOCK = 256


def places(
    kind_of: Sequence[int], kinds: Mapping[int, Kind]
) -> tuple[dict[tuple[int, str], tuple[Place, ...]], int]:
    """Return {(kind, name): places} of counted tensors, and the number of value matrices.

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
    return [(tail, _part(tail)) for tail in names]


@cache
def _part(tail: str) -> str:
    role = role_of(tail)
    return "v" if role in VALUE_LIKE else role


@cache
def _is_by_position(file_type: str, experts: int, part: str) -> bool:
    cell = row_of(file_type, experts).get(part) or ""
    return any(word in cell for word in _BY_POSITION)


class Rules:
    """The rules as one model meets them; what they said of a like tensor is remembered."""

    _known: dict[tuple[object, ...], Counts] = {}

    def __init__(self, traits: Traits) -> None:
        self._traits = traits
        t = traits
        self._likeness = (t.gqa >= 4, min(t.experts, 9), t.tied, t.is_70b)

    def counts(self, file_type: str, tail: str, shape: Shape, where: tuple[Place, ...]) -> Counts:
        """Return (type, number of tensors) of a file type for tensors of one name and shape."""
        part = _part(tail)
        traits = self._traits
        likeness = (file_type, tail, shape[0] % _LARGEST_BLOCK, len(shape), self._likeness)
        if not _is_by_position(file_type, traits.experts, part):
            found = self._known.get(likeness)
            if found is None:
                found = self._asked(file_type, tail, shape, where[:1])
                self._known[likeness] = found
            return ((found[0][0], len(where)),)
        key = (*likeness, traits.n_blocks, traits.n_values, where)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._asked(file_type, tail, shape, where)
        return found

    def _asked(
        self, file_type: str, tail: str, shape: Shape, where: tuple[Place, ...]
    ) -> Counts:
        run = Run(self._traits, file_type, imatrix=False, fused_as_v=True)
        types = Counter(run.at(position, block, tail, shape) for position, block in where)
        return tuple(types.items())
