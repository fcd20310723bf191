"""A model laid out over several devices: its speed there, and what each of them holds."""

from dataclasses import replace

from tokcast.cli.options import flash_attention
from tokcast.cli.placed_fit import PlacedFit
from tokcast.cli.placing import Placing
from tokcast.cli.predict_answer import Answer, Forecast
from tokcast.cli.predict_notes import backend_notes, context_notes
from tokcast.cli.predict_request import (
    Asked,
    Request,
    check_weights,
    context_of,
    depths_of,
    workloads_of,
)
from tokcast.cli.running import run_of
from tokcast.fits.placed_released import released_placed
from tokcast.fits.released import released
from tokcast.predictor.errors import InputError
from tokcast.predictor.header import Header
from tokcast.predictor.ledger import Workload
from tokcast.predictor.memory import LONGEST, PADDING, Setting, longest_context, memory
from tokcast.predictor.placement.fit import fit
from tokcast.predictor.placement.inventory import Inventory
from tokcast.predictor.placement.memory import device_memory, fits
from tokcast.predictor.placement.plan import Placement, place
from tokcast.predictor.placement.speed import Speed, compile_speed
from tokcast.predictor.roofline import Question
from tokcast.predictor.spec import ModelSpec
from tokcast.predictor.terms import Run


def placed_answer(model: Inventory, request: Request, asked: Asked, placing: Placing) -> Answer:
    """Return the prediction for a placed model; raises InputError on bad input."""
    spec = model.spec
    asked = replace(asked, n_ubatch=min(asked.n_ubatch, placing.n_batch or asked.n_ubatch))
    depths = depths_of(spec, asked)
    n_context = context_of(asked, depths)
    setting = placing.setting(asked.type_k, asked.type_v, asked.n_ubatch, asked.flash_attention)
    placement = placement_of(model, placing, n_context, setting)
    words = (request.host, request.backend, request.flash_attn, request.runtime)
    run = run_for(spec, placing, *words)
    forecasts = tuple(
        Forecast(n_gen, depth, speed_of(placement, load, run)(placement))
        for depth in depths
        for n_gen, load in workloads_of(asked, depth)
    )
    warnings = (
        *spec.warnings,
        *context_notes(spec, n_context // placing.n_sequences),
        *placement.warnings,
        *(w for f in forecasts for w in f.prediction.warnings),
        *backend_notes(request.backend, run, asked.host),
        *asked.host_notes,
    )
    held = held_by(placement, n_context, setting, placing.machine.is_unified)
    return Answer(
        spec,
        asked,
        run,
        forecasts,
        held,
        released().digest,
        tuple(dict.fromkeys(warnings)),
        placement=placement,
    )


def inventory_of(header: Header, address: str, spec: ModelSpec | None = None) -> Inventory:
    """Return a model's tensors by place; raises InputError for one that llama.cpp doesn't read.

    `spec` is the model's where it is known already.
    """
    if header.format != "gguf":
        raise InputError(
            f"{address}: an MLX model runs on one chip; expected a GGUF model to place over devices"
        )
    model = Inventory(header, spec)
    check_weights(model.spec, address)
    return model


def placement_of(model: Inventory, placing: Placing, n_context: int, setting: Setting) -> Placement:
    """Return where the model goes, chosen to fit where that was asked; raises InputError."""
    devices, options = placing.machine.devices, placing.options
    if placing.is_fitted:
        options = fit(model, devices, n_context, setting, options)
    return place(model, devices, options)


def run_for(
    spec: ModelSpec,
    placing: Placing,
    host: str | None,
    backend: str | None,
    flash_attn: str,
    runtime: str | None = None,
) -> Run:
    """Return how a placed model is run: by what drives all of the cards."""
    first = placing.machine.devices[0]
    if backend is None and first.name.startswith("Vulkan"):
        backend = "Vulkan"
    flash = None if flash_attn == "auto" else flash_attention(flash_attn)
    run = run_of(spec, first.host, runtime, backend, flash=flash, is_here=host is None)
    return replace(run, n_threads=placing.n_threads)


def speed_of(placement: Placement, load: Workload, run: Run) -> Speed:
    """Return what predicts placements of a model over the same devices."""
    question = Question(load, placement.devices[0].host, run)
    return compile_speed(placement.spec, placement.devices, question, released(), released_placed())


def held_by(placement: Placement, n_context: int, setting: Setting, is_unified: bool) -> PlacedFit:
    """Return what every device holds, and the longest context that this placement allows."""
    use = memory(placement.spec, n_context, setting)
    devices = device_memory(placement, n_context, setting)
    longest = _longest(placement, setting, is_unified)
    return PlacedFit(devices, use, n_context, is_unified, longest)


def _longest(placement: Placement, setting: Setting, is_unified: bool) -> int | None:
    def holds(n_context: int) -> bool:
        held = device_memory(placement, n_context, setting)
        return fits(held, is_unified) is not False

    # Whole blocks within what the model was trained for.
    limit = min(placement.spec.context_length or LONGEST, LONGEST) // PADDING * PADDING
    return longest_context(limit, holds) or None
