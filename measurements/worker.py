"""The child process of a launch: reads a job from stdin, prints an event a line.

A crash of the runtime takes this process, never the one that keeps the results. Whatever
libraries print goes to stderr.
"""

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from tokcast.measurements.gate import gate_of
from tokcast.measurements.meters import Meter, idle_watts, open_meter
from tokcast.measurements.protocol import repeat
from tokcast.measurements.record import Setup
from tokcast.measurements.runners.job import Job, Runner, from_json
from tokcast.predictor.errors import InputError

Emit = Callable[[str, dict[str, Any]], None]


def _runner(job: Job) -> Runner:
    if job.runtime == "mlx":
        from tokcast.measurements.runners.mlx import Mlx

        return Mlx(job)
    from tokcast.measurements.runners.llama_cpp import LlamaCpp

    return LlamaCpp(job)


def peak_bytes() -> int | None:
    """Return this process's largest resident size so far, None on Windows."""
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def work(job: Job, emit: Emit, meter: Meter | None) -> None:
    """Run the job's tests and emit what is found."""
    if meter is not None:
        watts = idle_watts(meter, 0.5)
        emit("energy", {"source": meter.source, "idle_watts": watts})
    start = time.perf_counter()
    runner = _runner(job)
    emit("loaded", {"setup": asdict(runner.setup), "load_seconds": time.perf_counter() - start})
    on_gpu = runner.setup.backend == "CUDA"
    gate = gate_of(job.settings.n_threads, sys.platform.capitalize(), on_gpu)
    joules = meter.joules if meter is not None else (lambda: None)
    for test in job.tests:
        series = repeat(
            test,
            lambda t=test: runner.prepare(t),  # type: ignore[misc]
            lambda t=test: runner.step(t),  # type: ignore[misc]
            job.rule,
            gate=gate,
            joules=joules,
        )
        emit("series", asdict(series))
    emit("done", {"peak_bytes": peak_bytes()})


def end_with_parent(every_s: float = 0.5) -> None:
    """End this process when its parent is gone, so that no orphan goes on loading the machine."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(every_s)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def describe(runtime: str) -> Setup:
    """Return what a runtime is, without a model."""
    if runtime == "mlx":
        from tokcast.measurements.runners.mlx import describe as mlx

        return mlx()
    from tokcast.measurements.runners.llama_cpp import describe as llama

    return llama()


def rates(runtime: str, n_threads: int) -> dict[str, Any]:
    """Return the device of a runtime and what its own kernels sustain there."""
    from tokcast.measurements.runners.rates import ggml_rates, mlx_rates

    device, found = mlx_rates() if runtime == "mlx" else ggml_rates(n_threads)
    return {"device": device, "rates": [asdict(rate) for rate in found]}


def batches(plan: dict[str, Any], emit: Emit) -> None:
    """Run the rounds of a plan of batches and emit each round's repetitions."""
    from tokcast.measurements import batch_plan
    from tokcast.measurements.runners.batched import BatchedLlama, samples

    job = from_json(plan["job"])
    model = BatchedLlama(job, batch_plan.Size(**plan["size"]))
    emit("loaded", {"setup": asdict(model.setup), "load_seconds": None})
    gate = gate_of(job.settings.n_threads, sys.platform.capitalize(), model.setup.backend == "CUDA")
    for planned in map(batch_plan.from_json, plan["rounds"]):
        found = [[asdict(s) for s in each] for each in samples(model, planned, gate)]
        emit("round", {"number": planned.number, "samples": found})


def _serve(words: list[str], emit: Emit) -> None:
    match words:
        case ["--describe", runtime]:
            emit("loaded", {"setup": asdict(describe(runtime)), "load_seconds": None})
        case ["--rates", runtime, n_threads]:
            emit("rates", rates(runtime, int(n_threads)))
        case ["--batches", _, plan]:
            batches(json.loads(plan), emit)
        case _:
            work(from_json(json.load(sys.stdin)), emit, open_meter())


def main() -> None:
    """Serve one job of stdin, or what `_serve` lists."""
    end_with_parent()
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def emit(kind: str, data: dict[str, Any]) -> None:
        events.write(json.dumps({"event": kind, **data}) + "\n")
        events.flush()

    try:
        _serve(sys.argv[1:], emit)
    except InputError as error:
        emit("error", {"message": str(error)})
    except MemoryError:
        emit("error", {"message": "out of memory; try a smaller model or context"})
    # Backends' destructors at exit have crashed after a good run; all is said already.
    events.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
