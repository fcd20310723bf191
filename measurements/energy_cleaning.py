"""Which energy rows a fit may use: rules as data, each with its reason."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from tokcast.measurements.energy_rows import EnergyRow

# Joules a token, watts and tokens/s of one row may disagree by so much: printed figures are
# rounded, and a request's time holds its prompt.
MOST_DISAGREEMENT = 1.5
# Of a process whose mean power is printed, generating takes at least so much.
SHORTEST_RUN = 0.75
# A board may draw a little more than its limit for a while.
LIMIT_MARGIN = 1.15


@dataclass(frozen=True, slots=True)
class EnergyRule:
    """A named reason not to fit an energy row."""

    name: str
    reason: str
    hits: Callable[[EnergyRow], bool]


def watts_of(r: EnergyRow) -> float | None:
    """Return the mean power in watts: joules over seconds, as printed, or from joules a token."""
    if r.phase == "request" and r.energy_j is not None and r.duration_s:
        return r.energy_j / r.duration_s
    if r.power_w is not None:
        return r.power_w
    if r.energy_per_token_j is not None and r.tok_s is not None:
        return r.energy_per_token_j * r.tok_s
    return None


def _noted(*patterns: str) -> Callable[[EnergyRow], bool]:
    wanted = re.compile("|".join(patterns))
    return lambda r: wanted.search(r.notes) is not None


def _from(*sources: str) -> Callable[[EnergyRow], bool]:
    return lambda r: any(source in r.source for source in sources)


def _below(value: float | None) -> bool:
    return value is not None and value <= 0


def _not_positive(r: EnergyRow) -> bool:
    return any(map(_below, (r.power_w, r.energy_j, r.energy_per_token_j, r.duration_s, r.tok_s)))


def _idle_above_load(r: EnergyRow) -> bool:
    watts = watts_of(r)
    return r.idle_w is not None and watts is not None and r.idle_w >= watts


def _disagrees(r: EnergyRow) -> bool:
    if r.phase != "decode" or None in (r.energy_per_token_j, r.power_w, r.tok_s):
        return False
    ratio = (r.energy_per_token_j or 0) * (r.tok_s or 0) / (r.power_w or 1)
    return not 1 / MOST_DISAGREEMENT < ratio < MOST_DISAGREEMENT


def _above_limit(r: EnergyRow) -> bool:
    if not r.power_limit_w or r.kind != "gpu_board" or r.power_w is None:
        return False
    return r.power_w > LIMIT_MARGIN * r.power_limit_w * (r.n_devices or 1)


def _mostly_loading(r: EnergyRow) -> bool:
    if r.phase != "decode" or not (r.n_gen and r.tok_s and r.duration_s):
        return False
    return r.n_gen / r.tok_s < SHORTEST_RUN * r.duration_s


ENERGY_RULES: tuple[EnergyRule, ...] = (
    EnergyRule(
        "unknown-kind", "what the meter covers is not one of the known kinds", lambda r: not r.kind
    ),
    EnergyRule(
        "wall-peak",
        "the highest reading at the plug, of the whole machine: neither a mean nor the chip's",
        lambda r: r.kind == "wall",
    ),
    EnergyRule("not-positive", "a power, an energy or a time of zero or less", _not_positive),
    EnergyRule("idle-above-load", "drew no more at work than idle", _idle_above_load),
    EnergyRule("no-power", "neither watts nor joules", lambda r: watts_of(r) is None),
    EnergyRule("disagrees", "joules a token, watts and tokens/s contradict", _disagrees),
    EnergyRule("above-limit", "draws more than its limit allows", _above_limit),
    EnergyRule("several-devices", "more than one device at work", lambda r: r.n_devices != 1),
    EnergyRule(
        "suspect",
        "marked by the curators",
        _noted("suspect", "implausib", "seems to include the idle ones", "larger of the two"),
    ),
    EnergyRule("no-cache", "run without a K/V cache", _from("grantwilkins/")),
    EnergyRule(
        "speculation",
        "drafted tokens: a token is not a pass",
        _noted(r"\bMTP\b", "multi-token-prediction draft", "speculative decoding"),
    ),
    EnergyRule("clock-lock", "clocks held by hand", _noted("clock lock")),
    EnergyRule("host-bound", "waits for the processor", _noted("host-bound")),
    EnergyRule("peak-samples", "a high percentile, not the mean", _noted("95th percentile")),
    EnergyRule("open-loop", "idle gaps inside", _noted("open-loop")),
    EnergyRule(
        "no-batch",
        "how many sequences ran at once is not stated",
        lambda r: r.phase != "training" and r.batch is None,
    ),
    EnergyRule(
        "batched",
        "several sequences at once: outside what is predicted",
        lambda r: r.phase != "training" and (r.batch or 1) > 1,
    ),
    EnergyRule(
        "sampler-limit", "too short for its sampler", _noted("resolution limit of the .* sampler")
    ),
    EnergyRule(
        "no-length",
        "lengths of a request are not stated",
        lambda r: r.phase == "request" and not (r.n_prompt and r.n_gen and r.duration_s),
    ),
    EnergyRule(
        "mostly-loading",
        "generating took too little of the process whose mean power is printed",
        _mostly_loading,
    ),
    EnergyRule(
        "no-speed",
        "tokens/s are not stated",
        lambda r: r.phase in ("decode", "prefill") and r.tok_s is None,
    ),
)


def check_energy(r: EnergyRow) -> EnergyRule | None:
    """Return the first rule that keeps a row out of the fit, or None."""
    return next((rule for rule in ENERGY_RULES if rule.hits(r)), None)
