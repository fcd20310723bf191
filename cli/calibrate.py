"""`tokcast calibrate`: this machine measured without a download, and predictions made sharper."""

from dataclasses import dataclass
from pathlib import Path

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
from tokcast.measurements.launch import rates
from tokcast.measurements.plan import Launch, Plan, parse_budget
from tokcast.measurements.plan import make as make_plan
from tokcast.measurements.probe import Peaks, probe
from tokcast.measurements.runners.job import Settings
from tokcast.measurements.runners.mlx import is_slow_device
from tokcast.measurements.runners.rates import Rate
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


@dataclass(frozen=True, slots=True)
class Probed:
    """What this machine sustains, by numpy and by the runtime's own kernels."""

    peaks: Peaks | None
    device: str
    rates: tuple[Rate, ...]

    def facts(self, host: Host) -> dict[str, float]:
        """Return measured peaks that stand in for published ones.

        A nameplate is kept where it was published: the release's effects are relative to it. An
        estimate, as of a virtual machine, gives way to the measurement.
        """
        if host.confidence != "low":
            return {}
        read = [r.bytes_per_s for r in self.rates]
        fp32 = [r.flops_per_s for r in self.rates if r.type == "F32"]
        if self.peaks is not None:
            read.append(self.peaks.bytes_per_s)
            fp32.append(self.peaks.fp32_flops_per_s)
        found = {"bytes_per_s": max(read, default=0.0), "fp32_flops_per_s": max(fp32, default=0.0)}
        return {name: value for name, value in found.items() if value}

    def notes(self) -> tuple[str, ...]:
        """Return the figures in words, with their spread."""
        found = []
        if self.peaks is not None:
            p = self.peaks
            found.append(
                f"Measured here: {p.bytes_per_s / 1e9:.1f} GB/s read"
                f" (spread {100 * p.bytes_spread:.0f} %), {p.triad_bytes_per_s / 1e9:.1f} GB/s"
                f" triad, {p.fp32_flops_per_s / 1e9:.0f} GFLOP/s FP32"
                f" (spread {100 * p.flops_spread:.0f} %), {p.n_threads} threads."
            )
        kernels = ", ".join(
            f"{r.type} {r.bytes_per_s / 1e9:.0f} GB/s and {r.flops_per_s / 1e9:,.0f} GFLOP/s"
            for r in self.rates
        )
        if kernels:
            spread = 100 * max(r.spread for r in self.rates)
            found.append(f"Its kernels on {self.device}: {kernels} (spread up to {spread:.0f} %).")
        return tuple(found)


def _probed(engine: Engine, n_threads: int) -> Probed:
    peaks = probe(n_threads) if engine.setup.backend == "CPU" else None
    try:
        device, found = rates("mlx" if engine.runtime == "mlx" else "llama.cpp", n_threads)
    except InputError:
        # Only llama-bench is here, or a build without the interface: the runs say enough.
        return Probed(peaks, "", ())
    return Probed(peaks, device, found)


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
    probed = _probed(engine, settings.n_threads)
    place = Place(engine.host.name, engine.host.memory_bytes)
    outcome = calibrate(
        plan, session, store, place, settings, scratch_folder(), on_launch, run=engine.launch
    )
    return outcome, probed


def _from_files(request: Request, backend: str, host: Host) -> Usable:
    rows: list[Measurement] = []
    for name in request.files:
        rows.extend(read_file(Path(name)).rows)
    usable = points_of_rows(rows, host, backend)
    if not usable.points:
        why = "; ".join(f"{n} {reason}" for reason, n in usable.left_aside.items())
        raise InputError(
            f"{', '.join(request.files)}: no figure of {host.name} with {backend} to use"
            f" ({why or 'the files are empty'}); --host names the chip they are of"
        )
    return usable


def _backend_of_files(request: Request) -> str:
    found = [m.backend for name in request.files for m in read_file(Path(name)).rows]
    return max(set(found), key=found.count) if found else "CPU"


def _with_files(request: Request) -> Report:
    backend = _backend_of_files(request)
    host = detected(backend)
    if request.host:
        from tokcast.hosts.match import find

        if find(request.host).name != host.name:
            raise InputError(
                f"--host {request.host}: a calibration is of this machine, {host.name}"
            )
    usable = _from_files(request, backend, host)
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
    """Return the newest calibration of each backend made again from its kept runs."""
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


def run(request: Request, output: str) -> int:
    """Calibrate and print the error before and after; exit code 1 where it was too busy."""
    check_format(output)
    parse_budget(request.budget)
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
