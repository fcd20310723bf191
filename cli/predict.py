"""`tokcast predict`: speed, memory and evidence, verdict first."""

import platform
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tokcast.cli.fitting import Fit, PlacedFit, fit, memory_notes
from tokcast.cli.options import (
    backend_of,
    cache_type,
    counts,
    flash_attention,
    host_of,
    one_count,
    runtime_of,
)
from tokcast.cli.placing import Placing, Words, placing_of
from tokcast.cli.predict_energy import EnergyAnswer, EnergyAsked, asked_of, with_energy
from tokcast.cli.progress import Progress
from tokcast.cli.render import render
from tokcast.fits.calibrated import Applied, apply
from tokcast.fits.released import released
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.ledger import Workload
from tokcast.predictor.model import model_spec
from tokcast.predictor.placement.plan import Placement
from tokcast.predictor.prediction import Evidence, Prediction
from tokcast.predictor.roofline import Question, predict
from tokcast.predictor.sources import open_model
from tokcast.predictor.spec import ModelSpec
from tokcast.predictor.terms import Run

if TYPE_CHECKING:
    from tokcast.cli.tasks import TaskForecast, TaskLoad

DEFAULT_DEPTHS = (0, 4096, 16384)
_EVIDENCE: tuple[Evidence, ...] = ("spec sheet only", "same chip family", "same host")


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
    workload: str | None = None
    trace: str | None = None
    n_tasks: str = "1000"
    seed: str = "1"
    energy: bool = False
    price: str | None = None
    grid: str | None = None
    power_limit: str | None = None
    placement: Words = field(default_factory=Words)


@dataclass(frozen=True, slots=True)
class Asked:
    """The same, parsed and checked; the host may have notes on what is uncertain about it."""

    n_prompts: tuple[int, ...]
    n_gens: tuple[int, ...]
    n_depths: tuple[int, ...] | None
    n_ubatch: int
    type_k: str
    type_v: str
    flash_attention: bool
    n_context: int | None
    host: Host
    host_notes: tuple[str, ...]
    load: "TaskLoad | None" = None
    energy: EnergyAsked | None = None
    placing: Placing | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """A prediction under the lengths it was asked for.

    The predicted workload of a generation of `n_gen` tokens from `n_depth` on is its middle
    token, as llama-bench's figure is the mean over them.
    """

    n_gen: int
    n_depth: int
    prediction: Prediction

    @property
    def label(self) -> str:
        """Return llama-bench's name of the test."""
        p = self.prediction
        name = f"pp{p.n_prompt}" if p.phase == "prefill" else f"tg{self.n_gen}"
        return f"{name} @ d{self.n_depth}" if self.n_depth else name


@dataclass(frozen=True, slots=True)
class Answer:
    """One model on one host."""

    spec: ModelSpec
    asked: Asked
    run: Run
    forecasts: tuple[Forecast, ...]
    fit: Fit | PlacedFit
    coefficients: str
    warnings: tuple[str, ...]
    calibration: str = ""
    tasks: "TaskForecast | None" = None
    energy: EnergyAnswer | None = None
    placement: Placement | None = None

    @property
    def host(self) -> Host:
        """Return where the model would run."""
        return self.asked.host

    @property
    def is_calibrated(self) -> bool:
        """Return whether measurements of this machine are in it."""
        return bool(self.calibration)

    @property
    def evidence(self) -> Evidence:
        """Return the weakest evidence behind a prediction of this answer."""
        return min((f.prediction.evidence for f in self.forecasts), key=_EVIDENCE.index)

    def first(self, phase: str) -> Forecast | None:
        """Return the forecast of a phase at the first depth asked for."""
        return next((f for f in self.forecasts if f.prediction.phase == phase), None)


def parse(request: Request) -> Asked:
    """Return the checked request; raises InputError naming the flag."""
    n_prompts = tuple(n for n in counts(request.n_prompt, "-p") if n)
    n_gens = tuple(n for n in counts(request.n_gen, "-n") if n)
    if not n_prompts and not n_gens:
        raise InputError("-p 0 -n 0: nothing to predict; expected a prompt or tokens to generate")
    depths, context = request.n_depth, request.n_context
    host, notes, placing = _where(request)
    return Asked(
        n_prompts=n_prompts,
        n_gens=n_gens,
        n_depths=None if depths is None else counts(depths, "-d"),
        n_ubatch=one_count(request.n_ubatch, "-ub"),
        type_k=cache_type(request.type_k, "-ctk"),
        type_v=cache_type(request.type_v, "-ctv"),
        flash_attention=flash_attention(request.flash_attn),
        n_context=None if context is None else one_count(context, "-c"),
        host=host,
        host_notes=notes if placing is not None else all_host_notes(host, notes),
        load=_load(request),
        energy=asked_of(request.energy, request.price, request.grid, request.power_limit),
        placing=placing,
    )


def _where(request: Request) -> tuple[Host, tuple[str, ...], Placing | None]:
    """Return the chip asked about, notes on it, and the placement where one is asked for."""
    from tokcast.hosts.machine import has_parts

    given = (request.host, request.bandwidth, request.tflops, request.memory)
    if not has_parts(request.host or ""):
        host, notes = host_of(*given)
        if host.n_devices == 1 and not request.placement.is_any:
            return host, notes, None
    if request.energy or request.workload or request.trace:
        raise InputError(
            "--energy, --workload and --trace are of a model on one device; leave out what places"
            " it over several"
        )
    placing = placing_of(request.placement, *given)
    return placing.machine.host, placing.machine.notes, placing


def all_host_notes(host: Host, notes: tuple[str, ...]) -> tuple[str, ...]:
    """Return what is uncertain or assumed about a host, the notes of its name first."""
    return (*notes, *memory_notes(host), *several_devices_notes(host))


def several_devices_notes(host: Host) -> tuple[str, ...]:
    """Return what is assumed of several devices."""
    if host.n_devices == 1:
        return ()
    return (
        f"memory is that of {host.n_devices} devices, speed that of one: split by layer, they"
        " take turns and read the same bytes",
    )


def _load(request: Request) -> "TaskLoad | None":
    if request.workload is None and request.trace is None:
        return None
    from tokcast.cli.tasks import load_of

    return load_of(request.workload, request.trace, request.n_tasks, request.seed)


def _tasks(
    spec: ModelSpec, asked: Asked, run: Run, applied: Applied, memory: Fit
) -> "TaskForecast | None":
    if asked.load is None:
        return None
    from tokcast.cli.tasks import forecast

    setting = (asked.n_ubatch, asked.type_k, asked.type_v, asked.flash_attention)
    q = Question(Workload("decode", 1, 0, *setting), applied.host, run)
    return forecast(spec, q, applied.coefficients, memory, asked.n_context, asked.load)


def depths_of(spec: ModelSpec, asked: Asked) -> tuple[int, ...]:
    """Return the depths asked for, or the usual ones that a model was trained for."""
    if asked.n_depths is not None:
        return asked.n_depths
    longest = spec.context_length or max(DEFAULT_DEPTHS)
    room = longest - max((*asked.n_prompts, *asked.n_gens))
    return tuple(d for d in DEFAULT_DEPTHS if d <= room) or (0,)


def workloads_of(asked: Asked, depth: int) -> Iterator[tuple[int, Workload]]:
    """Yield the tokens generated and the workload of each test at one depth."""
    setting = (asked.n_ubatch, asked.type_k, asked.type_v, asked.flash_attention)
    for n in asked.n_prompts:
        yield 0, Workload("prefill", n, depth, *setting)
    for n in asked.n_gens:
        yield n, Workload("decode", 1, depth + n // 2, *setting)


def context_notes(spec: ModelSpec, n_context: int) -> tuple[str, ...]:
    """Return that a context goes beyond what the model was trained for, where it does."""
    if not spec.context_length or n_context <= spec.context_length:
        return ()
    return (f"trained for a context of {spec.context_length}, but {n_context} asked for",)


def backend_notes(request: Request, run: Run, host: Host) -> tuple[str, ...]:
    """Return what is assumed of the backend."""
    if request.backend is not None or host.vendor:
        return ()
    return (f"backend {run.backend} assumed; --backend says otherwise",)


def run_of(
    spec: ModelSpec,
    host: Host,
    runtime: str | None,
    backend: str | None,
    *,
    flash: bool | None,
    is_here: bool,
) -> Run:
    """Return how a model is run: with the newest builds measured, on this machine or another.

    Raises InputError for a runtime or backend that doesn't exist or doesn't suit.
    """
    runtime = runtime_of(runtime, spec.format)
    backend = backend_of(backend, runtime, host)
    text = {None: "auto", True: "on", False: "off"}[flash]
    return run_with(runtime, backend, text, is_here)


def applied(host: Host, run: Run, *, is_here: bool) -> Applied:
    """Return what to predict with: this machine's calibration, where it is this machine."""
    return apply(host, run, released()) if is_here else Applied(host, released())


def is_here(host: str | None, *facts: object) -> bool:
    """Return whether no other host was named and none of this machine's facts replaced."""
    return not host and not any(facts)


def _host_notes(asked: Asked, applied: Applied) -> tuple[str, ...]:
    """Return what is uncertain of the host; a calibration settles what detection guessed."""
    if applied.is_calibrated:
        return ()
    return (*asked.host_notes, *((applied.note,) if applied.note else ()))


def run_with(runtime: str, backend: str, flash_attn: str, is_here: bool) -> Run:
    """Return a run of today; `is_here` on this machine, whose system is known."""
    return Run(
        runtime=runtime,
        backend=backend,
        stack=backend,
        year=released().newest,
        flash_attention=None if flash_attn == "auto" else flash_attention(flash_attn),
        system=platform.system() if is_here else "",
    )


def answer(address: str, request: Request, asked: Asked) -> Answer:
    """Return the prediction for one model address; raises InputError on bad input."""
    header = open_model(address, offline=request.offline or None)
    if asked.placing is not None:
        from tokcast.cli.placed import placed_answer

        return placed_answer(header, address, request, asked, asked.placing)
    return answer_of(model_spec(header), address, request, asked)


def check_weights(spec: ModelSpec, address: str) -> None:
    """Raise InputError for a file without weights."""
    if not spec.n_params:
        raise InputError(f"{address}: holds no weights, only a vocabulary; nothing to predict")


def answer_of(spec: ModelSpec, address: str, request: Request, asked: Asked) -> Answer:
    """Return the prediction for a model that was read; raises InputError on bad input."""
    check_weights(spec, address)
    flash = None if request.flash_attn == "auto" else asked.flash_attention
    words = (request.runtime, request.backend)
    run = run_of(spec, asked.host, *words, flash=flash, is_here=request.host is None)
    here = is_here(request.host, request.bandwidth, request.tflops)
    found = applied(asked.host, run, is_here=here)
    depths, coefficients = depths_of(spec, asked), found.coefficients
    forecasts = tuple(
        Forecast(n_gen, depth, predict(spec, Question(load, found.host, run), coefficients))
        for depth in depths
        for n_gen, load in workloads_of(asked, depth)
    )
    energy = None
    if asked.energy is not None:
        forecasts, energy = with_energy(
            forecasts, asked.host, run.backend, asked.energy, found.own_power
        )
    n_context = asked.n_context or max(depths) + max((*asked.n_prompts, *asked.n_gens))
    warnings = (
        *spec.warnings,
        *context_notes(spec, n_context),
        *(w for f in forecasts for w in f.prediction.warnings),
        *backend_notes(request, run, asked.host),
        *_host_notes(asked, found),
    )
    memory = fit(
        spec,
        asked.host,
        n_context,
        type_k=asked.type_k,
        type_v=asked.type_v,
        n_ubatch=asked.n_ubatch,
        flash_attention=asked.flash_attention,
    )
    return Answer(
        spec=spec,
        asked=asked,
        run=run,
        forecasts=forecasts,
        fit=memory,
        coefficients=coefficients.digest,
        warnings=tuple(dict.fromkeys(warnings)),
        calibration=found.summary,
        tasks=_tasks(spec, asked, run, found, memory),
        energy=energy,
    )


def run(request: Request, output: str) -> int:
    """Print predictions; exit code 1 when no model asked about fits the host."""
    from tokcast.cli.predict_report import comparison, single

    if not request.addresses:
        raise InputError("no model given; expected a file, owner/repo[:quant] or name@FILETYPE")
    asked = parse(request)
    answers = []
    with Progress() as progress:
        for address in request.addresses:
            progress(f"reading {address}")
            answers.append(answer(address, request, asked))
    one = len(answers) == 1
    report = single(answers[0], request.explain) if one else comparison(answers, request.explain)
    print(render(report, output))
    return 1 if all(a.fit.fits is False for a in answers) else 0
