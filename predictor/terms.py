"""Roofline times of a ledger: what each component would take at the nameplate peaks."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tokcast.predictor.host import Host
from tokcast.predictor.ledger import Phase, Work
from tokcast.predictor.prediction import Bound

TermKind = Literal["weights", "experts", "attention", "cache", "state", "launch", "fixed"]
Backend = Literal["CUDA", "ROCm", "Vulkan", "Metal", "MLX", "SYCL", "CPU"]
BACKENDS: tuple[Backend, ...] = ("CUDA", "ROCm", "Vulkan", "Metal", "MLX", "SYCL", "CPU")

# The unit in which launches and the fixed cost of a step are counted; the fit scales it.
LAUNCH_SECONDS = 1e-6
STEP_SECONDS = 1e-5

_KIND_OF: dict[str, TermKind] = {
    "experts": "experts",
    "attention_op": "attention",
    "kv_read": "cache",
    "kv_write": "cache",
    "scores": "cache",
    "recurrent_state": "state",
    "activations": "state",
}


@dataclass(frozen=True, slots=True)
class Run:
    """How the model is run: the runtime, its backend and what is known of the stack.

    `stack` is the driver stack where a backend has several ("Vulkan RADV", "ROCm hipBLASLt");
    `year` the date of the run as a decimal year, None when unknown.
    """

    runtime: str = "llama.cpp"
    backend: str = "CUDA"
    stack: str = ""
    year: float | None = None
    n_threads: int | None = None


@dataclass(frozen=True, slots=True)
class Term:
    """One additive share of the time, at nameplate peaks, before its fitted scale."""

    kind: TermKind
    component: str
    type: str
    bytes: float
    flops: float
    seconds: float
    bound: Bound


def matmul_flops_per_s(host: Host, backend: str) -> float | None:
    """Return the published rate that matrix products come closest to on this backend.

    Matrix units with FP16 accumulate where there are any; else integer dot products at half
    their rate, if above the vector rate; else the vector units. CPUs have neither.
    """
    fp32 = host.fp32_flops_per_s
    if host.kind == "cpu" or backend == "CPU":
        return fp32
    if host.matrix_fp16_flops_per_s is not None:
        return host.matrix_fp16_flops_per_s
    rates = [r for r in (fp32, host.fp16_flops_per_s, (host.int8_ops_per_s or 0) / 2) if r]
    return max(rates) if rates else None


def _bound(n_bytes: float, flops: float, host: Host, peak: float | None) -> tuple[float, Bound]:
    memory_s = n_bytes / host.bytes_per_s
    compute_s = flops / peak if peak else 0.0
    return (memory_s, "memory") if memory_s >= compute_s else (compute_s, "compute")


def term_of(work: Work, host: Host, backend: str, phase: Phase) -> Term:
    """Return one component's term: the longer of its memory and its compute time."""
    kind = _KIND_OF.get(work.component, "weights")
    peak = matmul_flops_per_s(host, backend)
    if kind == "attention" and phase == "decode":
        # One query row: vector units do the work.
        peak = host.fp32_flops_per_s or peak
    seconds, bound = _bound(work.bytes, work.flops, host, peak)
    return Term(kind, work.component, work.type, work.bytes, work.flops, seconds, bound)


def terms(works: Iterable[Work], host: Host, backend: str, phase: Phase) -> tuple[Term, ...]:
    """Return the terms of a ledger, launches and the fixed cost of a step included."""
    listed = tuple(works)
    launches = sum(w.n_launches for w in listed)
    return (
        *(term_of(w, host, backend, phase) for w in listed if w.bytes or w.flops),
        Term("launch", "launches", "", 0.0, 0.0, launches * LAUNCH_SECONDS, "overhead"),
        Term("fixed", "step", "", 0.0, 0.0, STEP_SECONDS, "overhead"),
    )
