"""A model's tensors by layer, component and type: what a placement moves about.

Tensors of one layer that count alike and that no pattern tells apart are one part, so that
a placement is some hundreds of numbers instead of a thousand tensors.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tokcast.predictor.header import Header, Tensor
from tokcast.predictor.model import model_spec
from tokcast.predictor.spec import Component, ModelSpec
from tokcast.predictor.weights import (
    Groups,
    Sum,
    component_in_block,
    sort_tensors,
    use_in_block,
    use_outside,
)

# The place of tables that are only looked up: llama.cpp keeps them with the processor.
INPUT = -1
# llama.cpp's pattern of routed experts (MIT, commit 0c1e570, common/common.h).
EXPERTS = re.compile(r"\.ffn_(up|down|gate|gate_up)_(ch|)exps")
_LOOKED_UP = frozenset({"embedding"})

Key = tuple[Component, str, int, int]


@dataclass(frozen=True, slots=True)
class Item:
    """One tensor: where it belongs, what it counts for, and its bytes.

    `is_copy` marks a tied table's second copy, which exists only where the head is on a card.
    """

    tensor: Tensor
    layer: int
    key: Key
    is_expert: bool
    is_copy: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """Tensors that lie together; `override` is the first pattern that names them, or None.

    `largest_bytes` is the largest matrix among them: what a card must hold a copy of where it
    multiplies by weights in main memory.
    """

    layer: int
    key: Key
    is_expert: bool
    is_copy: bool
    override: int | None
    sum: Sum
    largest_bytes: int

    @property
    def active_bytes(self) -> float:
        """Return the bytes that one decoded token reads."""
        return self.sum.n_bytes * self.key[2] / self.key[3]


class Inventory:
    """A model's spec with its tensors by place; made once, placed many times.

    `spec` is the model's where it is known already, from a header that had all its metadata.
    """

    def __init__(self, header: Header, spec: ModelSpec | None = None) -> None:
        self.spec: ModelSpec = spec or model_spec(header)
        sorted_tensors = sort_tensors(header.tensors)
        # Blocks that predict further tokens count as layers though they are not loaded.
        self.n_layer = max(sorted_tensors.blocks, default=-1) + 1
        self.items = tuple(_items(self.spec, header, self.n_layer))
        self._parts: dict[tuple[str, ...], tuple[Part, ...]] = {}

    @property
    def n_expert_layer(self) -> int:
        """Return the number of the last layer with routed experts, plus one."""
        return max((x.layer + 1 for x in self.items if x.is_expert), default=0)

    def parts(self, patterns: tuple[str, ...] = ()) -> tuple[Part, ...]:
        """Return the parts as regular expressions tell them apart; kept for the next call."""
        found = self._parts.get(patterns)
        if found is None:
            found = self._parts[patterns] = tuple(_parts(self.items, patterns))
        return found


def _items(spec: ModelSpec, header: Header, n_layer: int) -> Iterator[Item]:
    tensors = sort_tensors(header.tensors)
    own = {x.index: x for x in spec.layers}
    for block, members in tensors.blocks.items():
        layer = own.get(block)
        if layer is None:
            continue
        routing = (layer.n_expert_used, layer.n_expert) if layer.n_expert else (1, 1)
        is_reusing = not layer.has_kv
        for local, tensor in members.items():
            component = component_in_block(local)
            use = use_in_block(local, component, routing, False, is_reusing)
            is_expert = EXPERTS.search(tensor.name) is not None
            yield Item(tensor, block, (use[0], tensor.type, use[1], use[2]), is_expert)
    for tensor in tensors.outside:
        yield from _outside(tensor, spec, n_layer)


def _outside(tensor: Tensor, spec: ModelSpec, n_layer: int) -> Iterator[Item]:
    component, used, of = use_outside(tensor.name, spec.tied_embeddings)
    if component == "mtp":
        return
    key = (component, tensor.type, used, of)
    yield Item(tensor, INPUT if component in _LOOKED_UP else n_layer, key, is_expert=False)
    if spec.tied_embeddings and tensor.name == "token_embd.weight":
        yield Item(tensor, INPUT, ("embedding", tensor.type, 0, 1), is_expert=False, is_copy=True)


def _override(name: str, patterns: Sequence[re.Pattern[str]]) -> int | None:
    return next((i for i, pattern in enumerate(patterns) if pattern.search(name)), None)


def _parts(items: Iterable[Item], patterns: tuple[str, ...]) -> Iterator[Part]:
    compiled = [re.compile(p) for p in patterns]
    sums: dict[tuple[int, Key, bool, bool, int | None], Sum] = {}
    largest: dict[tuple[int, Key, bool, bool, int | None], int] = {}
    for item in items:
        override = _override(item.tensor.name, compiled)
        place = (item.layer, item.key, item.is_expert, item.is_copy, override)
        one = Sum(n_bytes=item.tensor.n_bytes) if item.is_copy else _sum(item)
        sums.setdefault(place, Sum()).add(one)
        is_matrix = len(item.tensor.shape) > 1
        if is_matrix and item.layer != INPUT:
            largest[place] = max(largest.get(place, 0), item.tensor.n_bytes)
    for place, total in sums.items():
        yield Part(*place, total, largest.get(place, 0))


def _sum(item: Item) -> Sum:
    component, type_name, used, of = item.key
    groups = Groups({})
    groups.add(item.tensor, component, used, of)
    return groups.sums[component, type_name, used, of]
