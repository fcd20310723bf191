"""`tokcast calibrate`: this machine measured without a download, and predictions made sharper."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tokcast.cli.calibrate_probe import Probed, probed_by
from tokcast.cli.calibrate_report import clean_share, plan_report, refused, report, trust
from tokcast.cli.measuring import (
    Engine,
    default_threads,
    detected,
    engine_of,
    free_bytes,
    measuring,
)
from tokcast.cli.progress import Progress, bar, clock_text, say
from tokcast.cli.render import Report, check_format, render
from tokcast.fits.calibrate import Point
from tokcast.fits.calibrated import run_here
from tokcast.fits.calibration import Usable, make, points_of_rows, points_of_runs
from tokcast.fits.released import released
from tokcast.hosts.quantity import parse_bandwidth
from tokcast.measurements.calibration_run import Outcome, Place, calibrate, resume_or_start
from tokcast.measurements.importers import read_file
from tokcast.measurements.plan import Launch, Plan, parse_budget
from tokcast.measurements.plan import make as make_plan
from tokcast.measurements.runners.job import Settings
from tokcast.measurements.runners.mlx import is_slow_device
from tokcast.measurements.schema import Measurement
from tokcast.measurements.store import Store, open_store
from tokcast.measurements.target import scratch_folder
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host

# Assumed of a chip whose rate nobody published, for expected times only.
USUAL_FLOPS_PER_S = 2e11
# With fewer undisturbed figures than this a calibration would do harm.
LEAST_CLEAN = 0.5


@dataclass(frozen=True, slots=True)
class Request:
    """What was typed, as text."""

    budget: str
    files: tuple[str, ...]
    runtime: str | None
    n_threads: str | None
    host: str | None
    bandwidth: str | None
    fresh: bool
    refit: bool
    plan_only: bool


def _engine(request: Request) -> Engine:
    """Return the runtime to calibrate; raises InputError for MLX on a processor."""
    engine = engine_of(request.runtime, "mlx" if request.runtime == "mlx" else "gguf")
    if is_slow_device(engine.setup):
        raise InputError(
            "--runtime mlx: runs on the processor here, where it works but is not meant for speed;"
            " expected an Apple or NVIDIA GPU, or --runtime llama.cpp"
        )
    return engine


def _plan(request: Request, engine: Engine, settings: Settings) -> Plan:
    host = engine.host
    setting = f"{host.name}|{engine.setup.version}|{engine.setup.backend}|{settings.n_threads}"
    return make_plan(
        parse_budget(request.budget),
        host.bytes_per_s,
        host.fp32_flops_per_s or USUAL_FLOPS_PER_S,
        free_bytes(),
        setting,
        engine.runtime == "mlx",
    )


def _session(
    request: Request, engine: Engine, store: Store, progress: Progress
) -> tuple[Outcome, Probed]:
    settings = Settings(n_threads=default_threads(request.n_threads))
    plan = _plan(request, engine, settings)
    session = resume_or_start(store, plan, request.fresh)
    n_done = len(store.runs(session=session.id))
    if n_done:
        say(f"going on with {n_done} of {len(plan.launches)} launches done; --fresh begins anew")
    else:
        say(
            f"{len(plan.launches)} launches of {len(plan.items)} synthetic models, about"
            f" {clock_text(plan.expected_seconds)}; Ctrl-C loses nothing that is done"
        )

    def on_launch(work: Launch, done: int, total: int, seconds: float) -> None:
        progress(f"{bar(done, total)} {work.item.key}, about {clock_text(seconds)} left")

    progress("measuring bandwidth and arithmetic")
    probed = probed_by(engine, settings.n_threads)
    place = Place(engine.host.name, engine.host.memory_bytes)
    outcome = calibrate(
        plan, session, store, place, settings, scratch_folder(), on_launch, run=engine.launch
    )
    return outcome, probed


def _usable(request: Request, rows: Sequence[Measurement], backend: str, host: Host) -> Usable:
    usable = points_of_rows(rows, host, backend)
    if not usable.points:
        why = "; ".join(f"{n} {reason}" for reason, n in usable.left_aside.items())
        raise InputError(
            f"{', '.join(request.files)}: no figure of {host.name} with {backend} to use"
            f" ({why or 'the files are empty'}); --host names the chip they are of"
        )
    return usable


def _with_files(request: Request) -> Report:
    rows = [m for name in request.files for m in read_file(Path(name)).rows]
    backends = Counter(m.backend for m in rows)
    backend = backends.most_common(1)[0][0] if backends else "CPU"
    host = detected(backend)
    if request.host:
        from tokcast.hosts.match import find

        if find(request.host).name != host.name:
            raise InputError(
                f"--host {request.host}: a calibration is of this machine, {host.name}"
            )
    usable = _usable(request, rows, backend, host)
    facts = _given_facts(request)
    run = run_here("mlx" if backend == "MLX" else "llama.cpp", backend, released())
    source = ", ".join(Path(f).name for f in request.files)
    c = make(usable.points, host, run, released(), facts, source)
    store = open_store()
    store.finish("", c)
    notes = [f"Left aside: {n} {reason}." for reason, n in usable.left_aside.items()]
    return report(c, host, notes, ())


def _given_facts(request: Request) -> dict[str, float]:
    if request.bandwidth is None:
        return {}
    return {"bytes_per_s": parse_bandwidth(request.bandwidth)}


def _refit() -> Report:
    """Return the newest calibration that was measured, made again from its kept runs."""
    store = open_store()
    old = next((c for c in store.calibrations() if c["source"].startswith("session ")), None)
    if old is None:
        raise InputError("no calibration to refit; run tokcast calibrate")
    session = old["source"].removeprefix("session ")
    points: tuple[Point, ...] = points_of_runs(store.runs(session=session))
    host = detected(old["backend"])
    run = run_here(old["runtime"], old["backend"], released())
    c = make(points, host, run, released(), old["facts"], old["source"])
    store.finish(session, c)
    return report(c, host, (f"From the runs of {old['created'][:10]}.",), ())


def _measured(request: Request) -> tuple[Report, int]:
    engine = _engine(request)
    with measuring() as store, Progress() as progress:
        outcome, probed = _session(request, engine, store, progress)
        if clean_share(outcome.runs) < LEAST_CLEAN:
            return refused(outcome, engine.host), 1
        progress("fitting")
        session = outcome.runs[0].session
        run = run_here(engine.setup.runtime, engine.setup.backend, released())
        facts = {**probed.facts(engine.host), **_given_facts(request)}
        points = points_of_runs(outcome.runs)
        c = make(points, engine.host, run, released(), facts, f"session {session}")
        store.finish(session, c)
    took = f"{len(outcome.runs)} launches, {clock_text(outcome.seconds)}."
    notes = (*probed.notes(), *trust(outcome.runs), took)
    return report(c, engine.host, notes, outcome.failed), 0


def _check_flags(request: Request) -> None:
    """Raise InputError for flags of which one would be passed over."""
    ways = (("--refit", request.refit), ("--with", request.files), ("--plan", request.plan_only))
    asked = [flag for flag, given in ways if given]
    if len(asked) > 1:
        raise InputError(f"{' and '.join(asked)}: expected one of them")
    if request.host and not request.files:
        raise InputError(
            f"--host {request.host!r}: says what the figures of --with are of; without them it is"
            " this machine that is measured"
        )


def run(request: Request, output: str) -> int:
    """Calibrate and print the error before and after; exit code 1 where it was too busy."""
    check_format(output)
    parse_budget(request.budget)
    _check_flags(request)
    code = 0
    if request.plan_only:
        engine = _engine(request)
        settings = Settings(n_threads=default_threads(request.n_threads))
        shown = plan_report(_plan(request, engine, settings), engine)
    elif request.files:
        shown = _with_files(request)
    else:
        shown, code = (_refit(), 0) if request.refit else _measured(request)
    print(render(shown, output))
    return code
