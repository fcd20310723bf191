"""What the processor sustains: memory read, triad, and matrix products, by numpy on threads.

numpy lets other threads run during its loops, so that a pool of threads reads as one program
would. Each figure is the best of several, with its spread: the median's distance from the best.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import numpy as np

from tokcast.predictor.errors import InputError

_BLAS_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
# Well beyond any cache, split over the threads.
ARRAY_BYTES = 256 << 20
N_REPEATS = 7
MATRIX = 1536

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Peaks:
    """Sustained rates of `n_threads` threads; spreads are shares of the best."""

    n_threads: int
    bytes_per_s: float
    bytes_spread: float
    triad_bytes_per_s: float
    fp32_flops_per_s: float
    flops_spread: float
    sweep: tuple[tuple[int, float], ...] = ()


def _timed(work: Callable[[], object], n: int, clock: Clock) -> list[float]:
    work()
    found = []
    for _ in range(n):
        start = clock()
        work()
        found.append(clock() - start)
    return found


def _spread(seconds: Sequence[float]) -> float:
    return 1 - min(seconds) / median(seconds)


def read_seconds(
    n_threads: int, n: int = N_REPEATS, clock: Clock = time.perf_counter
) -> list[float]:
    """Return times to read ARRAY_BYTES once, shared by threads."""
    part = ARRAY_BYTES // 4 // n_threads
    arrays = [np.ones(part, np.float32) for _ in range(n_threads)]
    with ThreadPoolExecutor(n_threads) as pool:
        return _timed(lambda: list(pool.map(np.max, arrays)), n, clock)


def triad_seconds(
    n_threads: int, n: int = N_REPEATS, clock: Clock = time.perf_counter
) -> list[float]:
    """Return times to read two arrays and write a third of a third of ARRAY_BYTES each."""
    part = ARRAY_BYTES // 12 // n_threads
    triples = [tuple(np.ones(part, np.float32) for _ in range(3)) for _ in range(n_threads)]

    def add(arrays: Any) -> None:
        np.add(arrays[0], arrays[1], out=arrays[2])

    with ThreadPoolExecutor(n_threads) as pool:
        return _timed(lambda: list(pool.map(add, triples)), n, clock)


def matrix_seconds(n: int = N_REPEATS, clock: Clock = time.perf_counter) -> list[float]:
    """Return times of one FP32 matrix product of size MATRIX on the threads BLAS was given."""
    a, b = (np.ones((MATRIX, MATRIX), np.float32) for _ in range(2))
    return _timed(lambda: a @ b, n, clock)


def thread_counts(n_threads: int) -> tuple[int, ...]:
    """Return the thread counts of the sweep: powers of two up to all."""
    counts = [1]
    while counts[-1] * 2 < n_threads:
        counts.append(counts[-1] * 2)
    return tuple(dict.fromkeys([*counts, n_threads]))


def measure(n_threads: int, clock: Clock = time.perf_counter) -> Peaks:
    """Return what up to so many threads sustain; BLAS must have been given as many."""
    sweep = {n: read_seconds(n, clock=clock) for n in thread_counts(n_threads)}
    best = min(sweep, key=lambda n: min(sweep[n]))
    triad = triad_seconds(best, clock=clock)
    matrix = matrix_seconds(clock=clock)
    return Peaks(
        n_threads=n_threads,
        bytes_per_s=ARRAY_BYTES / min(sweep[best]),
        bytes_spread=_spread(sweep[best]),
        triad_bytes_per_s=ARRAY_BYTES / min(triad),
        fp32_flops_per_s=2 * MATRIX**3 / min(matrix),
        flops_spread=_spread(matrix),
        sweep=tuple((n, ARRAY_BYTES / min(seconds)) for n, seconds in sweep.items()),
    )


def probe(n_threads: int, environ: Mapping[str, str] = os.environ) -> Peaks:
    """Return what up to so many threads sustain; takes some seconds.

    In a process of its own: the threads of BLAS are settled when it is loaded. Raises InputError
    when that fails.
    """
    threads = dict.fromkeys(_BLAS_THREADS, str(n_threads))
    command = [sys.executable, "-m", "tokcast.measurements.probe", str(n_threads)]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**environ, **threads}, check=False
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["?"])[-1]
        raise InputError(f"measuring bandwidth failed: {last}; is there enough free memory?")
    data = json.loads(done.stdout)
    return Peaks(**{**data, "sweep": tuple((n, rate) for n, rate in data["sweep"])})


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(measure(int(sys.argv[1])))))
