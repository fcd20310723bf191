"""Which part of a model each tensor belongs to, and how much of it a token reads."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from tokcast.predictor.header import Tensor
from tokcast.predictor.spec import Component, WeightGroup

# Block number → tensor name inside the block → tensor.
Blocks = Mapping[int, Mapping[str, Tensor]]

_VISION = ("v.", "a.", "mm.", "vision_", "audio_", "multi_modal_projector.", "resampler.")
TABLES = frozenset(
    {
        "token_embd.weight",
        "per_layer_token_embd.weight",
        "position_embd.weight",
        "token_types.weight",
    }
)
_HEADS = frozenset({"output.weight", "output.bias", "output.scale", "cls.weight", "cls.bias"})
# First prefix that fits decides; "norm" and experts are told before, by parts of the name.
_BY_PREFIX: tuple[tuple[str, Component], ...] = (
    ("ffn_gate_inp", "router"),
    ("ffn_gate_tid2eid", "router"),
    ("exp_probs_b", "router"),
    ("ffn", "ffn"),
    ("channel_mix_", "ffn"),
    ("attn_", "attention"),
    ("cross_attn_", "attention"),
    ("indexer", "attention"),
    ("ssm_", "recurrent"),
    ("shortconv.", "recurrent"),
    ("time_mix_", "recurrent"),
    ("nextn.", "mtp"),
)


@dataclass(frozen=True, slots=True)
class Sorted:
    """Tensors by place: those of numbered blocks, the rest, and the number left out as vision."""

    blocks: dict[int, dict[str, Tensor]]
    outside: tuple[Tensor, ...]
    n_vision: int


def sort_tensors(tensors: Iterable[Tensor]) -> Sorted:
    """Return tensors by block; a decoder's blocks stand for a T5 model's.

    A block number is a name's own digits, so nothing is sized by it.
    """
    blocks: dict[int, dict[str, Tensor]] = {}
    outside: list[Tensor] = []
    n_vision = 0
    for tensor in tensors:
        head, _, rest = tensor.name.removeprefix("dec.").partition(".")
        number, _, local = rest.partition(".")
        if head == "blk" and number.isascii() and number.isdigit() and len(number) <= 5:
            blocks.setdefault(int(number), {})[local] = tensor
        elif tensor.name.startswith(_VISION):
            n_vision += 1
        else:
            outside.append(tensor)
    return Sorted(dict(sorted(blocks.items())), tuple(outside), n_vision)


def component_in_block(local: str) -> Component:
    """Return the component of a tensor named inside a block, such as `attn_q.weight`."""
    name, _, _ = local.rpartition(".")
    name = name or local
    if "norm" in name or name == "time_mix_ln":
        return "norm"
    if "_shexp" in name:
        return "shared_experts"
    if _is_expert(name):
        return "experts"
    for prefix, component in _BY_PREFIX:
        if name.startswith(prefix):
            return component
    return "other"


def _is_expert(name: str) -> bool:
    if name.endswith(("_exps", "_chexps")):
        return True
    # Before 2024 every expert was a tensor of its own: ffn_up.7
    stem, _, number = name.rpartition(".")
    return stem in {"ffn_gate", "ffn_up", "ffn_down"} and number.isdigit()


def component_outside(name: str, is_tied: bool) -> Component:
    """Return the component of a tensor outside the blocks; a tied table is the head."""
    if name in _HEADS or (is_tied and name == "token_embd.weight"):
        return "head"
    if name in TABLES:
        return "embedding"
    if "norm" in name:
        return "norm"
    if name.startswith(("nextn.", "mtp.")):
        return "mtp"
    return "other"


@dataclass(slots=True)
class Sum:
    """What the tensors of one group add up to."""

    n_params: int = 0
    n_bytes: int = 0
    n_tensors: float = 0.0
    n_matmul_params: int = 0
    n_activations: float = 0.0
    n_lookup_bytes: int = 0

    def add(self, other: "Sum") -> None:
        """Add what other tensors add up to."""
        self.n_params += other.n_params
        self.n_bytes += other.n_bytes
        self.n_tensors += other.n_tensors
        self.n_matmul_params += other.n_matmul_params
        self.n_activations += other.n_activations
        self.n_lookup_bytes += other.n_lookup_bytes


@dataclass(slots=True)
class Groups:
    """Sums by (component, type, used experts, all experts); used = 0 where nothing is read."""

    sums: dict[tuple[Component, str, int, int], Sum]
    active_params: int = 0

    def add(self, tensor: Tensor, component: Component, used: int, of: int) -> None:
        """Count a tensor of which a token reads `used` parts out of `of`."""
        key = (component, tensor.type, used, of)
        total = self.sums.get(key)
        if total is None:
            total = self.sums[key] = Sum()
        n_params = tensor.n_params
        total.n_params += n_params
        total.n_bytes += tensor.n_bytes
        if tensor.name in TABLES and len(tensor.shape) > 1 and tensor.shape[1]:
            total.n_lookup_bytes += tensor.n_bytes // tensor.shape[1]
        if used:
            self.active_params += n_params * used // of
            _add_read(total, tensor, component, used, of)


def _add_read(total: Sum, tensor: Tensor, component: Component, used: int, of: int) -> None:
    shape = tensor.shape
    is_matrix = len(shape) > 1 and component != "norm" and tensor.name.endswith(".weight")
    if is_matrix:
        # Stacked experts are one tensor of `of` matrices, of which a token uses `used`.
        is_stack = component == "experts" and len(shape) > 2
        n_matrices = used if is_stack else tensor.n_params // max(shape[0] * shape[1], 1)
        share = 1.0 if is_stack else used / of
        total.n_matmul_params += tensor.n_params
        total.n_activations += (shape[0] + shape[1]) * n_matrices * share
        total.n_tensors += share
    elif component == "norm" and not tensor.name.endswith(".bias"):
        total.n_activations += 2 * tensor.n_params
        total.n_tensors += 1


def weight_groups(
    tensors: Sorted,
    experts: Mapping[int, tuple[int, int]],
    mtp_blocks: Container[int],
    reusing_blocks: Container[int],
    is_tied: bool,
) -> tuple[tuple[WeightGroup, ...], int]:
    """Return the weights by component and type, and how many parameters one token runs through.

    `experts` gives (used, all) for the blocks that route; `reusing_blocks` take keys and
    values from an earlier block, so that their own projections are never run.
    """
    groups = Groups({})
    local_components: dict[str, Component] = {}
    for block, members in tensors.blocks.items():
        is_mtp, is_reusing = block in mtp_blocks, block in reusing_blocks
        routing = experts.get(block, (1, 1))
        for local, tensor in members.items():
            component = local_components.get(local)
            if component is None:
                component = local_components[local] = component_in_block(local)
            groups.add(tensor, *use_in_block(local, component, routing, is_mtp, is_reusing))
    for tensor in tensors.outside:
        groups.add(tensor, *use_outside(tensor.name, is_tied))
    return _finished(groups), groups.active_params


def use_in_block(
    local: str, component: Component, routing: tuple[int, int], is_mtp: bool, is_reusing: bool
) -> tuple[Component, int, int]:
    """Return the component a block's tensor counts for, and the share of it that a token reads."""
    if is_mtp:
        return "mtp", 0, 1
    if component == "experts":
        return component, *routing
    if is_reusing and local.startswith(("attn_k", "attn_v")):
        return component, 0, 1
    return component, 1, 1


def use_outside(name: str, is_tied: bool) -> tuple[Component, int, int]:
    """Return the same for a tensor outside the blocks."""
    component = component_outside(name, is_tied)
    is_idle = component in {"embedding", "mtp"} or name.startswith("enc.")
    return component, 0 if is_idle else 1, 1


def _finished(groups: Groups) -> tuple[WeightGroup, ...]:
    return tuple(group_of(key, total) for key, total in sorted(groups.sums.items()))


def group_of(key: tuple[Component, str, int, int], total: Sum) -> WeightGroup:
    """Return a finished group from its (component, type, used, of) and sums."""
    component, type_name, used, of = key
    return WeightGroup(
        component,
        type_name,
        total.n_params,
        total.n_bytes,
        round(total.n_tensors),
        used / of,
        total.n_matmul_params,
        round(total.n_activations),
        total.n_lookup_bytes,
    )


def largest_type(groups: Iterable[WeightGroup]) -> str:
    """Return the type that most of a model's bytes have."""
    by_type: dict[str, int] = {}
    for group in groups:
        by_type[group.type] = by_type.get(group.type, 0) + group.n_bytes
    return max(by_type, key=by_type.__getitem__, default="unknown")
