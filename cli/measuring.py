"""What measuring commands share: runtime, threads, host, free memory, the machine's lock."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psutil

from tokcast.cli.progress import say
from tokcast.measurements.launch import Launch, OnEvent, describe, launch
from tokcast.measurements.lock import exclusive
from tokcast.measurements.protocol import Rule
from tokcast.measurements.record import Setup, Task
from tokcast.measurements.runners import llama_bench, llama_cpp, mlx
from tokcast.measurements.runners.job import Job, Settings
from tokcast.measurements.store import Store, open_store
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host

RUNTIMES = ("llama.cpp", "llama-bench", "mlx")


@dataclass(frozen=True, slots=True)
class Engine:
    """A runtime that is here: what it says of itself, and the chip that it runs on."""

    runtime: str
    setup: Setup
    host: Host

    def launch(self, job: Job, on_event: OnEvent = lambda _: None) -> Launch:
        """Run a job in a process of its own."""
        if self.runtime == "llama-bench":
            from tokcast.measurements.gate import gate_of

            binary = llama_bench.find()
            if binary is None:
                raise InputError(f"llama-bench is gone; {llama_bench.INSTALL}")
            return llama_bench.launch_bench(
                binary, job, on_event, gate=gate_of(job.settings.n_threads, "")
            )
        return launch(job, on_event)


def default_threads(given: str | None) -> int:
    """Return the threads asked for, else the processor's cores that this process may use."""
    if given is not None:
        if not given.isdigit() or not 1 <= int(given) <= 1024:
            raise InputError(f"-t {given!r}: expected a number of threads, 1 to 1024")
        return int(given)
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    cores = psutil.cpu_count(logical=False) or os.cpu_count() or 1
    return max(1, min(cores, allowed or cores))


def detected(backend: str) -> Host:
    """Return the chip of this machine that a backend runs on; raises InputError without one."""
    from tokcast.hosts.detect import detect

    found = detect().hosts
    if backend == "CPU":
        fitting = [h for h in found if h.kind == "cpu"]
    else:
        fitting = [h for h in found if h.kind != "cpu"] or list(found)
    if not fitting:
        raise InputError("this machine was not recognised; see tokcast hosts detect")
    return fitting[0]


def _missing(runtime: str) -> InputError:
    how = {
        "llama.cpp": llama_cpp.INSTALL,
        "llama-bench": llama_bench.INSTALL,
        "mlx": mlx.INSTALL,
    }
    return InputError(f"--runtime {runtime}: not found here; {how[runtime]}")


def _available(runtime: str) -> Setup | None:
    if runtime == "llama-bench":
        return Setup("llama.cpp", "llama-bench") if llama_bench.find() else None
    try:
        return describe(runtime)
    except InputError:
        return None


def engine_of(runtime: str | None, model_format: str = "gguf") -> Engine:
    """Return the runtime asked for, or the first that is here and reads the format.

    Raises InputError, with what to install, where there is none.
    """
    if runtime is not None and runtime not in RUNTIMES:
        raise InputError(f"--runtime {runtime!r}: expected one of {', '.join(RUNTIMES)}")
    usual = ("mlx",) if model_format == "mlx" else ("llama.cpp", "llama-bench")
    if runtime is not None and (runtime == "mlx") != (model_format == "mlx"):
        raise InputError(f"--runtime {runtime}: does not read {model_format.upper()} models")
    for name in (runtime,) if runtime else usual:
        setup = _available(name)
        if setup is not None:
            return Engine(name, setup, detected(setup.backend))
    if runtime is None and model_format != "mlx":
        raise InputError(
            f"no runtime to measure with; run: {llama_cpp.INSTALL} (or: {llama_bench.INSTALL})"
        )
    raise _missing(runtime or "mlx")


def free_bytes() -> float:
    """Return the memory that programs can still take."""
    return float(psutil.virtual_memory().available)


@contextmanager
def measuring() -> Iterator[Store]:
    """Yield the store while no other tokcast measures on this machine."""
    store = open_store()
    try:
        if store.note:
            say(store.note)
        with exclusive(store.path.parent, say):
            yield store
    finally:
        store.close()


def job_of(
    engine: Engine, path: str, tests: tuple[Task, ...], settings: Settings, rule: Rule
) -> Job:
    """Return a launch's job."""
    runtime = "mlx" if engine.runtime == "mlx" else "llama.cpp"
    return Job(runtime, path, tests, settings, rule)
