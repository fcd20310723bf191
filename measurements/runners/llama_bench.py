"""The `llama-bench` binary: found, run and read leniently over its versions."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tokcast.measurements.gate import Gate, Gates
from tokcast.measurements.importers.bench_records import whole_objects
from tokcast.measurements.importers.naming import backend_of
from tokcast.measurements.importers.rows import number
from tokcast.measurements.launch import Launch, crash_reason
from tokcast.measurements.record import Sample, Series, Setup, Task
from tokcast.measurements.runners.job import Job
from tokcast.predictor.errors import InputError

NAME = "llama-bench"
INSTALL = (
    "brew install llama.cpp, or build it:"
    " cmake -B build && cmake --build build --target llama-bench"
)
_USUAL = (
    "build/bin",
    "~/llama.cpp/build/bin",
    "~/src/llama.cpp/build/bin",
    "/opt/homebrew/bin",
    "/usr/local/bin",
)
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def _places(environ: Mapping[str, str]) -> Iterator[Path]:
    if environ.get("LLAMA_BENCH"):
        yield Path(environ["LLAMA_BENCH"]).expanduser()
    on_path = shutil.which(NAME, path=environ.get("PATH"))
    if on_path:
        yield Path(on_path)
    folders = [environ.get("LLAMA_CPP_LIB_PATH", ""), *_USUAL]
    for folder in folders:
        if folder:
            yield Path(folder).expanduser() / (NAME + (".exe" if sys.platform == "win32" else ""))


def find(environ: Mapping[str, str] = os.environ) -> Path | None:
    """Return the binary: `LLAMA_BENCH`, on PATH, or where builds usually leave it."""
    return next((p for p in _places(environ) if p.is_file() and os.access(p, os.X_OK)), None)


def command(binary: Path, job: Job, tests: Sequence[Task], n_repeats: int) -> list[str]:
    """Return the command line for tests of one depth."""
    s = job.settings
    prompts = [str(t.n) for t in tests if t.phase == "prefill"]
    generations = [str(t.n) for t in tests if t.phase == "decode"]
    words = [str(binary), "-m", job.path, "-o", "json", "-r", str(n_repeats)]
    words += ["-p", ",".join(prompts) or "0", "-n", ",".join(generations) or "0"]
    words += ["-t", str(s.n_threads), "-b", str(s.n_batch), "-ub", str(s.n_ubatch)]
    words += ["-ctk", s.type_k.lower(), "-ctv", s.type_v.lower()]
    depth = tests[0].n_depth
    if depth:
        words += ["-d", str(depth)]
    if s.n_gpu_layers is not None:
        words += ["-ngl", str(s.n_gpu_layers)]
    if s.flash_attention != "auto":
        words += ["-fa", "1" if s.flash_attention == "on" else "0"]
    return words


def _test_of(r: Mapping[str, Any]) -> Task | None:
    n_prompt, n_gen = int(number(r.get("n_prompt")) or 0), int(number(r.get("n_gen")) or 0)
    depth = int(number(r.get("n_depth")) or 0)
    if n_prompt and not n_gen:
        return Task("prefill", n_prompt, depth)
    return Task("decode", n_gen, depth) if n_gen and not n_prompt else None


def _setup(r: Mapping[str, Any], job: Job) -> Setup:
    flash = number(r.get("flash_attn"))
    load = r.get("load_mode")
    if load is None and "use_mmap" in r:
        load = "mmap" if number(r["use_mmap"]) else "none"
    layers = number(r.get("n_gpu_layers"))
    return Setup(
        runtime="llama.cpp",
        version=f"llama-bench {r.get('build_commit', '?')} ({r.get('build_number', '?')})",
        build=str(r.get("backends") or ""),
        backend=backend_of(str(r.get("backends") or "")),
        device=str(r.get("gpu_info") or r.get("cpu_info") or ""),
        n_threads=int(number(r.get("n_threads")) or job.settings.n_threads),
        n_batch=int(number(r.get("n_batch")) or job.settings.n_batch),
        n_ubatch=int(number(r.get("n_ubatch")) or job.settings.n_ubatch),
        flash_attention={1.0: "on", 0.0: "off"}.get(-1.0 if flash is None else flash, "auto"),
        type_k=str(r.get("type_k") or job.settings.type_k).upper(),
        type_v=str(r.get("type_v") or job.settings.type_v).upper(),
        n_gpu_layers=None if layers is None or layers < 0 else int(layers),
        load_mode=str(load or job.settings.load_mode),
    )


def _series(
    r: Mapping[str, Any], test: Task, pressure: float | None, disturbed: tuple[str, ...]
) -> Series:
    nanoseconds = r.get("samples_ns") or [r["avg_ns"]]
    samples = tuple(Sample(float(ns) / 1e9, pressure, disturbed) for ns in nanoseconds)
    return Series(test, samples)


def _records(text: str) -> list[Mapping[str, Any]]:
    return whole_objects(text, json.JSONDecoder())


def launch_bench(
    binary: Path,
    job: Job,
    on_event: Callable[[str], None] = lambda _: None,
    *,
    gate: Gate | None = None,
    run: Run = subprocess.run,
    clock: Callable[[], float] | None = None,
) -> Launch:
    """Run llama-bench for each depth of the job; raises InputError when it fails.

    It repeats as often as the rule's least number. What disturbs it is seen over a whole call.
    """
    import time

    now = clock or time.perf_counter
    watch = gate or Gates(())
    found = Launch()
    for depth in dict.fromkeys(t.n_depth for t in job.tests):
        tests = [t for t in job.tests if t.n_depth == depth]
        seen, start = watch.before(), now()
        words = command(binary, job, tests, job.rule.min_samples)
        try:
            done = run(words, capture_output=True, text=True, errors="replace", check=False)
        except OSError as error:
            raise InputError(f"{binary}: {error.strerror}; set LLAMA_BENCH to another") from error
        reading = watch.after(seen, max(now() - start, 1e-9))
        if done.returncode != 0:
            raise InputError(f"{job.path}: {crash_reason(done.returncode, done.stderr)}")
        for r in _records(done.stdout):
            test = _test_of(r)
            if test is not None and "avg_ts" in r:
                found.setup = found.setup or _setup(r, job)
                found.series.append(_series(r, test, reading.pressure, reading.disturbed))
                on_event(test.label)
    if not found.series:
        raise InputError(f"{binary}: printed no results; expected its JSON, is it llama-bench?")
    return found
