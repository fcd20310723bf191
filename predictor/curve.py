"""Decode speed over depth, with all that does not depend on the depth worked out once."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tokcast.predictor.coefficients import Coefficients
from tokcast.predictor.ledger import DecodeLedger, Work, compile_decode
from tokcast.predictor.roofline import Question, cap_of, interval_of, scale, shape_of, shares_of
from tokcast.predictor.spec import ModelSpec
from tokcast.predictor.terms import term_pair, terms


@dataclass(frozen=True, slots=True)
class DecodeCurve:
    """Tokens/s of decode at any depth; made by `decode_curve`.

    `seconds_per` holds, for each (component, type) of the attention, the fitted seconds a byte
    and an operation take.
    """

    ledger: DecodeLedger
    cap_bytes_per_s: float
    fixed_seconds: float
    fixed_bytes: float
    seconds_per: Mapping[tuple[str, str], tuple[float, float]]
    low: float
    high: float

    def at(self, n_depth: int) -> tuple[float, float, float]:
        """Return (tokens/s, low, high) at a depth."""
        seconds = self.fixed_seconds
        n_bytes = self.fixed_bytes
        for work in self.ledger.at_depth(n_depth):
            per_byte, per_flop = self.seconds_per[work.component, work.type]
            n_bytes += work.bytes
            seconds += work.bytes * per_byte + work.flops * per_flop
        cap = self.cap_bytes_per_s / n_bytes
        rate = min(1 / seconds, cap)
        return rate, rate * self.low, min(rate * self.high, cap)


def decode_curve(spec: ModelSpec, q: Question, coefficients: Coefficients) -> DecodeCurve:
    """Return the decode curve of a model; `q.workload` gives all but the depth."""
    load = replace(q.workload, phase="decode", n_depth=0)
    q = replace(q, workload=load)
    compiled = compile_decode(spec, load.type_k, load.type_v, load.flash_attention)
    shape = shape_of(spec, load)
    moving = compiled.at_depth(0)
    seconds_per = {}
    for work in moving:
        one = Work(work.component, work.type, 1.0, 1.0, 0.0)
        by_byte, by_flop = (
            sum(t.seconds * scale(coefficients.effects, t, q, shape) for t in found)
            for found in (
                term_pair(replace(one, flops=0.0), q.host, q.run, "decode"),
                term_pair(replace(one, bytes=0.0), q.host, q.run, "decode"),
            )
        )
        seconds_per[work.component, work.type] = (by_byte, by_flop)
    fixed = [
        t
        for t in terms(compiled.fixed + moving, q.host, q.run, "decode")
        if (t.component, t.type) not in seconds_per
    ]
    low, high = interval_of(spec, q, coefficients)
    return DecodeCurve(
        ledger=compiled,
        cap_bytes_per_s=cap_of(q.host, q.host.bytes_per_s),
        fixed_seconds=sum(
            share.seconds
            for share in shares_of(
                fixed, [scale(coefficients.effects, t, q, shape) for t in fixed], "decode"
            )
        ),
        fixed_bytes=sum(w.bytes for w in compiled.fixed),
        seconds_per=seconds_per,
        low=math.exp(low),
        high=math.exp(high),
    )
