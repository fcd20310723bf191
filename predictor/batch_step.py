"""One pass that generates a token for each of several sequences.

Weights are read once for all, attention is each sequence's own. What the weights' products take is
known from two sides: many tokens one at a time, and a prompt of as many tokens; the faster of the
two is taken, but never less than one token takes. Nothing of it is fitted on batches.
"""

from dataclasses import dataclass, replace

from tokcast.predictor.coefficients import Coefficients
from tokcast.predictor.ledger import LedgerPlan, Phase, Work, compile_ledger
from tokcast.predictor.roofline import Question, scale, shape_of, shares_of
from tokcast.predictor.spec import ModelSpec
from tokcast.predictor.terms import terms


@dataclass(frozen=True, slots=True)
class BatchStep:
    """Seconds of passes at any number of sequences and depth; made by `batch_step`."""

    spec: ModelSpec
    question: Question
    coefficients: Coefficients
    plan: LedgerPlan

    def seconds(self, n_sequences: int, n_depth: int) -> float:
        """Return the seconds of one token for each of `n_sequences`, all at one depth."""
        works = self._works(n_sequences)
        alone = self._sum(self._works(1), "decode", 1)
        together = self._sum(works, "decode", n_sequences)
        read = self._sum(works, "prefill", n_sequences)
        attention = self.plan.at_depth(1, n_depth, 1)
        each = self._sum([replace(w, n_launches=0.0) for w in attention], "decode", 1)
        launches = Work("attention_op", "", 0.0, 0.0, sum(w.n_launches for w in attention))
        once = self._sum([launches], "decode", 1)
        return max(alone, min(together, read)) + once + n_sequences * each

    def _works(self, n: int) -> list[Work]:
        """Return the work of n tokens in one pass outside attention; each has a head of its own."""
        return [
            replace(w, flops=w.flops * n) if w.component == "head" else w
            for w in self.plan.fixed(n, n)
        ]

    def _sum(self, works: list[Work], phase: Phase, n: int) -> float:
        load = replace(self.question.workload, phase=phase, n_prompt=n, n_ubatch=n)
        q = replace(self.question, workload=load)
        shape = shape_of(self.spec, load)
        found = terms(works, q.host, q.run, phase)
        scales = [scale(self.coefficients.effects, t, q, shape) for t in found]
        return sum(share.seconds for share in shares_of(found, scales, phase))


def batch_step(spec: ModelSpec, q: Question, coefficients: Coefficients) -> BatchStep:
    """Return the passes of a model; `q.workload` gives the cache types.

    Raises InputError for an unknown cache type.
    """
    load = q.workload
    plan = compile_ledger(spec, load.type_k, load.type_v, load.flash_attention)
    return BatchStep(spec, q, coefficients, plan)
