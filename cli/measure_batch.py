"""`tokcast measure batch`: passes shared by several requests, measured and kept as CSV lines."""

from dataclasses import dataclass
from pathlib import Path

from tokcast.cli.measure import flash_word
from tokcast.cli.measuring import default_threads, detected, free_bytes, measuring
from tokcast.cli.options import one_count
from tokcast.cli.progress import Progress, bar
from tokcast.cli.render import Report, Table, check_format, render
from tokcast.measurements.batch_plan import MOST_READ, Round, Size, round_of
from tokcast.measurements.batches import Conditions, MeasuredBatch, to_row, write
from tokcast.measurements.launch import batches as launch_batches
from tokcast.measurements.protocol import Rule
from tokcast.measurements.record import Sample, Setup
from tokcast.measurements.runners.job import Job, Settings
from tokcast.measurements.store import now
from tokcast.measurements.store_file import data_folder
from tokcast.measurements.target import check_memory, find, on_disk
from tokcast.predictor.batch import Request as BatchRequest
from tokcast.predictor.errors import InputError
from tokcast.predictor.header import Header
from tokcast.predictor.model import model_spec

FILE = "batches.csv"
# Rounds of a launch: what is lost when it is broken off.
ROUNDS_A_LAUNCH = 4
MAX_SLOTS = 256


@dataclass(frozen=True, slots=True)
class Request:
    """What was typed, as text."""

    model: str
    n_rounds: str
    n_slots: str
    n_cells: str
    longest: str
    seed: str
    n_threads: str | None
    n_ubatch: str
    flash_attn: str
    to: str | None
    offline: bool


def kept_in(to: str | None) -> Path:
    """Return the file that measured batches are added to."""
    return Path(to) if to is not None else data_folder() / FILE


def size_of(request: Request) -> Size:
    """Return how large the rounds are; raises InputError naming the flag."""
    n_slots = one_count(request.n_slots, "--slots")
    if n_slots > MAX_SLOTS:
        raise InputError(f"--slots {n_slots}: expected at most {MAX_SLOTS}")
    return Size(
        n_slots=n_slots,
        n_cells=one_count(request.n_cells, "-c"),
        longest=one_count(request.longest, "--longest"),
    )


def measure(request: Request, progress: Progress) -> tuple[MeasuredBatch, ...]:
    """Return the batches measured, each launch's kept as soon as it is done; raises InputError."""
    size, seed = size_of(request), one_count(request.seed, "--seed", at_least=0)
    n_rounds, path = one_count(request.n_rounds, "--rounds"), kept_in(request.to)
    rounds = [round_of(size, i, seed) for i in range(n_rounds)]
    n_ubatch = one_count(request.n_ubatch, "-ub")
    settings = Settings(
        n_threads=default_threads(request.n_threads),
        n_batch=max(n_ubatch, 512),
        n_ubatch=n_ubatch,
        flash_attention=flash_word(request.flash_attn),
        n_gpu_layers=0,
    )
    progress(f"reading {request.model}")
    target = find(request.model, request.offline or None)
    check_memory(target.header, size.n_cells, free_bytes())
    _check_context(target.header, size)
    host = detected("CPU").name
    found: list[MeasuredBatch] = []
    with measuring(), on_disk(target) as (file, _):
        job = Job("llama.cpp", str(file), (), settings, Rule())
        for first in range(0, n_rounds, ROUNDS_A_LAUNCH):
            progress(f"{bar(first, n_rounds)} rounds")
            part = rounds[first : first + ROUNDS_A_LAUNCH]
            setup, samples = launch_batches(job, size, part)
            conditions = _conditions(request.model, host, setup, size)
            done = [
                b
                for planned, each in zip(part, samples, strict=True)
                for b in _measured(conditions, f"{seed}.{planned.number}", planned, each)
            ]
            write(path, done)
            found += done
    return tuple(found)


def _check_context(header: Header, size: Size) -> None:
    trained = model_spec(header).context_length
    if trained and size.longest + MOST_READ > trained:
        raise InputError(
            f"--longest {size.longest}: with {MOST_READ} new tokens beyond the model's context of"
            f" {trained}; expected at most {max(trained - MOST_READ, 0)}"
        )


def _conditions(model: str, host: str, setup: Setup, size: Size) -> Conditions:
    return Conditions(
        model=model if "@" in model else Path(model).name,
        host=host,
        runtime=setup.runtime,
        version=setup.version,
        backend=setup.backend,
        n_threads=setup.n_threads or 0,
        n_ubatch=setup.n_ubatch,
        type_k=setup.type_k,
        type_v=setup.type_v,
        flash_attention=setup.flash_attention,
        n_slots=size.n_slots,
        n_cells=size.n_cells,
    )


def _measured(
    conditions: Conditions, name: str, planned: Round, samples: list[tuple[Sample, ...]]
) -> list[MeasuredBatch]:
    created = now()
    return [
        MeasuredBatch(
            conditions=conditions,
            created=created,
            round=name,
            batch=f"{name}.{i}",
            kind=batch.kind,
            requests=tuple(BatchRequest(n, planned.cached[slot]) for slot, n in batch.parts),
            n_held=sum(planned.cached),
            seconds=tuple(s.seconds for s in each),
            disturbed=tuple(bool(s.disturbed) for s in each),
        )
        for i, (batch, each) in enumerate(zip(planned.batches, samples, strict=True))
    ]


def report(found: tuple[MeasuredBatch, ...], path: Path) -> Report:
    """Return what was measured, by kind of batch."""
    rows = []
    for kind in dict.fromkeys(b.kind for b in found):
        of = [b for b in found if b.kind == kind]
        times = sorted(b.used_seconds or 0.0 for b in of)
        n_disturbed = sum(all(b.disturbed) for b in of)
        rows.append(
            (
                kind,
                str(len(of)),
                f"{min(len(b.requests) for b in of)} - {max(len(b.requests) for b in of)}",
                f"{min(b.n_new for b in of)} - {max(b.n_new for b in of)}",
                f"{1e3 * times[0]:.1f} - {1e3 * times[-1]:.1f}",
                str(n_disturbed),
            )
        )
    columns = ("batches", "n", "requests", "new tokens", "ms", "disturbed")
    c = found[0].conditions
    return Report(
        verdict=(
            f"{len(found)} batches of {c.model} on {c.host} ({c.runtime}, {c.backend},"
            f" {c.n_threads} threads)",
        ),
        tables=(Table(columns, tuple(rows), frozenset(columns[1:])),),
        notes=(
            f"Kept in {path}.",
            f"Shares of the requests: tokcast attribute {path}",
        ),
        data={"batches": [to_row(b) for b in found]},
        records=[to_row(b) for b in found],
    )


def run(request: Request, output: str) -> int:
    """Measure and print."""
    check_format(output)
    with Progress() as progress:
        found = measure(request, progress)
    print(render(report(found, kept_in(request.to)), output))
    return 0
