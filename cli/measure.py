"""`tokcast measure run`: one model measured as llama-bench does, every sample kept."""

from dataclasses import dataclass

from tokcast.cli.measuring import default_threads, engine_of, free_bytes, job_of, measuring
from tokcast.cli.options import cache_type, counts, one_count
from tokcast.cli.progress import Progress, bar
from tokcast.cli.render import Report, Table, check_format, rate, render
from tokcast.cli.runs_data import run_data, run_records
from tokcast.measurements.calibration_run import Place, record
from tokcast.measurements.figures import Figure, figures
from tokcast.measurements.protocol import Rule
from tokcast.measurements.record import RunRecord, Task
from tokcast.measurements.runners.job import Settings, longest
from tokcast.measurements.runners.mlx import is_slow_device
from tokcast.measurements.target import check_memory, find, on_disk
from tokcast.predictor.errors import InputError

MAX_LAUNCHES = 50


@dataclass(frozen=True, slots=True)
class Request:
    """What was typed, as text."""

    model: str
    runtime: str | None
    n_prompt: str
    n_gen: str
    n_depth: str | None
    n_repeats: str
    n_launches: str
    n_threads: str | None
    n_batch: str
    n_ubatch: str
    flash_attn: str
    type_k: str
    type_v: str
    n_gpu_layers: str | None
    offline: bool


def tests_of(n_prompt: str, n_gen: str, n_depth: str | None) -> tuple[Task, ...]:
    """Return the tests asked for, shallow ones first, so that the cache is filled once."""
    prompts = [n for n in counts(n_prompt, "-p") if n]
    generations = [n for n in counts(n_gen, "-n") if n]
    if not prompts and not generations:
        raise InputError("-p 0 -n 0: nothing to measure; expected a prompt or tokens to generate")
    found: list[Task] = []
    for depth in sorted(set(counts(n_depth or "0", "-d"))):
        found += [Task("prefill", n, depth) for n in prompts]
        found += [Task("decode", n, depth) for n in generations]
    return tuple(found)


def flash_word(text: str) -> str:
    """Return flash attention as the runtimes are told; raises InputError for another word."""
    choice = {"1": "on", "0": "off"}.get(text.lower(), text.lower())
    if choice not in ("on", "off", "auto"):
        raise InputError(f"-fa {text!r}: expected on, off or auto")
    return choice


def settings_of(request: Request) -> Settings:
    """Return the checked settings; raises InputError naming the flag."""
    layers = request.n_gpu_layers
    return Settings(
        n_threads=default_threads(request.n_threads),
        n_batch=one_count(request.n_batch, "-b"),
        n_ubatch=one_count(request.n_ubatch, "-ub"),
        flash_attention=flash_word(request.flash_attn),
        type_k=cache_type(request.type_k, "-ctk"),
        type_v=cache_type(request.type_v, "-ctv"),
        n_gpu_layers=None if layers is None else one_count(layers, "-ngl", at_least=0),
    )


def measure(request: Request, progress: Progress) -> tuple[RunRecord, ...]:
    """Return the launches, each kept as soon as it is done; raises InputError."""
    tests = tests_of(request.n_prompt, request.n_gen, request.n_depth)
    settings = settings_of(request)
    n_launches = one_count(request.n_launches, "--launches")
    if n_launches > MAX_LAUNCHES:
        raise InputError(f"--launches {n_launches}: expected at most {MAX_LAUNCHES}")
    rule = Rule(min_samples=one_count(request.n_repeats, "-r"))
    progress(f"reading {request.model}")
    target = find(request.model, request.offline or None)
    engine = engine_of(request.runtime, target.header.format)
    check = job_of(engine, "", tests, settings, rule)
    check_memory(target.header, longest(check), free_bytes())
    place = Place(engine.host.name, engine.host.memory_bytes)
    kept: list[RunRecord] = []
    with measuring() as store, on_disk(target) as (path, model):
        for i in range(n_launches):
            job = job_of(engine, str(path), tests, settings, rule)

            def on_event(text: str, i: int = i) -> None:
                progress(f"{bar(i, n_launches)} launches, {text}")

            on_event("loading")
            kept.append(record(engine.launch(job, on_event), model, place))
            store.add(kept[-1])
    return tuple(kept)


def figure_table(found: tuple[Figure, ...]) -> Table:
    """Return a line a test: speed, spread, how it was come by, whether to trust it."""
    has_energy = any(f.joules_per_token is not None for f in found)
    columns = ["test", "tok/s", "±", "launches", "samples", "trust"]
    if has_energy:
        columns.insert(3, "J/token")
    rows = []
    for f in found:
        cells = [f.test.label, rate(f.tok_per_s), rate(f.deviation)]
        if has_energy:
            cells.append("-" if f.joules_per_token is None else f"{f.joules_per_token:.3g}")
        verdict = "stable" if f.verdict.stable else "; ".join(f.verdict.reasons)
        rows.append((*cells, str(f.n_launches), str(f.n_samples), verdict))
    right = frozenset({"tok/s", "±", "J/token", "launches", "samples"})
    return Table(tuple(columns), tuple(rows), right)


def notes_of(runs: tuple[RunRecord, ...]) -> tuple[str, ...]:
    """Return what a reader of the figures should know."""
    first, s = runs[0], runs[0].setup
    found = [
        f"{s.version}, {s.backend}" + (f", {s.n_threads} threads" if s.n_threads else "") + "."
    ]
    if first.model.clone_of:
        found.append(f"Note: random weights in the shapes of {first.model.clone_of}.")
    if len(runs) == 1:
        found.append("Note: one launch; the spread between launches is larger (--launches 3).")
    if is_slow_device(s):
        found.append("Note: MLX on a processor: works, but its speed says nothing of Apple's.")
    if not first.energy_source:
        found.append("No energy counter here.")
    elif first.idle_watts is not None:
        found.append(
            f"Energy: {first.energy_source}; idle draw {first.idle_watts:.1f} W, included."
        )
    return tuple(found)


def report(runs: tuple[RunRecord, ...]) -> Report:
    """Return the figures of launches of one model."""
    found = figures(runs)
    first = runs[0]
    n_unstable = sum(not f.verdict.stable for f in found)
    trust = f"{n_unstable} of {len(found)} figures are not to be trusted" if n_unstable else ""
    verdict = (
        f"{first.model.name} on {first.host} ({first.setup.runtime}, {first.setup.backend})",
    )
    return Report(
        verdict=(*verdict, *((f"  {trust}",) if trust else ())),
        tables=(figure_table(found),),
        notes=(*notes_of(runs), f"Kept as {', '.join(r.id for r in runs)}."),
        data={"runs": [run_data(r) for r in runs]},
        records=run_records(runs),
    )


def run(request: Request, output: str) -> int:
    """Measure and print; exit code 0 though figures be unstable: the table says so."""
    check_format(output)
    with Progress() as progress:
        found = measure(request, progress)
    print(render(report(found), output))
    return 0
