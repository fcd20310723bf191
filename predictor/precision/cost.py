"""What a plan costs on a model: the ledger of the model with its tensors in the plan's formats."""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tokcast.predictor.header import Header, Tensor
from tokcast.predictor.ledger import Phase, Work, Workload, ledger
from tokcast.predictor.memory import memory
from tokcast.predictor.model import model_spec
from tokcast.predictor.precision.formats import Format, format_of
from tokcast.predictor.precision.operators import (
    FUSED,
    OPERATORS,
    Operator,
    activation_of,
    operator_of,
)
from tokcast.predictor.precision.plans import Plan
from tokcast.predictor.precision.products import Bound, Timing, timing
from tokcast.predictor.precision.rates import Rates, multiplied_as
from tokcast.predictor.spec import ModelSpec

# Two names of 16-bit types, so that the ledger tells keys from values.
_KEYS, _VALUES = "F16", "BF16"
_OTHER = "other"
_BETWEEN = "activations"
# Activations are counted in F32, as llama.cpp keeps them.
_COUNTED_BITS = 32.0


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of operator in one format: its work in a step and its times at the peaks."""

    operator: str
    format: str
    n_bytes: float
    flops: float
    arithmetic: str
    time: Timing

    @property
    def bound(self) -> Bound:
        """Return which peak sets its time."""
        return self.time.bound


@dataclass(frozen=True, slots=True)
class Cost:
    """A plan on a model and a chip: a step's seconds at the peaks, and the bytes to hold.

    `seconds` adds up the operators' times one after another, so no operator overlaps with
    another; `fused` names kinds without traffic of their own.
    """

    plan: Plan
    rows: tuple[Row, ...]
    n_tokens: int
    weights_bytes: float
    kv_bytes: float
    other_bytes: float
    fused: tuple[str, ...]

    @property
    def seconds(self) -> float:
        """Return the seconds of a decoded token, or of a whole prompt."""
        return sum(row.time.seconds for row in self.rows)

    @property
    def need_bytes(self) -> float:
        """Return weights, K/V cache, states and buffers."""
        return self.weights_bytes + self.kv_bytes + self.other_bytes


@dataclass(frozen=True, slots=True)
class Step:
    """A decoded token at a depth, or a prompt read at once into an empty cache."""

    phase: Phase
    n_context: int

    @property
    def workload(self) -> Workload:
        """Return it as the ledger's workload."""
        n = self.n_context
        if self.phase == "decode":
            return Workload("decode", 1, n, 1, _KEYS, _VALUES)
        return Workload("prefill", n, 0, n, _KEYS, _VALUES)


def retyped(header: Header, plan: Plan) -> Header:
    """Return a model's header with every tensor in the plan's format.

    A type's name says the kind as well, so that the ledger keeps kinds apart.
    """
    numbers = [_block(t.name) for t in header.tensors]
    n_layer = 1 + max((n for n in numbers if n is not None), default=0)
    biased = any("norm" in t.name and t.name.endswith(".bias") for t in header.tensors)
    tensors = []
    for tensor, number in zip(header.tensors, numbers, strict=True):
        kind = operator_of(tensor.name, has_biases=biased)
        depth = None if number is None else number / n_layer
        tensors.append(_tensor(tensor, kind, plan, depth))
    return replace(header, tensors=tuple(tensors))


def _block(name: str) -> int | None:
    part = name.split(".", 2)[1] if name.startswith("blk.") else ""
    return int(part) if part.isascii() and part.isdigit() else None


def _tensor(tensor: Tensor, kind: Operator | None, plan: Plan, depth: float | None) -> Tensor:
    # Vectors are no matrices: no runtime quantizes them.
    is_matrix = len(tensor.shape) > 1
    f = plan.format_of(kind, depth) if kind is not None and is_matrix else format_of("FP16")
    n_bytes = math.ceil(tensor.n_params * f.bytes)
    return replace(tensor, type=f"{kind or _OTHER}:{f.name}", n_bytes=n_bytes)


def cost(header: Header, plan: Plan, step: Step, rates: Rates) -> Cost:
    """Return what a step takes under a plan; raises InputError as `ledger` does."""
    return cost_of(model_spec(retyped(header, plan)), plan, step, rates)


def cost_of(spec: ModelSpec, plan: Plan, step: Step, rates: Rates) -> Cost:
    """Return the same of a model whose tensors were `retyped` to the plan's formats."""
    sums: dict[tuple[str, str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for work in ledger(spec, step.workload):
        operator, f, arithmetic, share = _place(work, plan)
        cell = sums[operator, f.name, arithmetic]
        cell[0] += work.bytes * share
        cell[1] += work.flops
    rows = [
        Row(operator, name, n_bytes, flops, a, timing(n_bytes, flops, a, rates))
        for (operator, name, a), (n_bytes, flops) in sums.items()
        if n_bytes or flops
    ]
    use = memory(spec, step.n_context)
    return Cost(
        plan,
        tuple(sorted(rows, key=lambda r: _ORDER.index(r.operator))),
        1 if step.phase == "decode" else step.n_context,
        use.weights_bytes,
        use.kv_bytes * plan.kv.bits / 16,
        use.unified_bytes - use.weights_bytes - use.kv_bytes,
        tuple(_fused(spec)),
    )


_ORDER = (*OPERATORS, _OTHER, _BETWEEN)


def _fused(spec: ModelSpec) -> Iterator[str]:
    used = activation_of(spec.architecture)
    yield from (kind for kind in FUSED if kind not in ("silu", "gelu") or kind == used)


def _place(work: Work, plan: Plan) -> tuple[str, Format, str, float]:
    """Return a work's kind, format and arithmetic, and its bytes as a share of the ledger's."""
    between = format_of(plan.activations)
    if work.component in ("kv_read", "kv_write"):
        return "kv_cache", plan.kv, between.arithmetic, plan.kv.bits / 16
    if work.component == "attention_op":
        kind: Operator = "qk_matmul" if work.type == _KEYS else "sv_matmul"
        f = plan.format_of(kind)
        return kind, f, f.arithmetic, 1.0
    if work.component == "activations":
        return _BETWEEN, between, between.arithmetic, between.bits / _COUNTED_BITS
    operator, colon, name = work.type.partition(":")
    if not colon:
        return _OTHER, format_of("FP32"), "fp16", 1.0
    f = format_of(name)
    return operator, f, multiplied_as(f, between), 1.0
