"""Fitted batch times as a file: the packaged ones, and those of a user's own measurements."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from tokcast.measurements.batches import Conditions
from tokcast.predictor.attribution import PHASES, BatchTimes, Phase, Piece
from tokcast.predictor.batch import FEATURES, BatchShape
from tokcast.predictor.errors import InputError

SCHEMA = 1
PACKAGED = "batch_times.json"


@dataclass(frozen=True, slots=True)
class BatchFit:
    """The functions of one model on one host by phase, and how many batches they rest on."""

    conditions: Conditions
    n_batches: int
    pieces: Mapping[Phase, tuple[Piece, ...]]

    def times(self, shape: BatchShape) -> BatchTimes:
        """Return the functions for a model's figures."""
        return BatchTimes(shape, self.pieces)


def to_json(fits: Sequence[BatchFit]) -> str:
    """Return fits as the text of their file: a line a function."""
    listed = [
        {
            "conditions": asdict(f.conditions),
            "n_batches": f.n_batches,
            "pieces": {phase: [p.costs for p in pieces] for phase, pieces in f.pieces.items()},
        }
        for f in fits
    ]
    data = {"schema": SCHEMA, "features": FEATURES, "fits": listed}
    return json.dumps(data, indent=1) + "\n"


def read(path: Path) -> tuple[BatchFit, ...]:
    """Return the fits of a file; raises InputError for one that is none."""
    try:
        data = json.loads(path.read_bytes())
        if data["schema"] != SCHEMA or tuple(data["features"]) != FEATURES:
            raise InputError(f"{path}: of another tokcast; make it again with attribute --save")
        return tuple(_fit(f) for f in data["fits"])
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; expected a file of attribute --save") from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path}: expected a file that attribute --save made") from None


def packaged() -> tuple[BatchFit, ...]:
    """Return the fits that ship with tokcast."""
    found = resources.files("tokcast.fits").joinpath(f"data/{PACKAGED}")
    with resources.as_file(found) as path:
        return read(path)


def best_for(fits: Sequence[BatchFit], wanted: Conditions) -> BatchFit | None:
    """Return the fit of a model whose conditions agree most with those wanted, None without one.

    The model has to be the same; a host, backend or number of threads that is stated has to be.
    """
    found = [
        f
        for f in fits
        if f.conditions.model == wanted.model
        and all(
            not (want := getattr(wanted, name)) or want == getattr(f.conditions, name)
            for name in ("host", "backend", "n_threads")
        )
    ]
    return max(found, key=lambda f: f.n_batches, default=None)


def _fit(data: Mapping[str, Any]) -> BatchFit:
    return BatchFit(
        Conditions(**data["conditions"]),
        data["n_batches"],
        {
            phase: tuple(Piece(tuple(costs)) for costs in data["pieces"][phase])
            for phase in PHASES
            if phase in data["pieces"]
        },
    )
