"""What `tokcast triage` looks at: a measured test, here from a number that was typed."""

from dataclasses import dataclass

from tokcast.cli.options import (
    backend_of,
    cache_type,
    flash_attention,
    host_of,
    named,
    one_count,
    runtime_of,
)
from tokcast.cli.running import run_with
from tokcast.hosts.quantity import parse_seconds
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.ledger import Workload
from tokcast.predictor.roofline import tokens_of
from tokcast.predictor.spec import ModelSpec
from tokcast.predictor.terms import Run


@dataclass(frozen=True, slots=True)
class Request:
    """What was typed, as text."""

    target: str
    model: str | None
    host: str | None
    backend: str | None
    runtime: str | None
    phase: str
    n_prompt: str
    n_gen: str
    n_depth: str
    n_ubatch: str
    type_k: str
    type_v: str
    flash_attn: str
    bandwidth: str | None
    tflops: str | None
    threshold: str
    offline: bool


@dataclass(frozen=True, slots=True)
class Case:
    """One measured test; `seconds` is one token's time in decode, the prompt's in prefill."""

    label: str
    spec: ModelSpec
    host: Host
    run: Run
    workload: Workload
    n_depth: int
    seconds: float
    notes: tuple[str, ...] = ()
    is_here: bool = False

    @property
    def place(self) -> str:
        """Return the model and the host in words."""
        return f"{self.spec.name} {self.spec.file_type} on {self.host.name} ({self.run.backend})"

    @property
    def n_context(self) -> int:
        """Return the positions that the test reached."""
        return self.workload.n_depth + self.workload.n_prompt

    @property
    def tok_per_s(self) -> float:
        """Return the measured rate."""
        return tokens_of(self.workload) / self.seconds


def _host(request: Request) -> tuple[Host, tuple[str, ...]]:
    return host_of(request.host, request.bandwidth, request.tflops, None)


def host_for(request: Request, chip: str) -> tuple[Host, tuple[str, ...]]:
    """Return the host asked for, else the one that was measured on."""
    if request.host or request.bandwidth:
        return _host(request)
    if not chip:
        raise InputError(f"{request.target}: its chip is not known here; name it with --host")
    return named(chip)


def _seconds(request: Request, n_tokens: int) -> float:
    """Return the time of a step: of tokens/s, or as it was given, with its unit."""
    text = request.target.strip()
    if text.lower().endswith("s"):
        return parse_seconds(text)
    try:
        rate = float(text.replace(",", ""))
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise InputError(
            f"{text!r}: expected a file, a run of tokcast measure list, or with --model tokens/s"
            " above 0, such as 42.5, or a time, such as 12ms"
        )
    return n_tokens / rate


def _workload(request: Request) -> Workload:
    if request.phase not in ("decode", "prefill"):
        raise InputError(f"--phase {request.phase!r}: expected decode or prefill")
    depth = one_count(request.n_depth, "-d", at_least=0)
    n_gen = one_count(request.n_gen, "-n")
    is_decode = request.phase == "decode"
    return Workload(
        phase="decode" if is_decode else "prefill",
        n_prompt=1 if is_decode else one_count(request.n_prompt, "-p"),
        n_depth=depth + n_gen // 2 if is_decode else depth,
        n_ubatch=one_count(request.n_ubatch, "-ub"),
        type_k=cache_type(request.type_k, "-ctk"),
        type_v=cache_type(request.type_v, "-ctv"),
        flash_attention=flash_attention(request.flash_attn),
    )


def label_of(load: Workload, n: int, n_depth: int) -> str:
    """Return llama-bench's name of a test."""
    name = f"pp{n}" if load.phase == "prefill" else f"tg{n}"
    return f"{name} @ d{n_depth}" if n_depth else name


def of_number(request: Request) -> Case:
    """Return the case of tokens/s or a time; raises InputError naming a flag."""
    spec = spec_of(request)
    load = _workload(request)
    host, notes = _host(request)
    is_here = request.host is None and request.bandwidth is None
    runtime = runtime_of(request.runtime, spec.format)
    backend = backend_of(request.backend, runtime, host)
    depth = one_count(request.n_depth, "-d", at_least=0)
    n = one_count(request.n_gen, "-n") if load.phase == "decode" else load.n_prompt
    return Case(
        label=label_of(load, n, depth),
        spec=spec,
        host=host,
        run=run_with(runtime, backend, request.flash_attn, is_here=is_here),
        workload=load,
        n_depth=depth,
        seconds=_seconds(request, tokens_of(load)),
        notes=notes,
        is_here=is_here,
    )


def spec_of(request: Request) -> ModelSpec:
    """Return the model of --model; raises InputError without one, or for a vocabulary alone."""
    from tokcast.predictor.model import model_spec
    from tokcast.predictor.sources import open_model

    if request.model is None:
        raise InputError(f"{request.target}: its model is not known here; name it with --model")
    spec = model_spec(open_model(request.model, offline=request.offline or None))
    if not spec.n_params:
        raise InputError(f"{request.model}: holds no weights, only a vocabulary")
    return spec
