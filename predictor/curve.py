"""Decode speed over depth, with all that does not depend on the depth worked out once."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tokcast.predictor.coefficients import Coefficients
from tokcast.predictor.host import Host
from tokcast.predictor.ledger import DecodeLedger, compile_decode
from tokcast.predictor.roofline import Question, interval_of, scale, shape_of
from tokcast.predictor.spec import ModelSpec
from tokcast.predictor.terms import term_of, terms


@dataclass(frozen=True, slots=True)
class DecodeCurve:
    """Tokens/s of decode at any depth; made by `decode_curve`.

    `scales` holds the fitted multiple for each (component, type) of the attention.
    """

    ledger: DecodeLedger
    host: Host
    backend: str
    fixed_seconds: float
    fixed_bytes: float
    scales: Mapping[tuple[str, str], float]
    low: float
    high: float

    def at(self, n_depth: int) -> tuple[float, float, float]:
        """Return (tokens/s, low, high) at a depth."""
        seconds = self.fixed_seconds
        n_bytes = self.fixed_bytes
        for work in self.ledger.at_depth(n_depth):
            n_bytes += work.bytes
            term = term_of(work, self.host, self.backend, "decode")
            seconds += term.seconds * self.scales[work.component, work.type]
        ceiling = self.host.bytes_per_s / n_bytes
        rate = min(1 / seconds, ceiling)
        return rate, rate * self.low, min(rate * self.high, ceiling)


def decode_curve(spec: ModelSpec, q: Question, coefficients: Coefficients) -> DecodeCurve:
    """Return the decode curve of a model; `q.workload` gives all but the depth."""
    load = replace(q.workload, phase="decode", n_depth=0)
    q = replace(q, workload=load)
    compiled = compile_decode(spec, load.type_k, load.type_v, load.flash_attention)
    shape = shape_of(spec, load)
    moving = compiled.at_depth(0)
    scales = {}
    for work in moving:
        term = term_of(work, q.host, q.run.backend, "decode")
        scales[work.component, work.type] = scale(coefficients.effects, term, q, shape)
    everything = terms(compiled.fixed + moving, q.host, q.run.backend, "decode")
    fixed = [t for t in everything if (t.component, t.type) not in scales]
    low, high = interval_of(spec, q, coefficients)
    return DecodeCurve(
        ledger=compiled,
        host=q.host,
        backend=q.run.backend,
        fixed_seconds=sum(t.seconds * scale(coefficients.effects, t, q, shape) for t in fixed),
        fixed_bytes=sum(t.bytes for t in fixed),
        scales=scales,
        low=math.exp(low),
        high=math.exp(high),
    )
