"""The training laws as they are released: to JSON, with a digest, and back."""

import hashlib
import json
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tokcast.fits.training import Fitted
from tokcast.fits.training_observations import TrainObservation
from tokcast.fits.training_scores import ALONE, KNOWN, LEVEL, SEVERAL, TrainingFit
from tokcast.measurements.training_runs import TrainRun
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.training.law import SCHEMA, Kind, Laws, Quantity, from_json

PATH = Path(__file__).parent / "data" / "training.json"
# No second processor ran the sweep: on another one the range is this factor either way, assumed.
OTHER_PROCESSOR = 2.0


def sweep_host(run: TrainRun) -> Host:
    """Return the processor that a sweep's row was taken on, with the peaks it was detected with."""
    architecture = run.cpu.rpartition(" (")[2].removesuffix(")")
    return Host(
        name=run.cpu.rpartition(" (")[0],
        vendor="",
        kind="cpu",
        architecture=architecture,
        bytes_per_s=run.peak_bytes_per_s,
        fp32_flops_per_s=run.peak_flops_per_s,
        n_cores=run.n_cores,
    )


def release(
    fitted: TrainingFit, machine: str, boards: Sequence[TrainObservation]
) -> dict[str, Any]:
    """Return the laws as `tokcast energy train-fit` writes them, with a digest."""
    board = {
        quantity: _law(found, _board_intervals(fitted, quantity))
        for quantity, found in fitted.boards.items()
    }
    other = math.log(OTHER_PROCESSOR)
    ranges = {"same host": ALONE, "same host, several": SEVERAL}
    intervals = {k: _interval(fitted, "processor", "seconds", w) for k, w in ranges.items()}
    processor = _law(fitted.sweep, intervals | {"spec sheet only": [-other, other]})
    link = fitted.sweep.link
    assert link is not None
    body: dict[str, Any] = {
        "schema": SCHEMA,
        "machine": machine,
        "measured": sorted({f"{row.host}/{row.step.precision}" for row in boards}),
        "link": [min(link.bytes_per_s, 1e15), link.latency_s],
        "laws": {"board": board, "processor": {"seconds": processor}},
    }
    text = json.dumps(body, sort_keys=True)
    return {"digest": hashlib.sha256(text.encode()).hexdigest()[:12], **body}


def _board_intervals(fitted: TrainingFit, quantity: Quantity) -> dict[str, list[float]]:
    return {
        "same host": _interval(fitted, "board", quantity, KNOWN),
        "spec sheet only": _interval(fitted, "board", quantity, "chip"),
    }


def _interval(fitted: TrainingFit, kind: Kind, quantity: Quantity, what: str) -> list[float]:
    wanted = (kind, quantity, what)
    found = next(h for h in fitted.held if (h.kind, h.quantity, h.left_out) == wanted)
    return [_rounded(found.low), _rounded(found.high)]


def _law(fitted: Fitted, intervals: dict[str, list[float]]) -> dict[str, Any]:
    e = fitted.estimate
    return {
        "effects": {n: _rounded(v) for n, v in zip(e.names, e.theta, strict=True)},
        "intervals": {evidence: {f"{LEVEL:g}": pair} for evidence, pair in intervals.items()},
        "exponents": {k: list(map(_rounded, v)) for k, v in exponents(fitted).items()},
    }


def _rounded(value: float) -> float:
    # Linear algebra differs in its last digits between machines.
    return float(f"{value:.6g}")


def exponents(fitted: Fitted) -> dict[str, tuple[float, float]]:
    """Return alpha, beta and gamma with standard errors; beta is size less alpha."""
    e = fitted.estimate
    at = {name: (float(v), float(s)) for name, v, s in zip(e.names, e.theta, e.stderr, strict=True)}
    (compute, compute_error), (size, size_error) = at["compute"], at["size"]
    return {
        "alpha": (compute, compute_error),
        "beta": (size - compute, math.hypot(compute_error, size_error)),
        "gamma": at["efficiency"],
    }


@cache
def released_laws() -> Laws:
    """Return the laws that ship with tokcast; raises InputError when the file is damaged."""
    try:
        return from_json(json.loads(PATH.read_bytes()))
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{PATH}: {error}; expected laws of tokcast energy train-fit") from error
