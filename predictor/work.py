"""Bytes and operations of one component, and what a runtime is asked to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Phase = Literal["prefill", "decode"]


@dataclass(frozen=True, slots=True)
class Work:
    """Bytes moved and floating-point operations done by one component in one weight type.

    `n_launches` counts the kernels it needs (about one a tensor or layer), for overhead.
    """

    component: str
    type: str
    bytes: float
    flops: float
    n_launches: float


@dataclass(frozen=True, slots=True)
class Workload:
    """What is asked of the runtime: lengths in tokens, cache types as ggml names.

    Decode: one token at `n_depth` cached positions. Prefill: `n_prompt` new tokens on top of
    `n_depth`, in micro-batches of `n_ubatch`.
    """

    phase: Phase
    n_prompt: int = 512
    n_depth: int = 0
    n_ubatch: int = 512
    type_k: str = "F16"
    type_v: str = "F16"
    flash_attention: bool = True


def total(works: Sequence[Work]) -> tuple[float, float]:
    """Return summed bytes and operations."""
    return sum(w.bytes for w in works), sum(w.flops for w in works)


def per_type(component: str, *parts: tuple[str, float, float, float]) -> list[Work]:
    """Return one Work a type from (type, bytes, flops, launches), leaving empty ones out."""
    (type_k, *k), (type_v, *v) = parts
    if type_k == type_v:
        k = [a + b for a, b in zip(k, v, strict=True)]
        return [Work(component, type_k, *k)] if any(k) else []
    return [Work(component, t, *part) for t, part in ((type_k, k), (type_v, v)) if any(part)]
