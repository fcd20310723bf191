"""Real runtimes for tests: skipped by name where they are absent, failed where none may be."""

import importlib.util
import os
from functools import cache
from pathlib import Path

import pytest

from tokcast.measurements.launch import describe
from tokcast.measurements.runners import llama_bench
from tokcast.predictor.errors import InputError

# A neighbour's load makes spinning threads collapse: these are tests of function.
QUIET = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0", "OMP_NUM_THREADS": "1"}


def _missing(what: str) -> None:
    if os.environ.get("TOKCAST_REQUIRE_RUNTIMES") == "1":
        pytest.fail(f"{what}, and TOKCAST_REQUIRE_RUNTIMES=1")
    pytest.skip(what)


@cache
def _reason(runtime: str) -> str:
    module = "mlx" if runtime == "mlx" else "llama_cpp"
    if importlib.util.find_spec(module) is None:
        return f"{module} is not installed"
    try:
        describe(runtime)
    except InputError as error:
        return str(error)
    return ""


def need(runtime: str) -> None:
    """Skip, or fail, the test unless a runtime is here and starts."""
    if _reason(runtime):
        _missing(_reason(runtime))


def bench() -> Path:
    """Return the llama-bench binary, or skip the test."""
    found = llama_bench.find()
    if found is None:
        _missing("llama-bench is not here: benchmarks/build_llama.sh makes it")
        raise AssertionError
    return found
