"""`tokcast predict`: speed, memory and evidence, verdict first."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tokcast.cli.fitting import Fit, fit
from tokcast.cli.predict_answer import Answer, Forecast
from tokcast.cli.predict_notes import backend_notes, context_notes
from tokcast.cli.predict_request import (
    Asked,
    Request,
    check_weights,
    context_of,
    depths_of,
    parse,
    workloads_of,
)
from tokcast.cli.progress import Progress
from tokcast.cli.render import Report, render
from tokcast.cli.running import applied, is_here, run_of
from tokcast.fits.calibrated import Applied
from tokcast.predictor.errors import InputError
from tokcast.predictor.ledger import Workload
from tokcast.predictor.model import model_spec
from tokcast.predictor.roofline import Question, predict
from tokcast.predictor.sources import open_model
from tokcast.predictor.spec import ModelSpec
from tokcast.predictor.terms import Run

if TYPE_CHECKING:
    from tokcast.cli.predict_energy import EnergyAnswer
    from tokcast.cli.tasks import TaskForecast


def answer(address: str, request: Request, asked: Asked) -> Answer:
    """Return the prediction for one model address; raises InputError on bad input."""
    header = open_model(address, offline=request.offline or None)
    if asked.placing is not None:
        from tokcast.cli.placed import inventory_of, placed_answer

        return placed_answer(inventory_of(header, address), request, asked, asked.placing)
    return answer_of(model_spec(header), address, request, asked)


def answer_of(spec: ModelSpec, address: str, request: Request, asked: Asked) -> Answer:
    """Return the prediction for a model that was read; raises InputError on bad input."""
    check_weights(spec, address)
    flash = None if request.flash_attn == "auto" else asked.flash_attention
    words = (request.runtime, request.backend)
    run = run_of(spec, asked.host, *words, flash=flash, is_here=request.host is None)
    here = is_here(request.host, request.bandwidth, request.tflops)
    found = applied(asked.host, run, is_here=here)
    depths = depths_of(spec, asked)
    forecasts, energy = _forecasts(spec, asked, run, found, depths)
    n_context = context_of(asked, depths)
    memory = fit(spec, asked.host, n_context, asked.setting)
    warnings = (
        *spec.warnings,
        *context_notes(spec, n_context),
        *(w for f in forecasts for w in f.prediction.warnings),
        *backend_notes(request.backend, run, asked.host),
        *_host_notes(asked, found),
    )
    return Answer(
        spec=spec,
        asked=asked,
        run=run,
        forecasts=forecasts,
        fit=memory,
        coefficients=found.coefficients.digest,
        warnings=tuple(dict.fromkeys(warnings)),
        calibration=found.summary,
        tasks=_tasks(spec, asked, run, found, memory),
        energy=energy,
    )


def _forecasts(
    spec: ModelSpec, asked: Asked, run: Run, applied: Applied, depths: Sequence[int]
) -> "tuple[tuple[Forecast, ...], EnergyAnswer | None]":
    """Return the forecasts, and their energy where it is asked for."""
    forecasts = tuple(
        Forecast(
            n_gen, depth, predict(spec, Question(load, applied.host, run), applied.coefficients)
        )
        for depth in depths
        for n_gen, load in workloads_of(asked, depth)
    )
    if asked.energy is None:
        return forecasts, None
    from tokcast.cli.predict_energy import with_energy

    return with_energy(forecasts, asked.host, run.backend, asked.energy, applied.own_power)


def _host_notes(asked: Asked, applied: Applied) -> tuple[str, ...]:
    """Return what is uncertain of the host; a calibration settles what detection guessed."""
    if applied.is_calibrated:
        return ()
    return (*asked.host_notes, *((applied.note,) if applied.note else ()))


def _tasks(
    spec: ModelSpec, asked: Asked, run: Run, applied: Applied, memory: Fit
) -> "TaskForecast | None":
    if asked.load is None:
        return None
    from tokcast.cli.tasks import forecast

    setting = (asked.n_ubatch, asked.type_k, asked.type_v, asked.flash_attention)
    q = Question(Workload("decode", 1, 0, *setting), applied.host, run)
    return forecast(spec, q, applied.coefficients, memory, asked.n_context, asked.load)


def run(request: Request, output: str) -> int:
    """Print predictions; exit code 1 when no model asked about fits the host."""
    if not request.addresses:
        raise InputError("no model given; expected a file, owner/repo[:quant] or name@FILETYPE")
    asked = parse(request)
    answers = []
    with Progress() as progress:
        for address in request.addresses:
            progress(f"reading {address}")
            answers.append(answer(address, request, asked))
    print(render(_report(answers, request.explain), output))
    return 1 if all(a.fit.fits is False for a in answers) else 0


def _report(answers: Sequence[Answer], explain: bool) -> Report:
    if len(answers) == 1:
        from tokcast.cli.predict_report import single

        return single(answers[0], explain)
    from tokcast.cli.predict_comparison import comparison

    return comparison(answers, explain)
