"""Additive shares of the time at nameplate peaks, from a ledger.

Every component moves bytes and does operations; each takes its own term, bytes over the nameplate
bandwidth and operations over the nameplate FP32 rate, which the fit then scales apart. The two
terms of a component overlap in part: together they take the p-norm of both, which is their sum
for p = 1 and the longer of them as p grows. Components follow each other: they add up.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from tokcast.predictor.host import Host
from tokcast.predictor.ledger import Phase, Work
from tokcast.predictor.quants import bits_per_weight
from tokcast.predictor.traits import traits_of

TermKind = Literal[
    "memory", "compute", "tile", "cache", "attention", "state", "activation", "launch"
]
Backend = Literal["CUDA", "ROCm", "Vulkan", "Metal", "MLX", "SYCL", "CPU"]
BACKENDS: tuple[Backend, ...] = ("CUDA", "ROCm", "Vulkan", "Metal", "MLX", "SYCL", "CPU")

# The p of the norm by which a component's memory and arithmetic overlap, chosen on chips left out
# (docs/method.md): between a sum and the roofline's maximum in decode, a sum in prefill.
OVERLAP: dict[Phase, float] = {"decode": 2.0, "prefill": 1.0}

# Since then llama.cpp turns flash attention on by itself where the backend has it. MLX always does,
# and figures of ik_llama.cpp were taken with it unless they say otherwise: chips left out say so.
FLASH_YEAR = 2025.67
# The unit in which launches are counted; the fit scales it.
LAUNCH_SECONDS = 1e-6
# Rows of a matrix product that a part-filled tile wastes, in the unit the fit scales.
TILE_ROWS = 4

_KIND_OF: dict[str, TermKind] = {
    "attention_op": "attention",
    "kv_read": "cache",
    "kv_write": "cache",
    "scores": "cache",
    "recurrent_state": "state",
    "activations": "activation",
    "embedding": "activation",
    "norm": "activation",
}


@dataclass(frozen=True, slots=True)
class Run:
    """How the model is run: the runtime, its backend and what is known of the stack.

    `stack` is the driver stack where a backend has several ("Vulkan RADV", "ROCm hipBLASLt");
    `year` the date of the run as a decimal year, None when unknown. `flash_attention` is None
    where it was left to the runtime. `is_client_timed`: a figure of a client's clock. `system` is
    the operating system as `platform.system()` names it, blank when unknown.
    """

    runtime: str = "llama.cpp"
    backend: str = "CUDA"
    stack: str = ""
    year: float | None = None
    n_threads: int | None = None
    flash_attention: bool | None = None
    is_client_timed: bool = False
    system: str = ""

    @property
    def has_flash(self) -> bool:
        """Return whether flash attention ran: as asked, else the runtime's default of its day."""
        if self.flash_attention is not None:
            return self.flash_attention
        if self.backend == "MLX" or self.runtime == "ik_llama.cpp":
            return True
        return self.runtime == "llama.cpp" and (self.year or 9999.0) > FLASH_YEAR


@dataclass(frozen=True, slots=True)
class Term:
    """One additive share of the time at nameplate peaks, before its fitted scale."""

    kind: TermKind
    component: str
    type: str
    seconds: float

    @property
    def group(self) -> tuple[str, str]:
        """Return what a term shares with the terms it overlaps with."""
        if self.kind in ("memory", "compute"):
            return (self.component, self.type)
        return (f"{self.component}/{self.kind}", self.type)


def _bits(type_name: str) -> float:
    """Return stored bits a weight; a byte for a type this version does not know."""
    try:
        return bits_per_weight(type_name)
    except KeyError:
        return 8.0


def cores_at_work(host: Host, run: Run) -> float:
    """Return the share of a processor's cores that the threads asked for keep busy; 1 for a GPU."""
    if run.backend != "CPU" or not run.n_threads or not host.n_cores:
        return 1.0
    return min(run.n_threads / host.n_cores, 1.0)


def term_pair(work: Work, host: Host, run: Run, phase: Phase) -> Iterator[Term]:
    """Yield the memory and the compute term of one component."""
    kind = _KIND_OF.get(work.component)
    memory_kind = kind or "memory"
    compute_kind = kind or "compute"
    fp32 = traits_of(host).fp32_flops_per_s * cores_at_work(host, run)
    if work.bytes:
        yield Term(memory_kind, work.component, work.type, work.bytes / host.bytes_per_s)
    if work.flops and kind not in ("cache", "state", "activation"):
        yield Term(compute_kind, work.component, work.type, work.flops / fp32)
    if phase == "prefill" and kind is None and work.bytes:
        weights = 8 * work.bytes / _bits(work.type)
        yield Term("tile", work.component, work.type, 2 * TILE_ROWS * weights / fp32)


def terms(works: Iterable[Work], host: Host, run: Run, phase: Phase) -> tuple[Term, ...]:
    """Return the terms of a ledger; its launches are one term."""
    listed = tuple(works)
    found = [t for w in listed for t in term_pair(w, host, run, phase)]
    launches = sum(w.n_launches for w in listed)
    return (*found, Term("launch", "launches", "", launches * LAUNCH_SECONDS))
