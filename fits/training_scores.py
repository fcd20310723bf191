"""Held-out errors of the training laws, their intervals, and the release of both."""

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tokcast.fits.scores import Score, host_quantiles, score
from tokcast.fits.training import FitRows, Fitted, fit_boards, fit_sweep, left_out, log_cost
from tokcast.fits.training_observations import TrainObservation
from tokcast.measurements.training_runs import TrainRun
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.training.law import SCHEMA, Kind, Laws, Quantity, from_json
from tokcast.predictor.training.work import flops

Floats = npt.NDArray[np.float64]
PATH = Path(__file__).parent / "data" / "training.json"
LEVEL = 0.8
# No second processor ran the sweep: on another one the range is this factor either way, assumed.
OTHER_PROCESSOR = 2.0


@dataclass(frozen=True, slots=True)
class Held:
    """The error on rows that a fit did not see, beside a simpler predictor's on the same rows.

    `coverage` is the percentage of rows within an interval that their own group did not make;
    `low` and `high` are that of all rows, as log quantiles.
    """

    kind: Kind
    quantity: Quantity
    left_out: str
    score: Score
    baseline: Score
    coverage: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class TrainingFit:
    """The laws fitted on all rows, and what leaving rows out showed."""

    boards: dict[Quantity, Fitted]
    sweep: Fitted
    held: tuple[Held, ...]


def fit_all(
    boards: Sequence[TrainObservation],
    sweep: Sequence[TrainObservation],
    tell: Callable[[str], None] = lambda _: None,
) -> TrainingFit:
    """Return the laws of boards and of the sweep with their held-out errors."""
    held = list(_sweep_held(sweep, tell))
    fitted: dict[Quantity, Fitted] = {}
    quantities: tuple[Quantity, ...] = ("seconds", "joules")
    for quantity in quantities:
        fitted[quantity] = fit_boards(boards, quantity)
        labels = {
            "configuration": [row.group for row in boards],
            "chip": [row.host for row in boards],
        }
        for what, names in labels.items():
            residual = left_out(boards, names, quantity, fit_boards, tell)
            simple = _baseline(boards, names, quantity)
            held.append(_held("board", quantity, what, residual, simple, boards, names))
    return TrainingFit(fitted, fit_sweep(sweep), tuple(held))


def _sweep_held(
    rows: Sequence[TrainObservation], tell: Callable[[str], None]
) -> Iterator[Held]:
    labels = {
        "configuration": [row.group for row in rows],
        "width": [str(row.shape.width) for row in rows],
        "length": [str(row.step.n_length) for row in rows],
        "batch": [str(row.step.n_batch) for row in rows],
        "depth": [str(row.shape.n_layers) for row in rows],
    }
    for what, names in labels.items():
        residual = left_out(rows, names, "seconds", _fit_sweep, tell)
        simple = _baseline(rows, names, "seconds")
        yield _held("processor", "seconds", what, residual, simple, rows, names)


_fit_sweep: FitRows = fit_sweep


def _held(
    kind: Kind,
    quantity: Quantity,
    what: str,
    residual: Floats,
    simple: Floats,
    rows: Sequence[TrainObservation],
    names: Sequence[str],
) -> Held:
    hosts = [row.host for row in rows]
    low, high = host_quantiles(residual, names, LEVEL)
    return Held(
        kind=kind,
        quantity=quantity,
        left_out=what,
        score=score(residual, hosts),
        baseline=score(simple, hosts),
        coverage=100 * coverage(residual, names, LEVEL),
        low=low,
        high=high,
    )


def coverage(residual: Floats, groups: Sequence[str], level: float) -> float:
    """Return the share of residuals within the quantiles of the other groups' residuals."""
    names = np.asarray(groups)
    inside = np.zeros(residual.size, dtype=bool)
    for name in np.unique(names):
        own = names == name
        low, high = host_quantiles(residual[~own], list(names[~own]), level)
        inside[own] = (low <= residual[own]) & (residual[own] <= high)
    return float(inside.mean())


def _baseline(
    rows: Sequence[TrainObservation], names: Sequence[str], quantity: Quantity
) -> Floats:
    """Return log errors of what people do without a law.

    Joules: rated watts by the measured time. Seconds: operations at one share of the peak, the
    median of the rows that are not left out.
    """
    if quantity == "joules":
        return np.array([log_cost(row, "joules") - math.log(row.device_seconds) for row in rows])
    peak = np.array(
        [flops(row.shape, row.step) / row.step.n_micro / row.device.flops_per_s for row in rows]
    )
    share = np.array([row.device_seconds for row in rows]) / peak
    labels = np.asarray(names)
    usual = np.array([float(np.median(share[labels != name])) for name in labels])
    return np.log(share / usual)


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


def release(fitted: TrainingFit, machine: str) -> dict[str, Any]:
    """Return the laws as `tokcast energy train-fit` writes them, with a digest."""
    board = {
        quantity: _law(found, _board_intervals(fitted, quantity))
        for quantity, found in fitted.boards.items()
    }
    same = _interval(fitted, "processor", "seconds", "configuration")
    other = math.log(OTHER_PROCESSOR)
    processor = _law(fitted.sweep, {"same host": same, "spec sheet only": [-other, other]})
    link = fitted.sweep.link
    assert link is not None
    body: dict[str, Any] = {
        "schema": SCHEMA,
        "machine": machine,
        "link": [min(link.bytes_per_s, 1e15), link.latency_s],
        "laws": {"board": board, "processor": {"seconds": processor}},
    }
    text = json.dumps(body, sort_keys=True)
    return {"digest": hashlib.sha256(text.encode()).hexdigest()[:12], **body}


def _board_intervals(fitted: TrainingFit, quantity: Quantity) -> dict[str, list[float]]:
    return {
        "same host": _interval(fitted, "board", quantity, "configuration"),
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
