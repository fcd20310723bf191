"""`tokcast plan`: where to put a model that does not fit a card, and what that costs."""

from dataclasses import dataclass

from tokcast.cli.options import cache_type, flash_attention, number, one_count
from tokcast.cli.placed import inventory_of, run_for
from tokcast.cli.placement_words import Words
from tokcast.cli.placing import Placing, placing_of
from tokcast.cli.render import render
from tokcast.fits.placed_released import released_placed
from tokcast.fits.released import released
from tokcast.predictor.errors import InputError
from tokcast.predictor.ledger import Workload
from tokcast.predictor.placement.choose import Plan, Trial, best, cliff, leanest, others, sweep
from tokcast.predictor.placement.speed import compile_speed
from tokcast.predictor.prediction import Prediction
from tokcast.predictor.roofline import Question
from tokcast.predictor.sources import open_model
from tokcast.predictor.spec import ModelSpec
from tokcast.predictor.terms import Run

DEFAULT_CONTEXT = 8192
# Tokens generated, as `predict` has them: speed is that of the middle one.
N_GEN = 128


@dataclass(frozen=True, slots=True)
class Request:
    """What was typed, as text."""

    address: str
    host: str | None
    backend: str | None
    n_context: str | None
    min_decode: str | None
    n_prompt: str
    at_depth: str
    n_ubatch: str
    type_k: str
    type_v: str
    flash_attn: str
    memory: str | None
    plot: str | None
    offline: bool
    placement: Words


@dataclass(frozen=True, slots=True)
class Planned:
    """The plans tried, the sweep first, and which of them stand out."""

    spec: ModelSpec
    placing: Placing
    run: Run
    n_context: int
    n_depth: int
    min_tok_per_s: float | None
    sweep: tuple[Plan, ...]
    others: tuple[Plan, ...]
    best: Plan | None
    prefill: Prediction | None

    @property
    def leanest(self) -> Plan | None:
        """Return the plan with least on the cards that is fast enough."""
        wish = self.min_tok_per_s
        return None if wish is None else leanest((*self.sweep, *self.others), wish)

    @property
    def cliff(self) -> tuple[Plan, Plan] | None:
        """Return where the sweep falls steepest."""
        return cliff(self.sweep)

    @property
    def is_met(self) -> bool:
        """Return whether there is a plan that fits and is fast enough."""
        if self.best is None:
            return False
        return self.best.decode.tok_per_s >= (self.min_tok_per_s or 0.0)


def plan(request: Request) -> Planned:
    """Return the plans for a request; raises InputError for what can't be read or understood."""
    placing = placing_of(request.placement, request.host, memory=request.memory)
    asked = request.n_context
    n_context = DEFAULT_CONTEXT if asked is None else one_count(asked, "-c")
    n_depth = one_count(request.at_depth, "--at-depth", 0)
    n_prompt, n_ubatch = one_count(request.n_prompt, "-p"), one_count(request.n_ubatch, "-ub")
    wish = request.min_decode
    min_tok_per_s = None if wish is None else number(wish, "--min-decode", "tokens/s")
    n_ubatch = min(n_ubatch, placing.n_batch or n_ubatch)
    caches = cache_type(request.type_k, "-ctk"), cache_type(request.type_v, "-ctv")
    has_flash = flash_attention(request.flash_attn)
    model = inventory_of(
        open_model(request.address, offline=request.offline or None), request.address
    )
    run = run_for(model.spec, placing, request.host, request.backend, request.flash_attn)
    devices = placing.machine.devices

    def speed(load: Workload) -> Question:
        return Question(load, devices[0].host, run)

    tail = (n_ubatch, *caches, has_flash)
    decode = compile_speed(
        model.spec,
        devices,
        speed(Workload("decode", 1, n_depth + N_GEN // 2, *tail)),
        released(),
        released_placed(),
    )
    setting = placing.setting(*caches, n_ubatch, has_flash)
    trial = Trial(model, placing.machine, n_context, setting, decode)
    steps, more = sweep(trial, placing.options), others(trial, placing.options)
    chosen = best((*steps, *more))
    prefill = None
    if chosen is not None:
        question = speed(Workload("prefill", n_prompt, n_depth, *tail))
        timed = compile_speed(model.spec, devices, question, released(), released_placed())
        prefill = timed(chosen.placement)
    return Planned(
        model.spec, placing, run, n_context, n_depth, min_tok_per_s, steps, more, chosen, prefill
    )


def run(request: Request, output: str) -> int:
    """Print plans; exit code 1 where none fits or none is fast enough."""
    from tokcast.cli.plan_report import report

    _check(request)
    found = plan(request)
    print(render(report(found), output))
    if request.plot is not None:
        from tokcast.cli.plan_plot import draw

        draw(found, request.plot)
    return 0 if found.is_met else 1


def _check(request: Request) -> None:
    plot = request.plot
    if plot is not None and not plot.lower().endswith((".svg", ".png")):
        raise InputError(f"--plot {plot}: expected a file name that ends with .svg or .png")
