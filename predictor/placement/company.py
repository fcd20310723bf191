"""Names of what a placement adds to the released effects: fitted by `fits/offload.py`.

A whole model on one device needs none of them: its speed is that of `roofline.predict`. Each
name has the phase and the part of the time that it scales; `|machine=` is one machine's own.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tokcast.predictor.effects import Effect
from tokcast.predictor.errors import InputError
from tokcast.predictor.ledger import Phase

Role = Literal[
    "card", "launch", "streamed", "cpu", "loop", "link", "staging", "crossing", "hop", "rows"
]

SCHEMA = 1
# The unit in which hand-overs between devices are counted; the fit scales it.
CROSSING_SECONDS = 1e-5


@dataclass(frozen=True, slots=True)
class Company:
    """Beside what a device works.

    `kind` is "cpu" where the processor takes part, "rows" where cards share matrices, else
    "cards". `machine` names one machine whose own effects are wanted, blank for any.
    """

    phase: Phase
    runtime: str
    kind: Literal["cpu", "cards", "rows"]
    machine: str = ""


def effects_of(role: Role, component: str, company: Company) -> tuple[Effect, ...]:
    """Return the (name, value) pairs that scale one role's time in a placed model.

    Roles: a card's `card` time and its `launch` overhead beside another device; `streamed`
    weights that a card multiplies by after a copy; the processor's `cpu` time and the `loop`
    overhead of its operators; bytes over the `link` after their `staging`; a `crossing` between
    a card and the processor, a `hop` between cards; `rows`, what cards wait for each other when
    they share a matrix.
    """
    prefix = f"{company.phase}/{role}"
    if role in ("card", "launch") or company.kind == "rows":
        found = [(f"{prefix}|with={company.kind}", 1.0)]
    else:
        found = [(f"{prefix}|base", 1.0)]
    if role == "cpu" and component == "experts":
        found.append((f"{prefix}|experts", 1.0))
    if company.runtime != "llama.cpp" and role in ("cpu", "link", "crossing"):
        found.append((f"{prefix}|runtime={company.runtime}", 1.0))
    if company.machine and role in ("cpu", "card", "streamed"):
        found.append((f"{prefix}|machine={company.machine}", 1.0))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class PlacedCoefficients:
    """Fitted effects of placements in log units, and what is known of their error.

    `intervals` maps "phase/kind" to level to the (low, high) quantiles of log(measured /
    predicted) on machines left out; `n_observations` counts configurations by "phase/kind" and by
    "phase/kind/backend".
    `base` is the digest of the released coefficients that they were fitted upon.
    """

    digest: str
    base: str
    effects: Mapping[str, float]
    intervals: Mapping[str, Mapping[str, tuple[float, float]]]
    n_observations: Mapping[str, int]

    def is_foreign(self, phase: Phase, kind: str, backend: str) -> bool:
        """Return whether such placements were measured, but never with this backend."""
        seen = self.n_observations
        return bool(seen.get(f"{phase}/{kind}")) and not seen.get(f"{phase}/{kind}/{backend}")

    def interval(self, phase: Phase, kind: str, level: float) -> tuple[float, float]:
        """Return the log quantiles of the held-out error; raises KeyError for another level."""
        low, high = self.intervals[f"{phase}/{kind}"][f"{level:g}"]
        return low, high


def from_json(data: Mapping[str, Any]) -> PlacedCoefficients:
    """Return coefficients from their released form; raises InputError for another schema."""
    if data.get("schema") != SCHEMA:
        raise InputError(
            f"placement coefficients of schema {data.get('schema')!r}; expected {SCHEMA}: run"
            " tokcast fit --part offload"
        )
    return PlacedCoefficients(
        digest=data["digest"],
        base=data["base"],
        effects=data["effects"],
        intervals=data["intervals"],
        n_observations=data["n_observations"],
    )


def read(path: Path) -> PlacedCoefficients:
    """Return the coefficients of a JSON file; raises InputError when it can't be read."""
    try:
        return from_json(json.loads(path.read_bytes()))
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path}: {error}; expected placement coefficients") from error
