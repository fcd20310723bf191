"""Starting a launch in a process of its own, and putting its events into a run."""

import json
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from tokcast.measurements.batch_plan import Round, Size
from tokcast.measurements.record import Sample, Series, Setup, from_json_series
from tokcast.measurements.runners.job import Job, to_json
from tokcast.measurements.runners.rates import Rate
from tokcast.predictor.errors import InputError

Popen = Callable[..., "subprocess.Popen[str]"]
OnEvent = Callable[[str], None]
WORKER = (sys.executable, "-m", "tokcast.measurements.worker")
# Long enough for a large model on a slow disk; a hung runtime must end some time.
PATIENCE_S = 3600.0


@dataclass(slots=True)
class Launch:
    """What a launch told, so far as it got."""

    setup: Setup | None = None
    load_seconds: float | None = None
    series: list[Series] = field(default_factory=list)
    peak_bytes: int | None = None
    energy_source: str = ""
    idle_watts: float | None = None


def _take(launch: Launch, event: Mapping[str, Any]) -> str:
    """Put one event into the launch; return what to show of it."""
    kind = event["event"]
    if kind == "error":
        raise InputError(event["message"])
    if kind == "loaded":
        launch.setup = Setup(**event["setup"])
        launch.load_seconds = event["load_seconds"]
    elif kind == "series":
        launch.series.append(from_json_series(event))
        return launch.series[-1].test.label
    elif kind == "energy":
        launch.energy_source, launch.idle_watts = event["source"], event["idle_watts"]
    elif kind == "done":
        launch.peak_bytes = event["peak_bytes"]
    return str(kind)


def crash_reason(code: int, stderr: str) -> str:
    """Return in words why a child ended before it was done."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    last = f": {lines[-1][:200]}" if lines else ""
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        likely = " (killed: out of memory?)" if name == "SIGKILL" else ""
        return f"the runtime crashed with {name}{likely}{last}"
    return f"the runtime's process ended with code {code}{last}"


def launch(
    job: Job,
    on_event: OnEvent = lambda _: None,
    *,
    popen: Popen = subprocess.Popen,
    environ: Mapping[str, str] | None = None,
    patience_s: float = PATIENCE_S,
) -> Launch:
    """Run a job in a child process; raises InputError when it fails, crashes or hangs.

    The series that were finished before a crash are lost with it: a launch counts whole.
    """
    found = Launch()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr:
        child = popen(
            WORKER,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            encoding="utf-8",
            env=environ,
        )
        timer = threading.Timer(patience_s, child.kill)
        timer.daemon = True
        timer.start()
        try:
            _talk(child, job, found, on_event)
            code = child.wait()
        finally:
            timer.cancel()
            if child.poll() is None:
                child.kill()
                child.wait()
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    pipe.close()
        stderr.seek(0)
        if code != 0 or len(found.series) < len(job.tests) or found.setup is None:
            raise InputError(f"{job.path}: {crash_reason(code, stderr.read()[-4000:])}")
    return found


def _talk(child: Any, job: Job, found: Launch, on_event: OnEvent) -> None:
    try:
        child.stdin.write(json.dumps(to_json(job)))
        child.stdin.close()
    except BrokenPipeError:
        # It ended at once: its exit code says why.
        return
    for line in child.stdout:
        on_event(_take(found, json.loads(line)))


def _asked(words: Sequence[str], popen: Popen, patience_s: float) -> list[dict[str, Any]]:
    """Return the events of a worker that needs no job; raises InputError where it fails."""
    child = popen(
        (*WORKER, *words),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    try:
        out, err = child.communicate(timeout=patience_s)
    except subprocess.TimeoutExpired:
        child.kill()
        child.communicate()
        raise InputError(f"{words[1]}: no answer within {patience_s:.0f} s") from None
    events = [json.loads(line) for line in out.splitlines()]
    for event in events:
        if event["event"] == "error":
            raise InputError(event["message"])
    if not events:
        raise InputError(f"{words[1]}: {crash_reason(child.returncode, err)}")
    return events


def describe(runtime: str, *, popen: Popen = subprocess.Popen, patience_s: float = 60.0) -> Setup:
    """Return what a runtime says of itself, asked in a process of its own; raises InputError."""
    (event,) = _asked(("--describe", runtime), popen, patience_s)
    return Setup(**event["setup"])


def rates(
    runtime: str, n_threads: int, *, popen: Popen = subprocess.Popen, patience_s: float = 120.0
) -> tuple[str, tuple[Rate, ...]]:
    """Return a runtime's device and what its own kernels sustain there; raises InputError."""
    (event,) = _asked(("--rates", runtime, str(n_threads)), popen, patience_s)
    return event["device"], tuple(Rate(**r) for r in event["rates"])


def batches(
    job: Job,
    size: Size,
    rounds: Sequence[Round],
    *,
    popen: Popen = subprocess.Popen,
    patience_s: float = PATIENCE_S,
) -> tuple[Setup, list[list[tuple[Sample, ...]]]]:
    """Return the runtime and, for each batch of each round, its repetitions; raises InputError."""
    plan = {"job": to_json(job), "size": asdict(size), "rounds": [asdict(r) for r in rounds]}
    loaded, *found = _asked(("--batches", job.path, json.dumps(plan)), popen, patience_s)
    if len(found) < len(rounds):
        raise InputError(f"{job.path}: {len(found)} of {len(rounds)} rounds came back")
    return Setup(**loaded["setup"]), [
        [tuple(_sample(s) for s in each) for each in event["samples"]] for event in found
    ]


def _sample(data: Mapping[str, Any]) -> Sample:
    return Sample(**{**data, "disturbed": tuple(data["disturbed"])})
