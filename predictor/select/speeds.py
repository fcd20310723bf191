"""Speed and memory of many models on one host, by the same terms as `roofline.predict`.

A term's time is linear in what a model moves and computes, so the seconds a byte, an operation
and a launch take are worked out once for each component and type and then only multiplied. They
come from `term_pair` and `scale` themselves, asked about one unit of each.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from tokcast.predictor.coefficients import Coefficients
from tokcast.predictor.effects import Shape
from tokcast.predictor.host import Host
from tokcast.predictor.ledger import LedgerPlan, Work, Workload, compile_ledger
from tokcast.predictor.memory import MemoryUse, memory
from tokcast.predictor.prediction import Evidence
from tokcast.predictor.roofline import (
    Question,
    ceiling_tok_per_s,
    evidence_of,
    interval_of,
    scale,
    shape_of,
    tokens_of,
)
from tokcast.predictor.spec import Layer, ModelSpec, WeightGroup
from tokcast.predictor.terms import LAUNCH_SECONDS, Run, Term, term_pair

# Any type will do where only the model's shape is asked about.
_SOME_TYPE = "Q8_0"


@dataclass(frozen=True, slots=True)
class Speed:
    """Tokens/s with an interval, and the seconds of the whole workload."""

    tok_per_s: float
    low: float
    high: float
    seconds: float


@dataclass(frozen=True, slots=True)
class _Rates:
    """Seconds, bytes and operations that a unit of a weight group's figures costs."""

    per_byte: float
    per_param: float
    per_tensor: float
    read_per_byte: float
    flops_per_param: float


class Speeds:
    """Answers one workload for many models on one host."""

    def __init__(
        self, workload: Workload, host: Host, run: Run, coefficients: Coefficients, level: float
    ) -> None:
        self._q = Question(workload, host, run, level)
        self._coefficients = coefficients
        self.evidence: Evidence = evidence_of(coefficients, self._q)
        self._logs: dict[tuple[str, str, str], float] = {}
        self._first: Shape | None = None
        self._bodies: dict[int, _Body] = {}
        self._intervals: dict[str, tuple[float, float]] = {}

    @property
    def workload(self) -> Workload:
        """Return what is asked of every model."""
        return self._q.workload

    def of(self, spec: ModelSpec) -> Speed:
        """Return the speed of a model, as `predict` would."""
        body = self._body(spec)
        seconds, n_bytes, flops = body.seconds, body.n_bytes, body.flops
        rates = body.rates
        for g in spec.groups:
            if g.read_fraction:
                key = (g.component, g.type, g.read_fraction)
                r = rates.get(key)
                if r is None:
                    r = rates[key] = self._group_rates(g, body)
                seconds += (
                    g.n_bytes * r.per_byte
                    + g.n_matmul_params * r.per_param
                    + g.n_tensors * r.per_tensor
                )
                n_bytes += g.n_bytes * r.read_per_byte
                flops += g.n_matmul_params * r.flops_per_param
        n_tokens = tokens_of(self._q.workload)
        rate = min(n_tokens / seconds, self._ceiling(n_bytes, flops, n_tokens))
        low, high = self._interval(spec)
        ceiling = self._ceiling(n_bytes, flops, n_tokens)
        return Speed(rate, rate * low, min(rate * high, ceiling), n_tokens / rate)
