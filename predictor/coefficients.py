"""Fitted numbers as data: what `tokcast fit` releases and a prediction reads."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokcast.predictor.errors import InputError
from tokcast.predictor.ledger import Phase
from tokcast.predictor.prediction import Evidence

SCHEMA = 2


def interval_class(evidence: Evidence, is_new_model: bool) -> str:
    """Return the class of errors that a prediction's interval is made from."""
    return f"{evidence}, new model" if is_new_model else evidence


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Named effects in log units, and what is known of their error.

    `intervals` maps "phase/class/backend" to level to the (low, high) quantiles of log(measured /
    predicted) on hosts and models left out; the class is `interval_class`'s. `n_observations`
    counts measured configurations by "phase/backend"; `deepest` is the largest context depth
    among them, `newest` the decimal year of the latest. `digest` names the release.
    """

    digest: str
    effects: Mapping[str, float]
    intervals: Mapping[str, Mapping[str, tuple[float, float]]]
    n_observations: Mapping[str, int]
    deepest: Mapping[str, int]
    newest: float | None = None

    def interval(self, phase: Phase, kind: str, backend: str, level: float) -> tuple[float, float]:
        """Return the log quantiles of a class's held-out error; KeyError for another level."""
        low, high = self.intervals[f"{phase}/{kind}/{backend}"][f"{level:g}"]
        return low, high


def from_json(data: Mapping[str, Any]) -> Coefficients:
    """Return coefficients from their released form; raises InputError for another schema."""
    if data.get("schema") != SCHEMA:
        raise InputError(
            f"coefficients of schema {data.get('schema')!r}; expected {SCHEMA}: run tokcast fit"
        )
    return Coefficients(
        digest=data["digest"],
        effects=data["effects"],
        intervals=data["intervals"],
        n_observations=data["n_observations"],
        deepest=data["deepest"],
        newest=data["newest"],
    )


def read(path: Path) -> Coefficients:
    """Return the coefficients of a JSON file; raises InputError when it can't be read."""
    try:
        return from_json(json.loads(path.read_bytes()))
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path}: {error}; expected coefficients of tokcast fit") from error
