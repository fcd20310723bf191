"""`tokcast adapt`: when to change the plan, from a stream of measured runs."""

import contextlib
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TextIO

from tokcast.cli.adapt_runs import runs_of
from tokcast.cli.options import host_of, number
from tokcast.cli.render import Report, Table, check_format, count, plain, rate, render
from tokcast.cli.running import run_of
from tokcast.cli.scene import Setting, scene_of
from tokcast.hosts.rates import rates_of
from tokcast.predictor import catalogue
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.model import model_spec
from tokcast.predictor.precision.adapt import Adapter, Decision, Expected, Rung
from tokcast.predictor.precision.choose import option
from tokcast.predictor.precision.cost import Step, cost, cost_of, retyped
from tokcast.predictor.precision.plans import PLANS, plan_of
from tokcast.predictor.sources import open_model
from tokcast.predictor.spec import ModelSpec

STDIN = "-"


@dataclass(frozen=True, slots=True)
class Request:
    """What was typed, as text."""

    file: str
    model: str
    min_decode: str
    plans: str | None = None
    start: str | None = None
    host: str | None = None
    bandwidth: str | None = None
    tflops: str | None = None
    memory: str | None = None
    offline: bool = False


def run(request: Request, output: str) -> int:
    """Print the changes; JSON lines come as the runs do. Exit code 1 where runs ask for a change.

    Raises InputError for a line that is no run.
    """
    check_format(output)
    adapter = _adapter(request)
    decisions = []
    with _opened(request.file) as lines:
        for made in runs_of(lines, "stdin" if request.file == STDIN else request.file):
            try:
                decisions.append(adapter.follow(made))
            except InputError as error:
                raise InputError(f"run {len(decisions) + 1}: {error}") from None
            if output == "jsonl":
                print(json.dumps(_record(decisions[-1], len(decisions))), flush=True)
    if not decisions:
        raise InputError(f"{request.file}: no runs; expected lines with plan and tok_per_s")
    if output != "jsonl":
        print(render(_report(adapter, decisions), output))
    return 1 if decisions[-1].plan != decisions[-1].run.plan else 0


@contextlib.contextmanager
def _opened(name: str) -> Iterator[TextIO]:
    if name == STDIN:
        yield sys.stdin
        return
    try:
        with Path(name).open(encoding="utf-8", errors="replace") as file:
            yield file
    except OSError as error:
        raise InputError(f"{name}: {error.strerror}; expected a file of runs, or -") from None


def _adapter(request: Request) -> Adapter:
    wanted = number(request.min_decode, "--min-decode", "tokens/s")
    host, _ = host_of(request.host, request.bandwidth, request.tflops, request.memory)
    here = not (request.host or request.bandwidth or request.tflops)
    expected = _expected(request, host, here)
    rungs = _rungs(request, host)
    start = request.start or ""
    if start and start not in [r.name for r in rungs]:
        raise InputError(f"--start {start!r}: expected one of {', '.join(r.name for r in rungs)}")
    return Adapter(rungs, expected, wanted, start)


def _rungs(request: Request, host: Host) -> list[Rung]:
    """Return the plans asked for, or the strategies that the host can run, least lossy first."""
    if request.plans is None:
        header, rates = open_model(request.model, offline=request.offline or None), rates_of(host)
        step = Step("decode", 4096)
        found = [option(cost(header, plan, step, rates), rates, None) for plan in PLANS]
        usable = [o for o in found if not o.misses and o.kept is not None]
        usable.sort(key=lambda o: (-o.kept.share if o.kept else 0.0, o.cost.seconds))
        return [_strategy(o.plan.name) for o in usable]
    names = [name.strip() for name in request.plans.split(",") if name.strip()]
    if not names or len(set(names)) < len(names):
        raise InputError(f"--plans {request.plans!r}: expected names of plans, each once")
    return [Rung(n, 16.0) if _is_file_type(n) else _strategy(n) for n in names]


def _strategy(name: str) -> Rung:
    plan = plan_of(name)
    return Rung(plan.name, min(plan.format_of("qk_matmul").bits, plan.kv.bits))


def _is_file_type(name: str) -> bool:
    return name in catalogue.file_types()


def _expected(request: Request, host: Host, here: bool) -> Expected:
    """Return the speed to hold a plan's runs against, at a depth rounded to 256 tokens.

    A strategy's is its floor, a file type's the prediction; only their ratios count.
    """
    name = request.model.partition("@")[0]

    @cache
    def spec_of(plan: str) -> ModelSpec:
        offline = request.offline or None
        if _is_file_type(plan):
            return model_spec(open_model(f"{name}@{plan}", offline=offline))
        return model_spec(retyped(open_model(request.model, offline=offline), plan_of(plan)))

    @cache
    def speed(plan: str, depth: int) -> float:
        spec = spec_of(plan)
        if not _is_file_type(plan):
            step = Step("decode", depth or 1)
            return 1 / cost_of(spec, plan_of(plan), step, rates_of(host)).seconds
        run = run_of(spec, host, None, None, flash=None, is_here=here)
        scene = scene_of(spec, host, run, Setting(n_depth=depth), is_here=here)
        return scene.predict("decode").tok_per_s

    return lambda plan, depth: speed(plan, 256 * round(depth / 256))


def _report(adapter: Adapter, decisions: Sequence[Decision]) -> Report:
    last = decisions[-1]
    changes = [(n, d) for n, d in enumerate(decisions, 1) if d.changed]
    n_aside = sum(d.verdict == "outlier" for d in decisions)
    stays = last.plan == last.run.plan
    verdict = f"Stay with {last.plan}" if stays else f"Change from {last.run.plan} to {last.plan}"
    rows = tuple(
        (f"{n}", d.run.plan, count(d.run.n_depth), d.plan, rate(d.tok_per_s), d.why)
        for n, d in changes
    )
    columns = ("run", "measured", "depth", "then", "tok/s", "why")
    return Report(
        verdict=(
            f"{verdict}: {rate(last.tok_per_s)} tok/s at depth {count(last.run.n_depth)},"
            f" {adapter.wanted:g} wanted",
        ),
        tables=(Table(columns, rows, frozenset({"run", "depth", "tok/s"})),) if rows else (),
        notes=(
            f"{len(decisions)} runs, {n_aside} outliers set aside, {len(changes)} changes.",
            f"Plans, least lossy first: {', '.join(r.name for r in adapter.rungs)}.",
        ),
        data={
            "wanted_tok_per_s": adapter.wanted,
            "plans": [r.name for r in adapter.rungs],
            "plan": last.plan,
            "change": not stays,
            "runs": [_record(d, n) for n, d in enumerate(decisions, 1)],
        },
        records=[_record(d, n) for n, d in enumerate(decisions, 1)],
    )


def _record(d: Decision, n: int) -> dict[str, Any]:
    return {
        "run": n,
        "measured": plain(d.run.plan),
        "n_depth": d.run.n_depth,
        "tok_per_s": d.run.tok_per_s,
        "taken_for": d.verdict,
        "plan": d.plan,
        "plan_tok_per_s": d.tok_per_s,
        "changed": d.changed,
        "why": d.why or None,
    }
