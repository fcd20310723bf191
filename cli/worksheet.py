"""A worksheet: every number of a prediction as an input with its unit and origin.

The sums are first order and stand in FORMULAS. What a fit contributes enters as multiples, which
are inputs like any other: they stay as they are when another input is edited.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from tokcast.predictor.errors import InputError

Origin = Literal["measured", "published", "counted", "fitted", "assumed"]
ORIGINS: tuple[Origin, ...] = ("measured", "published", "counted", "fitted", "assumed")
PHASES = ("decode", "prefill")
FACTORS = (0.8, 1.0, 1.2)

FORMULAS: Mapping[str, str] = {
    "bytes": "sum of the bytes of all owners",
    "flops": "sum of the operations of all owners; a multiplication and an addition are two",
    "intensity": "flops / bytes",
    "ridge": "peak_flops_per_s / bytes_per_s",
    "ceiling_flops_per_s": "min(peak_flops_per_s, intensity x bytes_per_s)",
    "bound_seconds": "max(bytes / bytes_per_s, flops / peak_flops_per_s)",
    "seconds": "overhead_s + sum over owners of (memory_multiple x bytes / bytes_per_s +"
    " compute_multiple x flops / vector_flops_per_s); no less than bound_seconds where"
    " roof_is_a_limit",
    "tok_per_s": "n_tokens / seconds",
    "side": "memory where intensity < ridge, else compute; withheld where one input x 0.8 or"
    " x 1.2 changes it",
}
UNITS: Mapping[str, str] = {
    "bytes": "B",
    "flops": "FLOP",
    "intensity": "FLOP/B",
    "ridge": "FLOP/B",
    "ceiling_flops_per_s": "FLOP/s",
    "bound_seconds": "s",
    "seconds": "s",
    "tok_per_s": "token/s",
}


@dataclass(frozen=True, slots=True)
class Owner:
    """Who moves bytes, whose they are and what is left out."""

    name: str
    title: str
    owns: str
    excludes: str


OWNERS: tuple[Owner, ...] = (
    Owner(
        "weights",
        "Weights",
        "every tensor that the phase runs through, experts by the share that is used",
        "an untied embedding table but for the rows looked up; caches that keep part on chip",
    ),
    Owner(
        "kv_history",
        "K/V history",
        "keys and values read back over the context, recurrent state included",
        "positions outside a sliding window; rereads within one kernel",
    ),
    Owner(
        "kv_writes",
        "K/V writes",
        "keys and values of the new tokens",
        "defragmentation and copies of the cache",
    ),
    Owner(
        "activations",
        "Activations",
        "what goes in and out of matrices, and the residual stream",
        "what fused kernels never write",
    ),
    Owner(
        "temporaries",
        "Temporaries",
        "attention scores, where flash attention is off",
        "work space of libraries; none with flash attention",
    ),
    Owner(
        "transfers",
        "Transfers",
        "nothing: all layers are on one device",
        "prompt and logits over the link to main memory; splits over devices",
    ),
)


@dataclass(frozen=True, slots=True)
class Input:
    """A number with its unit, where it comes from, and the source in words or as an address."""

    key: str
    label: str
    unit: str
    value: float
    origin: Origin
    source: str


@dataclass(frozen=True, slots=True)
class Result:
    """What follows for one phase; `side` is "" where it is withheld."""

    phase: str
    n_tokens: float
    bytes: float
    flops: float
    intensity: float
    ridge: float
    ceiling_flops_per_s: float
    bound_seconds: float
    seconds: float
    tok_per_s: float
    side: str


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Tokens/s of one phase with one input times 0.8, 1 and 1.2, and the largest change."""

    phase: str
    key: str
    label: str
    tok_per_s: tuple[float, float, float]
    effect: float


@dataclass(frozen=True, slots=True)
class Worksheet:
    """Inputs and all that follows; `is_capped` where the roof is sure enough to be a limit."""

    inputs: tuple[Input, ...]
    is_capped: bool
    results: tuple[Result, ...]
    sensitivities: tuple[Sensitivity, ...]


def work_out(inputs: Sequence[Input], is_capped: bool = True) -> Worksheet:
    """Return what follows from inputs.

    Raises InputError for a value that is not finite and positive, and for a missing one.
    """
    values = _checked(inputs)
    results, found = [], []
    for phase in PHASES:
        base = _result(values, phase, is_capped)
        listed = [
            (i, _varied(values, i.key, phase, is_capped)) for i in inputs if _belongs(i.key, phase)
        ]
        is_sure = all(r.side == base.side for _, rs in listed for r in rs)
        results.append(base if is_sure else replace(base, side=""))
        found += [_sensitivity(phase, i, rs, base) for i, rs in listed]
    found.sort(key=lambda s: (PHASES.index(s.phase), -s.effect, s.key))
    return Worksheet(tuple(inputs), is_capped, tuple(results), tuple(found))


def _checked(inputs: Iterable[Input]) -> dict[str, float]:
    values: dict[str, float] = {}
    for i in inputs:
        if not math.isfinite(i.value) or i.value <= 0:
            raise InputError(f"{i.key} is {i.value!r}: expected a finite number above 0")
        if i.key in values:
            raise InputError(f"{i.key} is given twice; expected each input once")
        values[i.key] = i.value
    needed = ["bytes_per_s", "peak_flops_per_s", "vector_flops_per_s"]
    needed += [f"{p}.{k}" for p in PHASES for k in ("n_tokens", "weights.bytes", "weights.flops")]
    missing = [key for key in needed if key not in values]
    if missing:
        raise InputError(f"{missing[0]} is missing; expected all inputs of a worksheet")
    return values


def _belongs(key: str, phase: str) -> bool:
    """Return whether an input has a part in a phase's answer."""
    return "." not in key or (key.startswith(f"{phase}.") and not key.endswith(".n_tokens"))


def _result(values: Mapping[str, float], phase: str, is_capped: bool) -> Result:
    bandwidth, peak = values["bytes_per_s"], values["peak_flops_per_s"]
    n_bytes = flops = 0.0
    seconds = values.get(f"{phase}.overhead_s", 0.0)
    for owner in OWNERS:
        key = f"{phase}.{owner.name}"
        moved, done = values.get(f"{key}.bytes", 0.0), values.get(f"{key}.flops", 0.0)
        n_bytes += moved
        flops += done
        seconds += values.get(f"{key}.memory_multiple", 0.0) * moved / bandwidth
        seconds += values.get(f"{key}.compute_multiple", 0.0) * done / values["vector_flops_per_s"]
    intensity, ridge = flops / n_bytes, peak / bandwidth
    bound = max(n_bytes / bandwidth, flops / peak)
    seconds = max(seconds, bound) if is_capped else seconds
    n_tokens = values[f"{phase}.n_tokens"]
    return Result(
        phase=phase,
        n_tokens=n_tokens,
        bytes=n_bytes,
        flops=flops,
        intensity=intensity,
        ridge=ridge,
        ceiling_flops_per_s=min(peak, intensity * bandwidth),
        bound_seconds=bound,
        seconds=seconds,
        tok_per_s=n_tokens / seconds,
        side="memory" if intensity < ridge else "compute",
    )


def _varied(values: Mapping[str, float], key: str, phase: str, is_capped: bool) -> list[Result]:
    changed = ({**values, key: values[key] * factor} for factor in FACTORS)
    return [_result(each, phase, is_capped) for each in changed]


def _sensitivity(phase: str, i: Input, results: list[Result], base: Result) -> Sensitivity:
    low, middle, high = (r.tok_per_s for r in results)
    effect = max(abs(low - base.tok_per_s), abs(high - base.tok_per_s)) / base.tok_per_s
    return Sensitivity(phase, i.key, i.label, (low, middle, high), effect)


def edited(inputs: Sequence[Input], edits: Mapping[str, tuple[float, Origin]]) -> tuple[Input, ...]:
    """Return the inputs with some replaced; raises InputError for a key that is not there."""
    unknown = sorted(set(edits) - {i.key for i in inputs})
    if unknown:
        raise InputError(f"{unknown[0]}: no input of this worksheet; expected one of its keys")
    return tuple(
        replace(i, value=edits[i.key][0], origin=edits[i.key][1], source="edited by hand")
        if i.key in edits
        else i
        for i in inputs
    )


def invariants(sheet: Worksheet) -> dict[str, bool]:
    """Return what must hold of every worksheet, and whether it does."""
    values = {i.key: i.value for i in sheet.inputs}
    of = sheet.results
    numbers = [v for r in of for v in (r.intensity, r.seconds, r.tok_per_s, r.ceiling_flops_per_s)]
    return {
        "inputs_finite_and_positive": all(math.isfinite(v) and v > 0 for v in values.values()),
        "results_finite_and_positive": all(math.isfinite(v) and v > 0 for v in numbers),
        "ceiling_never_above_peak": all(
            r.ceiling_flops_per_s <= values["peak_flops_per_s"] for r in of
        ),
        "never_faster_than_a_sure_roof": all(
            not sheet.is_capped or r.flops / r.seconds <= r.ceiling_flops_per_s * (1 + 1e-12)
            for r in of
        ),
        "phases_apart": [r.phase for r in of] == list(PHASES),
        "factor_one_changes_nothing": all(
            s.tok_per_s[1] == next(r.tok_per_s for r in of if r.phase == s.phase)
            for s in sheet.sensitivities
        ),
    }


def document(sheet: Worksheet, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return a worksheet as JSON data."""
    return {
        "kind": "tokcast worksheet",
        "schema": 1,
        **about,
        "formulas": dict(FORMULAS),
        "units": dict(UNITS),
        "roof_is_a_limit": sheet.is_capped,
        "inputs": [_fields(i) for i in sheet.inputs],
        "ownership": [_fields(o) for o in OWNERS],
        "results": [_fields(r) for r in sheet.results],
        "sensitivity": [_fields(s) for s in sheet.sensitivities],
        "factors": list(FACTORS),
        "invariants": invariants(sheet),
    }


def _fields(value: Any) -> dict[str, Any]:
    found = {name: getattr(value, name) for name in value.__slots__}
    return {name: list(v) if isinstance(v, tuple) else v for name, v in found.items()}


def recalculated(data: Mapping[str, Any]) -> bool:
    """Return whether an exported worksheet's results follow from its own inputs.

    Raises InputError for inputs that are none.
    """
    try:
        inputs = [Input(**i) for i in data["inputs"]]
        stated = [r["tok_per_s"] for r in data["results"]]
    except (KeyError, TypeError):
        raise InputError("inputs or results are missing; expected an exported worksheet") from None
    is_capped = bool(data.get("roof_is_a_limit", True))
    found = [r.tok_per_s for r in work_out(inputs, is_capped).results]
    return len(stated) == len(found) and all(
        math.isclose(a, b, rel_tol=1e-9) for a, b in zip(stated, found, strict=True)
    )


def rows(sheet: Worksheet) -> list[list[str]]:
    """Return a worksheet as a table of text: inputs, results and sensitivities."""
    found = [["section", "key", "label", "value", "unit", "origin", "source"]]
    for i in sheet.inputs:
        found.append(["input", i.key, i.label, repr(i.value), i.unit, i.origin, i.source])
    for r in sheet.results:
        for name, unit in UNITS.items():
            value = repr(getattr(r, name))
            found.append(["result", f"{r.phase}.{name}", name, value, unit, "", FORMULAS[name]])
        side = r.side or "withheld: near the ridge"
        found.append(["result", f"{r.phase}.side", "side", side, "", "", FORMULAS["side"]])
    for s in sheet.sensitivities:
        for factor, speed in zip(FACTORS, s.tok_per_s, strict=True):
            key = f"{s.phase}|{s.key}|x{factor:g}"
            found.append(["sensitivity", key, s.label, repr(speed), "token/s", "", ""])
    return found
