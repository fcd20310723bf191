"""Prefill time over prompt and depth, with all that depends on neither worked out once."""

import math
from dataclasses import dataclass, field, replace

from tokcast.predictor.cache import Span, capped_sum
from tokcast.predictor.coefficients import Coefficients
from tokcast.predictor.effects import Shape
from tokcast.predictor.ledger import F32_BYTES, SCORE_PASSES, LedgerPlan, Work, compile_ledger
from tokcast.predictor.roofline import (
    Question,
    cap_of,
    ceiling_tok_per_s,
    interval_of,
    scale,
    shape_of,
    shares_of,
)
from tokcast.predictor.spec import ModelSpec
from tokcast.predictor.terms import Term, terms

# Fitted seconds, and the least that the nameplate's bandwidth and arithmetic allow.
_Cost = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class _SpanCost:
    """What attention layers of one window cost by cached row read, by pair and by score."""

    window: float
    row: _Cost
    pair: _Cost
    score: _Cost


@dataclass(slots=True)
class PrefillCurve:
    """Seconds of reading any prompt at any depth, as `predict` has them; by `prefill_curve`.

    What a number of tokens costs outside attention is kept once it was worked out.
    """

    spec: ModelSpec
    question: Question
    coefficients: Coefficients
    plan: LedgerPlan
    low: float
    high: float
    is_capped: bool
    _spans: tuple[_SpanCost, ...] = ()
    _whole: _Cost = (0.0, 0.0, 0.0)
    _fixed: dict[int, _Cost] = field(default_factory=dict)
    _scales: dict[tuple[str, str, str, float], float] = field(default_factory=dict)

    def seconds(self, n_prompt: int, n_depth: int = 0) -> float:
        """Return the seconds of `n_prompt` new tokens on `n_depth` cached ones."""
        n_ubatch = self.question.workload.n_ubatch
        n_full, n_rest = divmod(n_prompt, n_ubatch)
        n_more = max(n_full - 1, 0)
        key = n_prompt - n_more * n_ubatch
        fixed = self._fixed.get(key)
        if fixed is None:
            fixed = self._fixed[key] = self._outside(key)
        whole = self._whole
        seconds = fixed[0] + n_more * whole[0]
        memory_s = fixed[1] + n_more * whole[1]
        compute_s = fixed[2] + n_more * whole[2]
        for span in self._spans:
            pairs, rows, cells = _sums(span.window, n_prompt, n_depth, n_ubatch, n_full, n_rest)
            seconds += rows * span.row[0] + pairs * span.pair[0] + cells * span.score[0]
            memory_s += rows * span.row[1] + cells * span.score[1]
            compute_s += pairs * span.pair[2]
        return max(seconds, memory_s, compute_s) if self.is_capped else seconds

    def _outside(self, n_prompt: int) -> _Cost:
        """Return what a prompt costs outside what attention reads and multiplies."""
        n_ubatch = self.question.workload.n_ubatch
        works = self.plan.fixed(n_prompt, n_ubatch)
        launches = sum(w.n_launches for w in self.plan.at_depth(n_prompt, 0, n_ubatch))
        return self._cost((*works, Work("attention_op", "", 0.0, 0.0, launches)), n_prompt)

    def _cost(self, works: tuple[Work, ...], n_prompt: int) -> _Cost:
        q = replace(self.question, workload=replace(self.question.workload, n_prompt=n_prompt))
        shape: Shape = shape_of(self.spec, q.workload)
        found = terms(works, q.host, q.run, "prefill")
        scales = [self._scale(t, q, shape) for t in found]
        seconds = sum(share.seconds for share in shares_of(found, scales, "prefill"))
        return (
            seconds,
            1 / ceiling_tok_per_s([_only(w, 1.0, 0.0) for w in works], q.host, 1),
            1 / ceiling_tok_per_s([_only(w, 0.0, 1.0) for w in works], q.host, 1),
        )

    def _scale(self, term: Term, q: Question, shape: Shape) -> float:
        # The length of a prompt changes no effect but that of the rows an expert sees.
        rows = shape.expert_rows if term.component == "experts" else 0.0
        key = (term.kind, term.component, term.type, rows)
        found = self._scales.get(key)
        if found is None:
            found = self._scales[key] = scale(self.coefficients.effects, term, q, shape)
        return found

    def span_cost(self, span: Span) -> _SpanCost:
        """Return what layers of one window cost."""
        k, v, n = self.plan.type_k, self.plan.type_v, self.question.workload.n_ubatch
        row = (Work("kv_read", k, span.k_bytes, 0, 0), Work("kv_read", v, span.v_bytes, 0, 0))
        pair = (
            Work("attention_op", k, 0, span.k_flops, 0),
            Work("attention_op", v, 0, span.v_flops, 0),
        )
        score: tuple[Work, ...] = ()
        if not self.plan.flash_attention:
            score = (Work("scores", "F32", SCORE_PASSES * F32_BYTES * span.n_head, 0, 0),)
        return _SpanCost(span.window, *(self._cost(works, n) for works in (row, pair, score)))


def _only(work: Work, n_bytes: float, flops: float) -> Work:
    return replace(work, bytes=work.bytes * n_bytes, flops=work.flops * flops)


def _sums(
    window: float, n_prompt: int, n_depth: int, n_ubatch: int, n_full: int, n_rest: int
) -> tuple[float, float, float]:
    """Return (query, key) pairs, rows read and score cells, as `LedgerPlan.at_depth` has them."""
    pairs = capped_sum(n_depth + 1, 1, n_prompt, window)
    rows = cells = 0.0
    if n_full:
        rows = capped_sum(n_depth + n_ubatch, n_ubatch, n_full, window + n_ubatch - 1)
        cells = rows * n_ubatch
    if n_rest:
        last = min(n_depth + n_prompt, window + n_rest - 1)
        rows += last
        cells += last * n_rest
    return pairs, rows, cells


def prefill_curve(spec: ModelSpec, q: Question, coefficients: Coefficients) -> PrefillCurve:
    """Return the prefill curve of a model; `q.workload` gives all but prompt and depth.

    Raises InputError for an unknown cache type.
    """
    n_ubatch = q.workload.n_ubatch
    load = replace(q.workload, phase="prefill", n_prompt=n_ubatch, n_depth=0)
    q = replace(q, workload=load)
    plan = compile_ledger(spec, load.type_k, load.type_v, load.flash_attention)
    low, high = interval_of(spec, q, coefficients)
    curve = PrefillCurve(
        spec=spec,
        question=q,
        coefficients=coefficients,
        plan=plan,
        low=math.exp(low),
        high=math.exp(high),
        is_capped=math.isfinite(cap_of(q.host, 1.0)),
    )
    curve._spans = tuple(curve.span_cost(span) for span in plan.spans)
    one, two = curve._outside(n_ubatch), curve._outside(2 * n_ubatch)
    curve._whole = (two[0] - one[0], two[1] - one[1], two[2] - one[2])
    return curve
