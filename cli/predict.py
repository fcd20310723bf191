"""`tokcast predict`: speed, memory and evidence, verdict first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tokcast.cli.options import (
    backend_of,
    cache_type,
    counts,
    flash_attention,
    host_of,
    one_count,
    runtime_of,
)
from tokcast.cli.render import render
from tokcast.fits.released import released
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.ledger import Workload
from tokcast.predictor.memory import MemoryUse, largest_context, memory
from tokcast.predictor.model import model_spec
from tokcast.predictor.prediction import Prediction
from tokcast.predictor.roofline import Question, predict
from tokcast.predictor.sources import open_model
from tokcast.predictor.spec import ModelSpec
from tokcast.predictor.terms import Run

DEFAULT_DEPTHS = (0, 4096, 16384)
# What an operating system and its programs keep of a memory shared with the accelerator.
UNIFIED_SHARE = 0.75


@dataclass(frozen=True, slots=True)
class Request:
    """What was typed, as text."""

    addresses: tuple[str, ...]
    host: str | None
    backend: str | None
    runtime: str | None
    n_prompt: str
    n_gen: str
    n_depth: str | None
    n_ubatch: str
    type_k: str
    type_v: str
    flash_attn: str
    n_context: str | None
    bandwidth: str | None
    tflops: str | None
    memory: str | None
    explain: bool
    offline: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """The same, parsed and checked."""

    n_prompts: tuple[int, ...]
    n_gen: int
    n_depths: tuple[int, ...] | None
    n_ubatch: int
    type_k: str
    type_v: str
    flash_attention: bool
    n_context: int | None


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a model fits a host's memory: bytes needed and there, and the largest context."""

    use: MemoryUse
    n_context: int
    is_unified: bool
    available_bytes: float | None
    largest_context: int | None

    @property
    def need_bytes(self) -> float:
        """Return what the memory that the model runs from must hold."""
        return self.use.unified_bytes if self.is_unified else self.use.device_bytes

    @property
    def fits(self) -> bool | None:
        """Return None when the host's memory is not known."""
        if self.available_bytes is None:
            return None
        return self.need_bytes <= self.available_bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """One model on one host."""

    spec: ModelSpec
    host: Host
    run: Run
    predictions: tuple[Prediction, ...]
    n_gen: int
    fit: Fit
    coefficients: str
    warnings: tuple[str, ...]


def parse(request: Request) -> Asked:
    """Return the checked request; raises InputError naming the flag."""
    depths = request.n_depth
    context = request.n_context
    return Asked(
        n_prompts=tuple(n for n in counts(request.n_prompt, "-p") if n),
        n_gen=one_count(request.n_gen, "-n", at_least=0),
        n_depths=None if depths is None else counts(depths, "-d"),
        n_ubatch=one_count(request.n_ubatch, "-ub"),
        type_k=cache_type(request.type_k, "-ctk"),
        type_v=cache_type(request.type_v, "-ctv"),
        flash_attention=flash_attention(request.flash_attn),
        n_context=None if context is None else one_count(context, "-c"),
    )


def _available_bytes(host: Host) -> float | None:
    known = host.memory_bytes or max(host.memory_options_bytes, default=0.0)
    if not known:
        return None
    return known * host.n_devices * (UNIFIED_SHARE if host.is_unified else 1.0)


def _fit(spec: ModelSpec, host: Host, asked: Asked, n_context: int) -> Fit:
    available = _available_bytes(host)
    use = memory(
        spec,
        n_context,
        type_k=asked.type_k,
        type_v=asked.type_v,
        n_ubatch=asked.n_ubatch,
        flash_attention=asked.flash_attention,
    )
    largest = None
    if available is not None:
        largest = largest_context(
            spec,
            available,
            type_k=asked.type_k,
            type_v=asked.type_v,
            n_ubatch=asked.n_ubatch,
            flash_attention=asked.flash_attention,
            is_unified=host.is_unified,
        )
    return Fit(use, n_context, host.is_unified, available, largest)


def _depths(spec: ModelSpec, asked: Asked) -> tuple[int, ...]:
    if asked.n_depths is not None:
        return asked.n_depths
    longest = spec.context_length or max(DEFAULT_DEPTHS)
    room = longest - max((*asked.n_prompts, asked.n_gen))
    return tuple(d for d in DEFAULT_DEPTHS if d <= room) or (0,)


def _questions(asked: Asked, depths: Sequence[int], host: Host, run: Run) -> list[Question]:
    common: dict[str, Any] = {
        "n_ubatch": asked.n_ubatch,
        "type_k": asked.type_k,
        "type_v": asked.type_v,
        "flash_attention": asked.flash_attention,
    }
    found = []
    for depth in depths:
        for n in asked.n_prompts:
            load = Workload("prefill", n_prompt=n, n_depth=depth, **common)
            found.append(Question(load, host, run))
        if asked.n_gen:
            # A generated run is stood for by its middle token, as llama-bench's mean is.
            middle = depth + asked.n_gen // 2
            load = Workload("decode", n_depth=middle, **common)
            found.append(Question(load, host, run))
    return found


def answer(address: str, request: Request, asked: Asked) -> Answer:
    """Return the prediction for one model address; raises InputError on bad input."""
    spec = model_spec(open_model(address, offline=request.offline or None))
    if not spec.n_params:
        raise InputError(f"{address}: holds no weights, only a vocabulary; nothing to predict")
    runtime = runtime_of(request.runtime, spec.format)
    host, host_notes = host_of(request.host, request.bandwidth, request.tflops, request.memory)
    run = Run(runtime=runtime, backend=backend_of(request.backend, runtime, host))
    depths = _depths(spec, asked)
    coefficients = released()
    predictions = tuple(
        predict(spec, q, coefficients) for q in _questions(asked, depths, host, run)
    )
    longest = max(depths) + max((*asked.n_prompts, asked.n_gen))
    n_context = asked.n_context or longest
    warnings = list(spec.warnings)
    if spec.context_length and n_context > spec.context_length:
        warnings.append(f"trained for a context of {spec.context_length}; {n_context} asked for")
    warnings += [w for p in predictions for w in p.warnings]
    warnings += host_notes
    return Answer(
        spec,
        host,
        run,
        predictions,
        asked.n_gen,
        _fit(spec, host, asked, n_context),
        coefficients.digest,
        tuple(dict.fromkeys(warnings)),
    )


def run(request: Request, output: str) -> int:
    """Print predictions; exit code 1 when no model asked about fits the host."""
    from tokcast.cli.predict_report import comparison, single

    if not request.addresses:
        raise InputError("no model given; expected a file, owner/repo[:quant] or name@FILETYPE")
    asked = parse(request)
    answers = [answer(address, request, asked) for address in request.addresses]
    one = len(answers) == 1
    report = single(answers[0], request.explain) if one else comparison(answers)
    print(render(report, output))
    return 1 if all(a.fit.fits is False for a in answers) else 0
