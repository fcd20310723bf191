"""Log-linear scaling laws: speed and energy from a few figures, with where they stop holding.

    log y = intercept + sum over covariates of exponent x log covariate

so that an exponent says by which power speed follows parameters, bits, bandwidth. A memory roof
alone would have -1 in bytes and +1 in bandwidth.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokcast.predictor.errors import InputError

SCHEMA = 1
# Depth enters as 1 + depth over this many tokens, so that an empty cache is 1.
DEPTH_UNIT = 1024.0
# So little beyond the data is still within it.
HULL_SLACK = 1.1


@dataclass(frozen=True, slots=True)
class Exponent:
    """An exponent with its 95 % interval; `roofline` is what a memory roof alone would give.

    `p_roofline` is the probability of a difference as large if that were true, None without a
    figure to test against.
    """

    value: float
    low: float
    high: float
    roofline: float | None
    p_roofline: float | None


@dataclass(frozen=True, slots=True)
class Bend:
    """Where the law bends: the roof's seconds a token, and the exponent of them on either side.

    Each exponent is (value, low, high) with a 95 % interval.
    """

    seconds: float
    below: tuple[float, float, float]
    above: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Law:
    """A fitted law of one response ("tok/s" or "J/token") for one backend or meter.

    `hull` are the (least, largest) covariates seen, `inverse` (n, n) and `most_leverage` tell
    combinations that were not, intercept first. `error` are the (low, high) log quantiles that
    hold 80 % of residuals of left-out clusters; `cluster` says what those are.
    """

    response: str
    group: str
    n: int
    n_clusters: int
    cluster: str
    intercept: float
    exponents: Mapping[str, Exponent]
    hull: Mapping[str, tuple[float, float]]
    inverse: Sequence[Sequence[float]]
    most_leverage: float
    error: tuple[float, float]
    held_out_mape: float
    baseline_mape: float | None
    bend: Bend | None

    def _logs(self, covariates: Mapping[str, float]) -> list[float]:
        missing = [name for name in self.exponents if name not in covariates]
        if missing:
            raise InputError(f"the law needs {', '.join(missing)}; give a number for each")
        return [math.log(covariates[name]) for name in self.exponents]

    def predict(self, covariates: Mapping[str, float]) -> tuple[float, float, float]:
        """Return (value, low, high) with an 80 % interval; raises InputError when one is missing.

        Covariates are in SI units, as in `hull`.
        """
        logs = self._logs(covariates)
        total = self.intercept + sum(
            e.value * x for e, x in zip(self.exponents.values(), logs, strict=True)
        )
        low, high = self.error
        return math.exp(total), math.exp(total + low), math.exp(total + high)

    def outside(self, covariates: Mapping[str, float]) -> tuple[str, ...]:
        """Return what of the covariates, or of them together, lies outside the data."""
        found = [
            f"{name} {covariates[name]:.4g} lies outside the data ({low:.4g} to {high:.4g})"
            for name, (low, high) in self.hull.items()
            if not low / HULL_SLACK <= covariates[name] <= high * HULL_SLACK
        ]
        x = [1.0, *self._logs(covariates)]
        leverage = sum(a * b * self.inverse[i][j] for i, a in enumerate(x) for j, b in enumerate(x))
        if not found and leverage > self.most_leverage:
            found.append("each lies within the data, all of them together do not")
        return tuple(found)


def depth_covariate(n_depth: float) -> float:
    """Return how a depth in tokens enters a law."""
    return 1.0 + n_depth / DEPTH_UNIT


def _law(data: Mapping[str, Any]) -> Law:
    bend = data["bend"]
    plain = {**data, "exponents": {k: Exponent(**e) for k, e in data["exponents"].items()}}
    plain["hull"] = {k: (ends[0], ends[1]) for k, ends in data["hull"].items()}
    plain["error"] = (data["error"][0], data["error"][1])
    plain["bend"] = (
        None if bend is None else Bend(bend["seconds"], tuple(bend["below"]), tuple(bend["above"]))
    )
    return Law(**plain)


def read_laws(path: Path) -> tuple[Law, ...]:
    """Return the laws of a JSON file; raises InputError when it can't be read."""
    try:
        data = json.loads(path.read_bytes())
        if data["schema"] != SCHEMA:
            raise ValueError(f"schema {data['schema']}, expected {SCHEMA}")
        return tuple(_law(each) for each in data["laws"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: {error}; expected laws of tokcast scaling --save") from error
