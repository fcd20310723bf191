"""From a ledger, a host and coefficients to tokens per second."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tokcast.predictor.coefficients import Coefficients, interval_class
from tokcast.predictor.effects import (
    Shape,
    chip_effect,
    effects_of,
    family_effect,
    model_effect,
    own_effects,
)
from tokcast.predictor.host import Host
from tokcast.predictor.ledger import Phase, Work, Workload, ledger
from tokcast.predictor.prediction import Bound, ComponentTime, Evidence, Prediction
from tokcast.predictor.spec import ModelSpec
from tokcast.predictor.terms import OVERLAP, Run, Term, terms

# How much wider the interval of a model whose architecture is read generically becomes, in log
# units on either side: a factor of two, since nothing like it was measured.
GENERIC_LOG = math.log(2.0)


@dataclass(frozen=True, slots=True)
class Question:
    """One prediction asked for: what is run (with its tokens), where, and how."""

    workload: Workload
    host: Host
    run: Run
    level: float = 0.8


def tokens_of(workload: Workload) -> int:
    """Return the tokens that the predicted seconds produce or process."""
    return 1 if workload.phase == "decode" else workload.n_prompt


def shape_of(spec: ModelSpec, workload: Workload) -> Shape:
    """Return the covariates of a model under a workload."""
    batch = 1 if workload.phase == "decode" else min(workload.n_prompt, workload.n_ubatch)
    routed = next((layer for layer in spec.layers if layer.n_expert), None)
    share = routed.n_expert_used / routed.n_expert if routed else 0.0
    keys = Counter(layer.key_length for layer in spec.layers if layer.key_length)
    return Shape(
        model=f"{spec.architecture}-{len(spec.layers)}x{spec.embedding_length}",
        architecture=spec.architecture,
        embedding_length=spec.embedding_length,
        n_tokens=batch,
        expert_rows=batch * share,
        is_latent=any(layer.attention == "mla" for layer in spec.layers),
        head_length=keys.most_common(1)[0][0] if keys else 0,
    )


def scale(effects: Mapping[str, float], term: Term, q: Question, shape: Shape) -> float:
    """Return the fitted multiple of a term's time at nameplate peaks."""
    phase = q.workload.phase
    pairs = effects_of(term, phase, q.host, q.run, shape)
    own = own_effects(term, phase, q.host, q.run, shape)
    return math.exp(sum(effects.get(name, 0.0) * value for name, value in (*pairs, *own)))


def evidence_of(coefficients: Coefficients, q: Question) -> Evidence:
    """Return how close the measurements behind a prediction are to this host."""
    phase, backend = q.workload.phase, q.run.backend
    if chip_effect(phase, q.host, backend) in coefficients.effects:
        return "same host"
    if family_effect(phase, q.host, backend) in coefficients.effects:
        return "same chip family"
    return "spec sheet only"


def is_new_model(spec: ModelSpec, q: Question, coefficients: Coefficients) -> bool:
    """Return whether no model of this shape was measured."""
    phase = q.workload.phase
    return model_effect(phase, shape_of(spec, q.workload).model) not in coefficients.effects


def peak_ops_per_s(host: Host) -> float | None:
    """Return the highest rate published for a chip, of any format; None without one."""
    rates = (
        host.matrix_fp16_flops_per_s,
        host.matrix_fp32acc_flops_per_s,
        host.fp16_flops_per_s,
        host.fp32_flops_per_s,
        host.int8_ops_per_s,
    )
    return max((r for r in rates if r), default=None)


def ceiling_tok_per_s(works: Sequence[Work], host: Host, n_tokens: int) -> float:
    """Return the throughput that the nameplate peaks allow: the speed of light.

    Bytes at full bandwidth or operations at the highest published rate, whichever is slower.
    """
    n_bytes = sum(w.bytes for w in works)
    flops = sum(w.flops for w in works)
    peak = peak_ops_per_s(host) or math.inf
    seconds = max(n_bytes / host.bytes_per_s, flops / peak)
    return n_tokens / seconds if seconds else math.inf


def cap_of(host: Host, ceiling: float) -> float:
    """Return the ceiling where it is certain, infinity where the chip's peaks are a guess.

    Registry entries of low confidence state a platform's maximum or a derived rate that faster
    instructions exceed; a prediction must not be cut to such a figure.
    """
    return math.inf if host.confidence == "low" else ceiling


# Which side of the roof a kind of term is counted for.
SIDE: dict[str, Bound] = {
    "memory": "memory",
    "cache": "memory",
    "state": "memory",
    "activation": "memory",
    "compute": "compute",
    "tile": "compute",
    "attention": "compute",
    "launch": "overhead",
}


@dataclass(frozen=True, slots=True)
class Share:
    """A term's fitted share of the time: what is left of it where it overlaps."""

    term: Term
    seconds: float


def shares_of(found: Sequence[Term], scales: Sequence[float], phase: Phase) -> list[Share]:
    """Return each term's share of the time; shares add up to the whole.

    Terms of a group take the p-norm of their fitted times together; it is divided among them
    by their p-th powers, which is also its derivative.
    """
    power = OVERLAP[phase]
    raised = [(t.seconds * f) ** power for t, f in zip(found, scales, strict=True)]
    totals: dict[tuple[str, str], float] = {}
    for term, value in zip(found, raised, strict=True):
        totals[term.group] = totals.get(term.group, 0.0) + value
    return [
        Share(t, totals[t.group] ** (1 / power) * value / totals[t.group] if value else 0.0)
        for t, value in zip(found, raised, strict=True)
    ]


def component_times(works: Sequence[Work], shares: Sequence[Share]) -> tuple[ComponentTime, ...]:
    """Return the fitted time of each component, its shares added, and the side that sets it."""
    sides: dict[tuple[str, str], dict[Bound, float]] = {}
    for share in shares:
        sums = sides.setdefault((share.term.component, share.term.type), {})
        side = SIDE[share.term.kind]
        sums[side] = sums.get(side, 0.0) + share.seconds
    moved: dict[tuple[str, str], tuple[float, float]] = {}
    for w in works:
        n_bytes, flops = moved.get((w.component, w.type), (0.0, 0.0))
        moved[w.component, w.type] = (n_bytes + w.bytes, flops + w.flops)
    return tuple(
        ComponentTime(
            component=key[0],
            type=key[1],
            bytes=moved.get(key, (0.0, 0.0))[0],
            flops=moved.get(key, (0.0, 0.0))[1],
            seconds=sum(sums.values()),
            bound=max(sums, key=lambda side: sums[side]),
        )
        for key, sums in sides.items()
    )


def _largest_bound(shares: Sequence[Share]) -> Bound:
    sums: dict[Bound, float] = {}
    for share in shares:
        side = SIDE[share.term.kind]
        sums[side] = sums.get(side, 0.0) + share.seconds
    return max(sums, key=lambda side: sums[side])


def _warnings(coefficients: Coefficients, q: Question) -> tuple[str, ...]:
    phase, backend = q.workload.phase, q.run.backend
    found = []
    if not coefficients.n_observations.get(f"{phase}/{backend}"):
        found.append(f"no {phase} measurements with {backend} are behind this")
    deepest = coefficients.deepest.get(f"{phase}/{backend}", 0)
    if q.workload.n_depth and not deepest:
        found.append(f"no {phase} at a depth was measured with {backend}")
    elif q.workload.n_depth > deepest:
        found.append(
            f"depth {q.workload.n_depth} lies beyond the deepest {phase} measurement"
            f" with {backend} ({deepest})"
        )
    return tuple(found)


def interval_of(spec: ModelSpec, q: Question, coefficients: Coefficients) -> tuple[float, float]:
    """Return the interval as log multiples of the predicted rate."""
    kind = interval_class(evidence_of(coefficients, q), is_new_model(spec, q, coefficients))
    low, high = coefficients.interval(q.workload.phase, kind, q.run.backend, q.level)
    if spec.confidence == "generic":
        return low - GENERIC_LOG, high + GENERIC_LOG
    return low, high


def predict(spec: ModelSpec, q: Question, coefficients: Coefficients) -> Prediction:
    """Return tokens/s with an interval, its components and its evidence."""
    works = ledger(spec, q.workload)
    shape = shape_of(spec, q.workload)
    found = terms(works, q.host, q.run, q.workload.phase)
    scales = [scale(coefficients.effects, t, q, shape) for t in found]
    shares = shares_of(found, scales, q.workload.phase)
    seconds = sum(share.seconds for share in shares)
    n_tokens = tokens_of(q.workload)
    low, high = interval_of(spec, q, coefficients)
    ceiling = ceiling_tok_per_s(works, q.host, n_tokens)
    cap = cap_of(q.host, ceiling)
    rate = min(n_tokens / seconds, cap)
    return Prediction(
        phase=q.workload.phase,
        n_prompt=q.workload.n_prompt if q.workload.phase == "prefill" else 0,
        n_depth=q.workload.n_depth,
        tok_per_s=rate,
        low=rate * math.exp(low),
        high=min(rate * math.exp(high), cap),
        level=q.level,
        seconds=n_tokens / rate,
        bound=_largest_bound(shares),
        components=component_times(works, shares),
        ceiling_tok_per_s=ceiling,
        evidence=evidence_of(coefficients, q),
        n_observations=coefficients.n_observations.get(f"{q.workload.phase}/{q.run.backend}", 0),
        warnings=_warnings(coefficients, q),
    )
