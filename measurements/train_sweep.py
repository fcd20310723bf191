"""A sweep of training steps: which points, and taking them one after another, to be gone on with.

Processes of PyTorch, one a device with its own threads, meet over gloo. What was taken is in the
CSV already when a sweep is stopped; the next one goes on behind it.
"""

import contextlib
import datetime
import importlib.util
import itertools
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any

from tokcast.measurements.training_runs import Strategy, TrainPoint, TrainRun, append, read
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.training.work import flops

WORKER = (sys.executable, "-m", "tokcast.measurements.runners.torch_train")
INSTALL = 'pip install "tokcast[train]"'
WIDTHS, DEPTHS, LENGTHS, BATCHES = (
    (128, 256, 384, 512, 768),
    (2, 4, 8),
    (32, 64, 128, 256),
    (2, 4, 8, 16),
)
# From where a step is no longer mere overhead to where five of them take a few seconds.
FLOPS_WANTED = (2e9, 3e10)
MOST_SECONDS = 2.0


def plan(n_points: int, seed: int = 0) -> tuple[TrainPoint, ...]:
    """Return points over family, width, depth, length and batch, drawn without replacement.

    For every sixth of them a run of two processes under FSDP and one under tensor parallelism
    follow at the end. The same numbers give the same points.
    """
    grid = [
        TrainPoint(family, *numbers)
        for family in ("bert", "llama")
        for numbers in itertools.product(WIDTHS, DEPTHS, LENGTHS, BATCHES)
    ]
    low, high = FLOPS_WANTED
    fitting = [p for p in grid if low <= flops(p.shape, p.step) <= high]
    alone = random.Random(seed).sample(fitting, min(n_points, len(fitting)))
    strategies: tuple[Strategy, ...] = ("fsdp", "tp")
    spread = [
        replace(p, n_devices=2, strategy=strategy) for p in alone[::6] for strategy in strategies
    ]
    return (*alone, *spread)


@dataclass(frozen=True, slots=True)
class Conditions:
    """Where a sweep runs, and how long it may take; `n_threads` is a process's own."""

    host: Host
    n_threads: int = 1
    n_repeats: int = 7
    budget_s: float = 200.0


def left(points: Sequence[TrainPoint], path: Path) -> tuple[TrainPoint, ...]:
    """Return the points that a CSV does not hold yet."""
    done = {run.point for run in read(path)} if path.exists() else set()
    return tuple(p for p in points if p not in done)


def sweep(
    points: Sequence[TrainPoint],
    path: Path,
    conditions: Conditions,
    tell: Callable[[TrainRun], None],
) -> int:
    """Take the points within the budget, each added to the CSV at once; return how many were.

    Raises InputError where PyTorch is missing or one of its processes fails.
    """
    if importlib.util.find_spec("torch") is None:
        raise InputError(f"PyTorch is not installed, expected it for a sweep; run: {INSTALL}")
    end = time.monotonic() + conditions.budget_s
    n_taken = 0
    by_devices = itertools.groupby(points, key=lambda p: p.n_devices)
    for n_devices, group in by_devices:
        if time.monotonic() > end:
            break
        with _processes(tuple(group), n_devices, conditions) as lines:
            for line in lines:
                run = _run_of(json.loads(line), conditions)
                append(path, run)
                tell(run)
                n_taken += 1
                if time.monotonic() > end:
                    break
    return n_taken


def _run_of(event: dict[str, Any], conditions: Conditions) -> TrainRun:
    times = event["times"]
    return TrainRun(
        point=TrainPoint(**event["point"]),
        seconds=statistics.median(times),
        fastest=min(times),
        slowest=max(times),
        n_repeats=len(times),
        n_threads=conditions.n_threads,
        cpu=f"{conditions.host.name} ({conditions.host.architecture})",
        n_cores=conditions.host.n_cores or conditions.n_threads,
        peak_flops_per_s=conditions.host.fp32_flops_per_s or 0.0,
        peak_bytes_per_s=conditions.host.bytes_per_s,
        torch=event["torch"],
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
    )


@contextmanager
def _processes(
    points: tuple[TrainPoint, ...], n_devices: int, conditions: Conditions
) -> Iterator[Iterator[str]]:
    """Start a process a device, yield the lines of the first, and end them all."""
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        job = {
            "points": [asdict(p) for p in points],
            "n_devices": n_devices,
            "n_threads": conditions.n_threads,
            "n_repeats": conditions.n_repeats,
            "most_seconds": MOST_SECONDS,
            "meeting": (Path(folder) / "meeting").as_uri(),
        }
        # A file, not a pipe: nobody reads it while they run.
        said = stack.enter_context((Path(folder) / "said").open("w+", encoding="utf-8"))
        started = [
            stack.enter_context(
                subprocess.Popen(
                    [*WORKER, json.dumps(job | {"rank": rank})],
                    stdout=subprocess.PIPE if rank == 0 else subprocess.DEVNULL,
                    stderr=said,
                    text=True,
                )
            )
            for rank in range(n_devices)
        ]
        try:
            yield _lines(started[0], said)
        finally:
            for process in started:
                process.kill()


def _lines(process: "subprocess.Popen[str]", said: IO[str]) -> Iterator[str]:
    assert process.stdout is not None
    yield from process.stdout
    if process.wait() != 0:
        said.seek(0)
        last = said.read().strip().splitlines() or ["no reason given"]
        raise InputError(f"a process of PyTorch failed: {last[-1]}; expected it to train")
