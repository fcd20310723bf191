"""What all file types of a catalogue model have in common: metadata, layers, tensors by kind.

Blocks of one kind hold the same tensors, so a model's shapes are listed once a kind.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from tokcast.predictor import mlx_quantize
from tokcast.predictor.architecture import Architecture, Shape
from tokcast.predictor.catalogue import Entry, type_block
from tokcast.predictor.families import KNOWN
from tokcast.predictor.geometry import Geometry, first_reusing
from tokcast.predictor.header import Tensor, Value
from tokcast.predictor.keys import Keys
from tokcast.predictor.metadata import metadata
from tokcast.predictor.model import shown_metadata, warn_of_architecture
from tokcast.predictor.quantize import traits_of
from tokcast.predictor.quantize_counts import Counts, Place, Rules, is_fixed, places
from tokcast.predictor.quantize_roles import treatment_of
from tokcast.predictor.shapes import in_block, outside
from tokcast.predictor.spec import Component, Layer
from tokcast.predictor.weights import (
    TABLES,
    Groups,
    Sum,
    component_in_block,
    group_of,
    use_in_block,
    use_outside,
)
from tokcast.predictor.windows import Windows

Use = tuple[Component, int, int]
Key = tuple[Component, str, int, int]
OUTSIDE = ((0, -1),)


@dataclass(frozen=True, slots=True)
class Slot:
    """Tensors of one name in the blocks of one kind: what one adds up to, and where they are."""

    use: Use
    tail: str
    shape: Shape
    one: Sum
    n_active: int
    is_table: bool
    like: int
    where: tuple[Place, ...]

    @property
    def is_expert(self) -> bool:
        """Return whether these are routed experts."""
        return self.tail.endswith("_exps.weight")


class Body:
    """What all file types of one format have in common: metadata, layers, shapes."""

    def __init__(self, model: Entry, is_mlx: bool) -> None:
        arch = model.architecture
        self.arch = arch = mlx_quantize.without_mtp(arch) if is_mlx else arch
        self.experts_as = model.experts_as
        self.plain: dict[str, Value] = metadata(arch, None if is_mlx else 0, model.title)
        self.keys = Keys(self.plain, arch.arch)
        n_own = arch.block_count - arch.mtp_blocks
        geometry = Geometry(arch.arch, self.keys, n_own)
        kind_of, firsts = _kinds(arch, self.keys, n_own)
        tensors = {kind: tuple(in_block(arch, first)) for kind, first in firsts.items()}
        kind_layer = {
            kind: geometry.layer(first, {n: Tensor(n, s, "", 0) for n, s in tensors[kind]})
            for kind, first in firsts.items()
            if first < n_own
        }
        self.layers = tuple(_layers(kind_layer, kind_of[:n_own]))
        where, n_values = places(kind_of, tensors)
        self.rules = Rules(traits_of(arch, n_values))
        everywhere = {kind: [(0, i) for i, k in enumerate(kind_of) if k == kind] for kind in firsts}
        slots = [
            _slot(name, shape, use, where.get((kind, name)) or tuple(everywhere[kind]), self.rules)
            for kind, listed in tensors.items()
            for name, shape, use in _uses(listed, kind_layer.get(kind))
        ]
        slots += [
            _slot(name, shape, use_outside(name, arch.tied_embeddings), OUTSIDE, self.rules)
            for name, shape in outside(arch)
        ]
        self.n_active = sum(slot.n_active * len(slot.where) for slot in slots)
        fixed = [] if is_mlx else [s for s in slots if is_fixed(s.tail, s.shape)]
        others = slots if is_mlx else [s for s in slots if not is_fixed(s.tail, s.shape)]
        self.slots = tuple(others) if is_mlx else _joined(others)
        self.layout = 0 if is_mlx else self.rules.layout(self.slots)
        self.fixed = sums_of(fixed, map(_fixed_counts, fixed))
        self.fixed_groups = {key: group_of(key, total) for key, total in self.fixed.items()}
        self.shown = shown_metadata(self.plain, arch.arch)
        warn_of_architecture(arch.arch, self.keys)
        self.is_known = arch.arch in KNOWN and not geometry.is_guessed


def _layers(kind_layer: Mapping[int, Layer], kind_of: Sequence[int]) -> Iterator[Layer]:
    """Yield the layer of every block; `replace` would take a third of all the time."""
    values = {
        kind: [getattr(layer, field.name) for field in fields(layer)[1:]]
        for kind, layer in kind_layer.items()
    }
    for index, kind in enumerate(kind_of):
        yield Layer(index, *values[kind])


def _kinds(arch: Architecture, keys: Keys, n_own: int) -> tuple[list[int], dict[int, int]]:
    """Return each block's kind, and each kind's first block."""
    windows = Windows(arch.arch, keys, n_own)
    reusing = first_reusing(arch.arch, keys, n_own)
    numbers: dict[object, int] = {}
    firsts: dict[int, int] = {}
    kind_of = []
    for i in range(arch.block_count):
        is_own = i < n_own
        key = (
            arch.layers[i],
            arch.ffn[i],
            is_own,
            is_own and windows.at(i),
            reusing is not None and i >= reusing,
            tuple(i in blocks for blocks, _, _ in arch.block_tensors),
        )
        kind = numbers.setdefault(key, len(numbers))
        firsts.setdefault(kind, i)
        kind_of.append(kind)
    return kind_of, firsts


def _uses(
    tensors: Iterable[tuple[str, Shape]], layer: Layer | None
) -> Iterator[tuple[str, Shape, Use]]:
    """Yield (name, shape, use) of a kind's tensors; without a layer they are MTP blocks."""
    routing = (layer.n_expert_used, layer.n_expert) if layer and layer.n_expert else (1, 1)
    is_reusing = layer is not None and not layer.has_kv
    for name, shape in tensors:
        component = component_in_block(name)
        yield name, shape, use_in_block(name, component, routing, layer is None, is_reusing)


def _slot(name: str, shape: Shape, use: Use, where: tuple[Place, ...], rules: Rules) -> Slot:
    groups = Groups({})
    groups.add(Tensor(name, shape, "", 0), *use)
    (one,) = groups.sums.values()
    is_table = name in TABLES and len(shape) > 1
    like = rules.like(name, shape)
    return Slot(use, name, shape, one, groups.active_params, is_table, like, where)


def _joined(slots: Iterable[Slot]) -> tuple[Slot, ...]:
    """Return slots with those as one that always have the same types: gate and up, say."""
    found: dict[object, Slot] = {}
    for slot in slots:
        key = (slot.use, slot.like, slot.where, slot.is_table, slot.is_expert)
        first = found.get(key)
        if first is None:
            found[key] = slot
        else:
            first.one.add(slot.one)
    return tuple(found.values())


def sums_of(slots: Iterable[Slot], counts: Iterable[Counts]) -> dict[Key, Sum]:
    """Return slots added up by component, type and routing, from how many have which type."""
    sums: dict[Key, Sum] = {}
    for slot, found in zip(slots, counts, strict=True):
        component, used, of = slot.use
        one = slot.one
        for type_name, n in found:
            key = (component, type_name, used, of)
            total = sums.get(key)
            if total is None:
                total = sums[key] = Sum()
            # Thousands of times a command: no call for each.
            block, block_bytes = type_block(type_name)
            n_bytes = one.n_params // block * block_bytes
            total.n_params += n * one.n_params
            total.n_bytes += n * n_bytes
            total.n_tensors += n * one.n_tensors
            total.n_matmul_params += n * one.n_matmul_params
            total.n_activations += n * one.n_activations
            if slot.is_table:
                total.n_lookup_bytes += n * (n_bytes // slot.shape[1])
    return sums


def _fixed_counts(slot: Slot) -> Counts:
    is_table_of_ids = len(slot.shape) > 1 and treatment_of(slot.tail) == "I32"
    return (("I32" if is_table_of_ids else "F32", len(slot.where)),)
