"""What a prediction says, and how far to trust it."""

from dataclasses import dataclass
from typing import Literal

from tokcast.predictor.ledger import Phase

Bound = Literal["memory", "compute", "overhead"]
Evidence = Literal["same host", "same chip family", "spec sheet only"]


@dataclass(frozen=True, slots=True)
class ComponentTime:
    """One component's share of the time: its work, seconds, and which side of the roof sets it."""

    component: str
    type: str
    bytes: float
    flops: float
    seconds: float
    bound: Bound


@dataclass(frozen=True, slots=True)
class Prediction:
    """Throughput of one phase with an interval that holds the truth `level` of the time.

    `seconds` is one token's time in decode, the whole prompt's in prefill. `ceiling_tok_per_s`
    is what the nameplate peaks allow: no measurement may be above it. `n_observations` counts
    the measured configurations behind the coefficients used for this backend.
    """

    phase: Phase
    n_prompt: int
    n_depth: int
    tok_per_s: float
    low: float
    high: float
    level: float
    seconds: float
    bound: Bound
    components: tuple[ComponentTime, ...]
    ceiling_tok_per_s: float
    evidence: Evidence
    n_observations: int
    warnings: tuple[str, ...] = ()
