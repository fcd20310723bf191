"""Which fitted effects scale a term.

A term's fitted time is its time at nameplate peaks times exp(sum of value x effect). Effects are
named, so that coefficients are a plain mapping from name to number, and a name that was not
fitted counts as 0, the centre of its prior: an unknown chip falls back on its family, an unknown
family on its backend. The fit and the prediction both call `effects_of`, so they can't drift.

`a|b` names an effect of a level (a switch); `a~b` the slope of a covariate.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tokcast.predictor.host import Host
from tokcast.predictor.ledger import Phase
from tokcast.predictor.terms import Run, Term
from tokcast.predictor.traits import Traits, traits_of

Effect = tuple[str, float]

# Centres of the covariates, near the middle of the published measurements, so that the effects
# without covariates describe a middling host. They are conventions, not results.
CENTRE_YEAR = 2025.5
CENTRE_WIDTH = 4096.0
# A calibration's synthetic models are smaller.
CENTRE_OWN_WIDTH = 1024.0
CENTRE_CLOCK_HZ = 2e9
CENTRE_RAM_GIB = 32.0
# With less than this a model of 8 B parameters leaves the system little, often on one module.
LITTLE_RAM_GIB = 10.0
# Matrices narrower than this leave tiles of a product unfilled.
NARROW_WIDTH = 2048.0
FP4_TYPES = frozenset({"MXFP4", "NVFP4"})
FLOAT_TYPES = frozenset({"F16", "BF16", "F32"})
# Before this date llama.cpp's CUDA backend multiplied quantized weights through cuBLAS in FP16.
MMQ_YEAR = 2024.45
# Since then llama.cpp multiplies a batch's rows of all experts at once (its pull requests 13199
# for CUDA and 13388 for Metal).
BATCHED_EXPERTS_YEAR = 2025.35


@dataclass(frozen=True, slots=True)
class Shape:
    """What of a model and a workload enters as a covariate.

    `model` identifies the model's shape, so that a known one keeps its own small effect;
    `n_tokens` is the micro-batch, `expert_rows` the tokens an expert sees of it, `head_length`
    the length of most layers' keys.
    """

    model: str
    architecture: str
    embedding_length: int
    n_tokens: int = 1
    expert_rows: float = 0.0
    is_latent: bool = False
    head_length: int = 0


def effects_of(term: Term, phase: Phase, host: Host, run: Run, shape: Shape) -> tuple[Effect, ...]:
    """Return the (name, value) pairs that scale a term."""
    t = traits_of(host)
    own = _decode(term, t, run, shape) if phase == "decode" else _prefill(term, t, run, shape)
    side = "CPU" if run.backend == "CPU" else "GPU"
    of_chip = f"{phase}/{term.kind}|chip{side}={host.name}|{run.backend}"
    extra = ((of_chip, 1.0),) if term.kind in ("launch", "attention") else ()
    return (*own, *extra, *_whole(phase, host, run, shape))


def own_effects(term: Term, phase: Phase, host: Host, run: Run, shape: Shape) -> tuple[Effect, ...]:
    """Return the effects that only a calibration of this host fits; elsewhere they are 0."""
    where = f"{host.name}|{run.backend}|{run.runtime}"
    found = [(f"{phase}/{term.kind}|host={where}", 1.0)]
    if term.kind in ("memory", "compute"):
        found.append((f"{phase}/{term.kind}|hosttype={term.type}|{where}", 1.0))
        width = math.log(max(shape.embedding_length, 1) / CENTRE_OWN_WIDTH)
        found.append((f"{phase}/{term.kind}~hostwidth={where}", width))
        if term.component == "experts":
            found.append((f"{phase}/{term.kind}|hostmoe={where}", 1.0))
        elif term.component == "head":
            found.append((f"{phase}/{term.kind}|hosthead={where}", 1.0))
    elif term.kind in ("attention", "cache"):
        # Attention kernels are made for a key's length, and some lengths run far slower; those of
        # flash attention are others than those without.
        if shape.head_length:
            found.append((f"{phase}/{term.kind}|hostkey={shape.head_length}|{where}", 1.0))
        flash = "on" if run.has_flash else "off"
        found.append((f"{phase}/{term.kind}|hostflash={flash}|{where}", 1.0))
    return tuple(found)


def chip_effect(phase: Phase, host: Host, backend: str) -> str:
    """Return the name of a chip's own effect on a phase's whole time."""
    side = "CPU" if backend == "CPU" else "GPU"
    return f"{phase}|chip{side}={host.name}|{backend}"


def family_effect(phase: Phase, host: Host, backend: str) -> str:
    """Return the name of a chip family's effect on the main term of a phase."""
    term = "memory" if phase == "decode" else "compute"
    return f"{phase}/{term}|family={family_of(phase, host)}|{backend}"


def family_of(phase: Phase, host: Host) -> str:
    """Return the name of the family that a chip shares a phase's effects with."""
    t = traits_of(host)
    return t.generation if phase == "decode" else t.family


def model_effect(phase: Phase, model: str) -> str:
    """Return the name of the effect of a model's shape on a phase's whole time."""
    return f"{phase}|model={model}"


def _whole(phase: Phase, host: Host, run: Run, shape: Shape) -> Iterator[Effect]:
    """Yield the effects on all of a phase's time."""
    yield chip_effect(phase, host, run.backend), 1.0
    if run.runtime != "llama.cpp":
        yield f"{phase}|chiprt={host.name}|{run.backend}|{run.runtime}", 1.0
    yield model_effect(phase, shape.model), 1.0
    yield f"{phase}|modelbackend={shape.model}|{run.backend}", 1.0
    yield f"{phase}|architecture={shape.architecture}", 1.0
    if run.is_client_timed:
        yield f"{phase}|client", 1.0
    if run.system == "Windows":
        yield f"{phase}|windows|{run.backend}", 1.0


def _levels(prefix: str, t: Traits, run: Run) -> Iterator[Effect]:
    """Yield the effects that every kind of term has: base, backend, runtime, family."""
    yield f"{prefix}|base", 1.0
    yield f"{prefix}|backend={run.backend}", 1.0
    yield f"{prefix}|family={t.generation}|{run.backend}", 1.0
    if run.runtime != "llama.cpp":
        yield f"{prefix}|runtime={run.runtime}|{run.backend}", 1.0
        yield f"{prefix}|runtimefamily={t.generation}|{run.backend}|{run.runtime}", 1.0


def _side(t: Traits, run: Run) -> str:
    """Return the class of hosts that share slopes."""
    if run.backend == "CPU":
        return "CPU"
    return t.vendor if t.vendor in ("NVIDIA", "AMD", "Apple") else "other"


def _age(run: Run) -> float:
    return min(max((run.year or CENTRE_YEAR) - CENTRE_YEAR, -2.0), 1.5)


def _cores(t: Traits, run: Run) -> float:
    """Return the cores at work: a processor's threads, at most one a core."""
    if run.backend == "CPU" and run.n_threads:
        return min(float(run.n_threads), t.n_cores)
    return t.n_cores


def _flash(prefix: str, run: Run) -> Iterator[Effect]:
    if run.has_flash:
        yield f"{prefix}|flash|{run.backend}", 1.0


# --- decode


def _decode(term: Term, t: Traits, run: Run, shape: Shape) -> Iterator[Effect]:
    prefix = f"decode/{term.kind}"
    yield from _levels(prefix, t, run)
    if term.kind == "launch":
        yield from _decode_launch(prefix, t, run)
    elif term.kind == "memory":
        yield from _decode_memory(prefix, term, t, run, shape)
    elif term.kind == "compute":
        yield from _decode_compute(prefix, term, t, run)
    elif term.kind in ("cache", "attention"):
        yield from _flash(prefix, run)
        if shape.is_latent:
            yield f"{prefix}|latent", 1.0


def _decode_launch(prefix: str, t: Traits, run: Run) -> Iterator[Effect]:
    side = _side(t, run)
    yield f"{prefix}~clock|{side}", math.log(t.clock_hz / CENTRE_CLOCK_HZ)
    yield f"{prefix}~cores|{side}", _log_cores(t, run)
    yield f"{prefix}~year|{run.backend}", _age(run)
    if run.system == "Windows":
        yield f"{prefix}|windows|{side}", 1.0
    yield from _flash(prefix, run)


def _log_cores(t: Traits, run: Run) -> float:
    return math.log(_cores(t, run) / (8 if run.backend == "CPU" else 60))


def _decode_memory(prefix: str, term: Term, t: Traits, run: Run, shape: Shape) -> Iterator[Effect]:
    side, backend = _side(t, run), run.backend
    centre = 60e9 if backend == "CPU" else 400e9
    yield f"{prefix}~bandwidth|{side}", math.log(t.bytes_per_s / centre)
    yield f"{prefix}~year|{backend}", _age(run)
    width = math.log(max(shape.embedding_length, 1) / CENTRE_WIDTH)
    yield f"{prefix}~width|{side}", width
    if t.is_hbm:
        yield f"{prefix}|hbm", 1.0
    if t.is_inline_ecc:
        yield f"{prefix}|ecc", 1.0
    if t.is_laptop:
        yield f"{prefix}|laptop|{side}", 1.0
    if backend == "CPU":
        yield f"{prefix}~cores|CPU", _log_cores(t, run)
        yield f"{prefix}|memory={t.memory_generation}|CPU", 1.0
        yield from _cpu_class(prefix, t)
    elif t.is_apu:
        yield f"{prefix}|apu", 1.0
    yield f"{prefix}|stack={run.stack}", 1.0
    yield f"{prefix}|type={term.type}", 1.0
    yield f"{prefix}|typebackend={term.type}|{backend}", 1.0
    if run.runtime != "llama.cpp":
        yield f"{prefix}|typeruntime={term.type}|{backend}|{run.runtime}", 1.0
    if term.component == "experts":
        yield f"{prefix}|moe", 1.0
        yield f"{prefix}|moebackend={backend}", 1.0


def _cpu_class(prefix: str, t: Traits) -> Iterator[Effect]:
    """Yield the effects of a processor's market, where its memory is not stated."""
    wide = "+" if t.bytes_per_s > 110e9 else ""
    yield f"{prefix}|vendor={t.vendor}{wide}|CPU", 1.0
    if t.has_lpddr_option:
        yield f"{prefix}|lpddr-option|CPU", 1.0
    if t.is_mobile_cpu:
        yield f"{prefix}|mobile|CPU", 1.0
    if t.is_server_cpu:
        yield f"{prefix}|server|CPU", 1.0
    if t.log_tdp is not None:
        yield f"{prefix}~tdp|CPU", t.log_tdp - math.log(65)
    yield from _ram(prefix, t)


def _ram(prefix: str, t: Traits) -> Iterator[Effect]:
    """Yield the effects of a processor's installed memory: little of it is one slow module."""
    if t.ram_gib is None:
        return
    yield f"{prefix}~ram|CPU", math.log(min(max(t.ram_gib, 4.0), 256.0) / CENTRE_RAM_GIB)
    if t.ram_gib < LITTLE_RAM_GIB:
        yield f"{prefix}|littleram|CPU", 1.0


def _decode_compute(prefix: str, term: Term, t: Traits, run: Run) -> Iterator[Effect]:
    backend = run.backend
    which = f"{backend}|{run.runtime}" if backend == "CPU" else backend
    yield f"{prefix}~year|{backend}", _age(run)
    if backend != "CPU":
        yield f"{prefix}~cores|{_side(t, run)}", _log_cores(t, run)
    yield f"{prefix}|type={term.type}", 1.0
    yield f"{prefix}|typebackend={term.type}|{which}", 1.0


# --- prefill


def _prefill(term: Term, t: Traits, run: Run, shape: Shape) -> Iterator[Effect]:
    prefix = f"prefill/{term.kind}"
    if term.kind in ("compute", "tile"):
        yield from _matmul(t, run)
        yield from _matmul_shape(term, run, shape)
        if term.kind == "compute":
            yield from _matmul_type(term, t, run)
        else:
            yield from _tile(prefix, term, run)
    elif term.kind == "attention":
        yield from _prefill_attention(prefix, t, run)
    else:
        yield f"{prefix}|base", 1.0
        yield f"{prefix}|backend={run.backend}", 1.0
        if term.kind == "memory" and term.component == "experts":
            yield f"{prefix}|moe|{run.backend}", 1.0
        if term.kind == "launch":
            yield f"{prefix}~clock", math.log(t.clock_hz / CENTRE_CLOCK_HZ)


def _tile(prefix: str, term: Term, run: Run) -> Iterator[Effect]:
    yield f"{prefix}|backend={run.backend}", 1.0
    if term.component == "experts":
        yield f"{prefix}|moe|{run.backend}", 1.0


def _matmul(t: Traits, run: Run) -> Iterator[Effect]:
    """Yield the effects on every matrix product: what of the FP32 rate a chip reaches."""
    p, backend = "prefill/compute", run.backend
    yield f"{p}|base", 1.0
    yield f"{p}|backend={backend}", 1.0
    yield f"{p}|family={t.family}|{backend}", 1.0
    if backend in ("ROCm", "Vulkan", "SYCL"):
        yield f"{p}|familyall={t.family}", 1.0
        yield f"{p}|vendor={t.vendor}|{backend}", 1.0
    yield from _matmul_slopes(p, t, run)
    yield from _matmul_runtime(p, t, run)
    yield from _matmul_date(p, t, run)
    if backend == "Vulkan":
        yield f"{p}|stackfamily={run.stack}|{t.family}", 1.0
    if run.flash_attention is not None:
        sign = 0.5 if run.flash_attention else -0.5
        yield f"{p}~flash|{backend}", sign
        yield f"{p}~flashfamily|{backend}|{t.family}", sign
    if backend == "CPU" and run.n_threads:
        threads = float(run.n_threads)
        yield f"{p}~threads", math.log(min(threads, t.n_cores) / t.n_cores)
        if threads > t.n_cores:
            yield f"{p}~oversubscribed", math.log(threads / t.n_cores)


def _matmul_slopes(p: str, t: Traits, run: Run) -> Iterator[Effect]:
    b = run.backend
    is_cpu = b == "CPU"
    balance = math.log(t.bytes_per_s * 1e3 / t.fp32_flops_per_s) - 3.5
    yield f"{p}~fp32|{b}", math.log(t.fp32_flops_per_s / (1.35e12 if is_cpu else 15e12))
    yield f"{p}~balance|{b}", balance
    yield f"{p}~int8|{b}", t.log_int8 - (1.0 if is_cpu else 1.5)
    yield f"{p}~cache|{b}", t.log_cache_mib - 2.0
    if t.year is not None:
        yield f"{p}~launched|{b}", t.year - (2019 if is_cpu else 2021)
    if t.log_tdp is not None and t.vendor != "Apple":
        yield f"{p}~power|{b}", _power(t, is_cpu)
    if is_cpu:
        yield f"{p}~cores|{b}", math.log(t.n_cores / 9)
        yield from _ram(p, t)
        return
    if b != "CUDA":
        # CUDA's kernels multiply 8-bit integers, or sum in FP16, which GeForce cards do at full rate.
        yield f"{p}~matrix|{b}", t.log_matrix - 1.0
    if t.is_laptop:
        yield f"{p}|laptop|{b}", 1.0


def _power(t: Traits, is_cpu: bool) -> float:
    """Return log watts beyond what the FP32 rate suggests, centred on published chips."""
    typical = math.log(90) if is_cpu else math.log(220) + 0.5 * math.log(t.fp32_flops_per_s / 15e12)
    return (t.log_tdp or typical) - typical


def _matmul_runtime(p: str, t: Traits, run: Run) -> Iterator[Effect]:
    if run.runtime == "llama.cpp":
        return
    key = f"{run.backend}|{run.runtime}"
    is_cpu = run.backend == "CPU"
    yield f"{p}|runtime={key}", 1.0
    yield f"{p}|runtimefamily={key}|{t.family}", 1.0
    yield f"{p}~fp32runtime|{key}", math.log(t.fp32_flops_per_s / (1.35e12 if is_cpu else 15e12))
    balance = math.log(t.bytes_per_s * 1e3 / t.fp32_flops_per_s) - 3.5
    yield f"{p}~balanceruntime|{key}", balance
    yield f"{p}~int8runtime|{key}", t.log_int8 - 1.0


def _is_old(t: Traits, run: Run) -> bool:
    has_matrix = t.log_matrix > 0
    dated = run.year is not None and run.year < MMQ_YEAR
    return run.backend == "CUDA" and run.runtime == "llama.cpp" and dated and has_matrix


def _matmul_date(p: str, t: Traits, run: Run) -> Iterator[Effect]:
    if run.runtime == "llamafile":
        return
    b, age = run.backend, _age(run)
    yield f"{p}~year|{b}|{run.runtime}", age
    yield f"{p}~yearfamily|{b}|{t.family}", age
    if run.runtime == "llama.cpp":
        yield f"{p}~before2025|{b}", max(-0.5 - age, 0.0)
        yield f"{p}~since2026|{b}", max(age - 0.5, 0.0)
    if _is_old(t, run):
        yield f"{p}|before-mmq", 1.0


def _matmul_shape(term: Term, run: Run, shape: Shape) -> Iterator[Effect]:
    p, b = "prefill/compute", run.backend
    width = math.log(max(shape.embedding_length, 1) / CENTRE_WIDTH)
    yield f"{p}~width|{b}", width
    narrow = max(math.log(NARROW_WIDTH / max(shape.embedding_length, 1)), 0.0)
    if narrow:
        yield f"{p}~narrow", narrow
        yield f"{p}~narrowbackend|{b}", narrow
    if run.runtime != "llama.cpp":
        yield f"{p}~widthruntime|{b}|{run.runtime}", width
    if term.component == "experts":
        yield f"{p}|moe|{b}", 1.0
        yield f"{p}|moeruntime={b}|{run.runtime}", 1.0
        yield f"{p}~rows|{b}", math.log(max(shape.expert_rows, 1.0)) - 3.0
        if _has_expert_loop(run):
            yield f"{p}|expertloop|{b}", 1.0


def _has_expert_loop(run: Run) -> bool:
    """Return whether a GPU backend multiplied one expert after the other, as llamafile's do."""
    if run.backend == "CPU":
        return False
    is_old = run.runtime == "llama.cpp" and (run.year or CENTRE_YEAR) < BATCHED_EXPERTS_YEAR
    return is_old or run.runtime == "llamafile"


def _matmul_type(term: Term, t: Traits, run: Run) -> Iterator[Effect]:
    p, b = "prefill/compute", run.backend
    yield f"{p}|type={term.type}", 1.0
    yield f"{p}|typebackend={term.type}|{b}", 1.0
    yield f"{p}|typeruntime={term.type}|{b}|{run.runtime}", 1.0
    if term.type in FP4_TYPES and b == "CUDA" and "Blackwell" in t.family:
        yield f"{p}|fp4", 1.0
    if term.type in FLOAT_TYPES:
        yield f"{p}|floatstack={run.stack}|{t.family}|{term.type}", 1.0
    if (term.type in FLOAT_TYPES or _is_old(t, run)) and b != "CPU":
        if b != "CUDA":
            yield f"{p}~floatmatrix|{b}", t.log_matrix - 1.0
        yield f"{p}~floatint8|{b}", t.log_int8 - 1.5
        yield f"{p}~floatmatrix16|{b}", t.log_matrix_fp16 - 1.0
        yield f"{p}|floatfamily={t.family}|{b}", 1.0


def _prefill_attention(prefix: str, t: Traits, run: Run) -> Iterator[Effect]:
    b = run.backend
    yield f"{prefix}|base", 1.0
    yield f"{prefix}|backend={b}", 1.0
    yield f"{prefix}|family={t.family}|{b}", 1.0
    yield f"{prefix}~matrix|{b}", t.log_matrix - 1.0
    flash = "on" if run.has_flash else "off"
    yield f"{prefix}|flash-{flash}={b}", 1.0
    yield f"{prefix}|flashruntime-{flash}={b}|{run.runtime}", 1.0
    yield f"{prefix}~year|{b}", _age(run)
    if b == "Vulkan":
        yield f"{prefix}|stack={run.stack}|{t.vendor}", 1.0
