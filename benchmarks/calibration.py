"""How good is a calibration of this machine? Run it in a quiet window.

    python benchmarks/calibration.py [--budget 5m] [--launches 3] [--keep FOLDER] [PART ...]

Calibrates into a store of its own, then measures models that the calibration never saw, the real
gemma3-270m among them, and prints the error of what was predicted; our figures beside
llama-bench's on the same file, launches interleaved; a clone with random weights beside the real
file; our own overhead; the disk used. PART names some of these: left-out, llama-bench, clone,
overhead. TOKCAST_BENCH_THREADS sets the threads (default: all
cores). Needs llama-cpp-python, llama-bench and `make oracles`.
"""

import argparse
import importlib
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import mean, stdev

import numpy as np

from tokcast.cli.measuring import Engine, default_threads, engine_of
from tokcast.fits.calibrate import mape
from tokcast.fits.calibrated import apply, run_here
from tokcast.fits.released import released
from tokcast.measurements.calibration_run import FOLDER
from tokcast.measurements.launch import launch
from tokcast.measurements.protocol import Rule
from tokcast.measurements.record import Series, Task
from tokcast.measurements.runners.job import Job, Settings
from tokcast.measurements.store_file import newest_calibrations
from tokcast.measurements.target import Target, find, on_disk
from tokcast.predictor.ledger import Workload
from tokcast.predictor.model import model_spec
from tokcast.predictor.roofline import Question, predict

ORACLES = Path(
    os.environ.get("TOKCAST_ORACLES") or Path(__file__).resolve().parents[1] / "build" / "oracles"
)
ORIGINAL = ORACLES / "gemma3-270m-q4_k_m.gguf"
LEFT_OUT = (
    "qwen3-0.6b@Q4_K_M",
    "llama-3.2-1b@Q4_K_M",
    "granite-3.1-1b-a400m@Q4_K_M",
    "smollm2-360m@Q8_0",
)
DEPTHS = (0, 512, 2048)
TESTS = tuple(test for d in DEPTHS for test in (Task("prefill", 128, d), Task("decode", 16, d)))
THREADS: str | None = os.environ.get("TOKCAST_BENCH_THREADS")
RULE = Rule(min_samples=5, min_seconds=0.8, retry_seconds=15.0)


class DiskWatch(threading.Thread):
    """The most that a folder ever held."""

    def __init__(self, folder: Path) -> None:
        super().__init__(daemon=True)
        self.folder, self.peak, self.done = folder, 0, False

    def run(self) -> None:
        while not self.done:
            sizes = 0
            for path in self.folder.rglob("*"):
                try:
                    sizes += path.stat().st_size
                except OSError:
                    continue
            self.peak = max(self.peak, sizes)
            time.sleep(0.1)


def calibrate(budget: str, scratch: Path) -> None:
    watch = DiskWatch(scratch)
    watch.start()
    start = time.monotonic()
    command = "from tokcast.cli.app import main; main()"
    threads = ["-t", THREADS] if THREADS else []
    words = [sys.executable, "-c", command, "calibrate", "--budget", budget, "--fresh", *threads]
    if subprocess.run(words, check=False).returncode != 0:
        sys.exit("not calibrated; run this in a quiet window")
    watch.done = True
    print(f"\ncalibration: {time.monotonic() - start:.0f} s of {budget}")
    left = (scratch / FOLDER).exists()
    print(f"peak disk: {watch.peak / 1e9:.2f} GB (target <= 2), removed afterwards: {not left}")


def predicted(target: Target, test: Task, engine: Engine) -> float:
    run = run_here("llama.cpp", engine.setup.backend, released())
    applied = apply(engine.host, run, released(), newest_calibrations())
    depth = test.n_depth + (test.n // 2 if test.phase == "decode" else 0)
    load = Workload(test.phase, test.n if test.phase == "prefill" else 1, depth)
    question = Question(load, applied.host, run)
    return predict(model_spec(target.header), question, applied.coefficients).tok_per_s


def measured(path: Path, n_launches: int, tests: tuple[Task, ...] = TESTS) -> list[list[Series]]:
    settings = Settings(n_threads=default_threads(THREADS))
    job = Job("llama.cpp", str(path), tests, settings, RULE)
    return [launch(job).series for _ in range(n_launches)]


def fresh_copy(file: Path, folder: Path) -> Path:
    """Copy in large pieces, as synthetic files are written.

    How a file came into the page cache decides how large the pages are that it lies in, and with
    that up to a fifth of its speed: all files of a comparison must have come there alike.
    """
    copy = folder / file.name
    with file.open("rb") as source, copy.open("wb") as target:
        while part := source.read(4 << 20):
            target.write(part)
    return copy


def held_out(n_launches: int, engine: Engine, gemma: Path) -> None:
    print(f"\nmodels left out, {n_launches} launches each (measured, predicted tok/s, error)")
    errors: dict[str, list[float]] = {"decode": [], "prefill": []}
    for name in (str(gemma), *LEFT_OUT):
        target = find(name, offline=True)
        with on_disk(target) as (path, model):
            launches = measured(path, n_launches)
        for i, test in enumerate(TESTS):
            rates = [series[i].tok_per_s for series in launches]
            clean = sum(len(series[i].clean) for series in launches)
            guess = predicted(target, test, engine)
            errors[test.phase].append(math.log(mean(rates) / guess))
            print(
                f"{model.name[:28]:28} {test.label:14} {mean(rates):9.2f} {guess:9.2f}"
                f" {100 * (guess / mean(rates) - 1):+7.1f} %   {clean} clean samples"
            )
    for phase, goal in (("decode", 8), ("prefill", 15)):
        print(f"{phase} MAPE on models left out: {mape(np.array(errors[phase])):.1f} % (<= {goal})")


def interleaved(n_launches: int, engine: Engine, gemma: Path) -> None:
    print(f"\nours and llama-bench on {gemma.name}, {n_launches} launches each, interleaved")
    bench = engine_of("llama-bench")
    settings = Settings(n_threads=default_threads(THREADS))
    tests = tuple(t for t in TESTS if t.n_depth in (0, 512))
    job = Job("llama.cpp", str(gemma), tests, settings, RULE)
    rates: dict[Task, tuple[list[float], list[float]]] = {t: ([], []) for t in tests}
    for _ in range(n_launches):
        for side, which in enumerate((engine, bench)):
            for series in which.launch(job).series:
                rates[series.test][side].append(series.tok_per_s)
    for test, (ours, theirs) in rates.items():
        cv = [100 * stdev(r) / mean(r) if len(r) > 1 else 0.0 for r in (ours, theirs)]
        print(
            f"{test.label:14} ours {mean(ours):8.2f} (CV {cv[0]:.1f} %)  llama-bench"
            f" {mean(theirs):8.2f} (CV {cv[1]:.1f} %)  {100 * (mean(ours) / mean(theirs) - 1):+.1f}"
            " % (target within 3)"
        )


def cloned(n_launches: int, gemma: Path) -> None:
    print(f"\na clone with random weights beside {gemma.name}, interleaved")
    tests = (Task("prefill", 128), Task("decode", 16))
    rates: dict[Task, tuple[list[float], list[float]]] = {t: ([], []) for t in tests}
    header = find(str(gemma)).header
    with on_disk(Target(header, None)) as (path, _):
        for _ in range(n_launches):
            for side, file in enumerate((gemma, path)):
                for series in measured(file, 1, tests)[0]:
                    rates[series.test][side].append(series.tok_per_s)
    for test, (real, clone) in rates.items():
        print(
            f"{test.label:8} real {mean(real):8.2f}  clone {mean(clone):8.2f}"
            f"  {100 * (mean(clone) / mean(real) - 1):+.1f} %"
        )


def overhead(gemma: Path) -> None:
    """Time our loop around a decode that does nothing, and what lies between samples."""
    llama = importlib.import_module("tokcast.measurements.runners.llama_cpp")
    settings = Settings(n_threads=default_threads(THREADS))
    test = Task("decode", 64)
    runner = llama.LlamaCpp(Job("llama.cpp", str(gemma), (test,), settings, RULE))
    runner.prepare(test)
    start = time.perf_counter()
    runner.step(test)
    real = (time.perf_counter() - start) / test.n
    library = runner._l

    class Idle:
        """The library, with decoding and waiting left out."""

        llama_decode = staticmethod(lambda *_: 0)
        llama_synchronize = staticmethod(lambda *_: None)

        def __getattr__(self, name: str) -> object:
            return getattr(library, name)

    runner._l = Idle()
    start = time.perf_counter()
    for _ in range(100):
        runner.step(test)
    own = (time.perf_counter() - start) / (100 * test.n)
    print(f"\nown overhead in a timed token: {1e6 * own:.1f} us of {1e3 * real:.2f} ms,", end=" ")
    print(f"{100 * own / real:.3f} % (target <= 1)")
    series = measured(gemma, 1, (Task("decode", 16),))[0][0]
    share = series.own_seconds / sum(s.seconds for s in series.samples)
    print(f"own time between samples: {100 * share:.3f} % of the measured time (target <= 1)")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--budget", default="5m")
    parser.add_argument("--launches", type=int, default=3)
    parser.add_argument("--keep", help="use the calibration of this data folder, or keep it there")
    parts = ("overhead", "left-out", "llama-bench", "clone")
    # Without choices=, which refuse the empty list that stands for all.
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(parts))
    given = parser.parse_args()
    chosen = given.parts or parts
    if unknown := set(chosen) - set(parts):
        parser.error(f"{', '.join(sorted(unknown))}: expected some of {', '.join(parts)}")
    with tempfile.TemporaryDirectory() as folder:
        data = Path(given.keep or folder) / "data"
        scratch = Path(folder) / "scratch"
        scratch.mkdir()
        os.environ |= {"TOKCAST_DATA": str(data), "TOKCAST_SCRATCH": str(scratch)}
        engine = engine_of("llama.cpp")
        print(f"{engine.host.name}, {engine.setup.version}, {default_threads(THREADS)} threads")
        if "left-out" in chosen and not newest_calibrations():
            calibrate(given.budget, scratch)
        gemma = fresh_copy(ORIGINAL, Path(folder))
        if "overhead" in chosen:
            overhead(gemma)
        if "left-out" in chosen:
            held_out(given.launches, engine, gemma)
        if "llama-bench" in chosen:
            interleaved(given.launches, engine, gemma)
        if "clone" in chosen:
            cloned(given.launches, gemma)


if __name__ == "__main__":
    main()
