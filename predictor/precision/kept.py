"""What was published of the answers that a format keeps: MMLU scores beside 16 bits.

`data/format_quality.json` holds the printed scores with their sources; nothing is estimated, and a
plan that mixes formats has no figure of its own: it is told by its lossiest format of weights.
"""

import json
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median

from tokcast.predictor.precision.plans import Plan

_DATA = Path(__file__).parents[1] / "data" / "format_quality.json"
_SIXTEEN_BITS = 16.0


@dataclass(frozen=True, slots=True)
class Kept:
    """The share of the 16-bit score that a format keeps: median over models, and who says so."""

    format: str
    share: float
    low: float
    high: float
    n_models: int
    sources: tuple[str, ...]


@cache
def published() -> dict[str, Kept]:
    """Return what was published, by format."""
    plain = json.loads(_DATA.read_bytes())
    sources = [f"{name} ({licence})" for name, licence in plain["sources"]]
    shares: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    named: dict[str, dict[str, None]] = defaultdict(dict)
    for name, model, value, reference, source in plain["rows"]:
        shares[name][model].append(value / reference)
        named[name][sources[source]] = None
    return {
        name: _figure(name, [median(v) for v in by_model.values()], tuple(named[name]))
        for name, by_model in shares.items()
    }


def _figure(name: str, values: list[float], sources: tuple[str, ...]) -> Kept:
    return Kept(name, median(values), min(values), max(values), len(values), sources)


def kept_by(plan: Plan) -> Kept | None:
    """Return what the plan's lossiest format of weights keeps; None where nothing is published.

    16 bits are what scores are beside: they keep all of it.
    """
    narrow = [f.name for f in plan.stored() if f.bits < _SIXTEEN_BITS]
    if not narrow:
        return Kept("FP16", 1.0, 1.0, 1.0, 0, ())
    found = [published().get(name) for name in narrow]
    known = [f for f in found if f is not None]
    return min(known, key=lambda f: f.share) if len(known) == len(found) else None
