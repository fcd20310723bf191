"""`tokcast recommend`: which number formats a model should be run in, operator by operator."""

from dataclasses import dataclass

from tokcast.cli.fitting import available_bytes
from tokcast.cli.names import short_name
from tokcast.cli.options import host_of, one_count
from tokcast.cli.predict_notes import several_devices_notes
from tokcast.cli.render import render
from tokcast.hosts.rates import rates_of
from tokcast.predictor.errors import InputError
from tokcast.predictor.header import Header
from tokcast.predictor.host import Host
from tokcast.predictor.ledger import Phase
from tokcast.predictor.precision.choose import Objective, Option, objective_of, option, ranked
from tokcast.predictor.precision.cost import Step, cost
from tokcast.predictor.precision.plans import BASELINE, PLANS, Plan, plan_of
from tokcast.predictor.precision.rates import Rates
from tokcast.predictor.sources import open_model

LONGEST = 1 << 24


@dataclass(frozen=True, slots=True)
class Request:
    """What was typed, as text."""

    model: str
    phase: str = "decode"
    n_context: str = "4k"
    objective: str = "balanced"
    plan: str | None = None
    kv: str | None = None
    host: str | None = None
    bandwidth: str | None = None
    tflops: str | None = None
    memory: str | None = None
    offline: bool = False


@dataclass(frozen=True, slots=True)
class Recommendation:
    """Every plan on a model and a host, best first; `shown` is the one asked for, or the best.

    `baseline` is 16 bits everywhere, which speeds are told beside.
    """

    request: Request
    header: Header
    host: Host
    rates: Rates
    step: Step
    objective: Objective
    options: tuple[Option, ...]
    baseline: Option
    shown: Option
    notes: tuple[str, ...]

    @property
    def has_pick(self) -> bool:
        """Return whether any plan will do."""
        return not self.options[0].misses


def model_name(r: Recommendation) -> str:
    """Return a short name of the model."""
    return short_name(str(r.header.metadata.get("general.name", r.request.model)))


def step_of(phase: str, n_context: str) -> Step:
    """Return a step of that phase; raises InputError for another phase or no context."""
    phases: tuple[Phase, ...] = ("decode", "prefill")
    found = next((p for p in phases if p == phase.strip().lower()), None)
    if found is None:
        raise InputError(f"--phase {phase!r}: expected decode or prefill")
    n = one_count(n_context, "--context")
    if n > LONGEST:
        raise InputError(f"--context {n_context!r}: expected at most {LONGEST} tokens")
    return Step(found, n)


def plans_of(request: Request) -> tuple[Plan, ...]:
    """Return the strategies, or the one asked for, with the K/V format asked for."""
    plans = PLANS if request.plan is None else (BASELINE, plan_of(request.plan))
    if request.kv is not None:
        plans = (BASELINE, *(plan.with_kv(request.kv) for plan in plans))
    return tuple({plan.name: plan for plan in plans}.values())


def recommend(request: Request) -> Recommendation:
    """Return the plans, best first; raises InputError on bad input."""
    objective, step = objective_of(request.objective), step_of(request.phase, request.n_context)
    plans = plans_of(request)
    host, notes = host_of(request.host, request.bandwidth, request.tflops, request.memory)
    rates = rates_of(host)
    header = open_model(request.model, offline=request.offline or None)
    there = available_bytes(host)
    found = [option(cost(header, plan, step, rates), rates, there) for plan in plans]
    if not found[0].cost.weights_bytes:
        raise InputError(f"{request.model}: holds no weights; no formats to choose for it")
    options = ranked(found, objective)
    asked = request.plan is not None
    shown = found[-1] if asked else options[0]
    return Recommendation(
        request,
        header,
        host,
        rates,
        step,
        objective,
        options,
        found[0],
        shown,
        (*notes, *several_devices_notes(host)),
    )


def run(request: Request, output: str) -> int:
    """Print the recommendation; exit code 1 when no plan will do."""
    from tokcast.cli.precision_report import report

    found = recommend(request)
    print(render(report(found), output))
    return 0 if found.has_pick else 1
