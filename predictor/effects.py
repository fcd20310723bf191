"""Which fitted effects scale a term.

A term's fitted time is its time at nameplate peaks times exp(sum of value x effect). Effects are
named, so that coefficients are a plain mapping from name to number, and a name that was not
fitted counts as 0, the centre of its prior: an unknown chip falls back on its family, an unknown
family on its backend. The fit and the prediction both call `effects_of`, so they can't drift.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tokcast.predictor.host import Host
from tokcast.predictor.ledger import Phase
from tokcast.predictor.terms import Run, Term, matmul_flops_per_s

# Centres of the covariates, near the middle of the published measurements, so that the
# effects without covariates describe a middling host. They are conventions, not results.
CENTRE_BYTES_PER_S = 400e9
CENTRE_FLOPS_PER_BYTE = 100.0
CENTRE_CLOCK_HZ = 2e9
CENTRE_YEAR = 2025.5
CENTRE_WIDTH = 4096.0

Effect = tuple[str, float]


@dataclass(frozen=True, slots=True)
class Shape:
    """What of a model's shape enters as a covariate: its width and the tokens in a micro-batch."""

    embedding_length: int
    n_tokens: int = 1


def family(host: Host) -> str:
    """Return the chip family's name: vendor and architecture."""
    return f"{host.vendor} {host.architecture}"


def effects_of(term: Term, phase: Phase, host: Host, run: Run, shape: Shape) -> tuple[Effect, ...]:
    """Return the (name, value) pairs that scale a term."""
    prefix = f"{phase}/{term.kind}"
    backend = run.backend
    pairs: list[Effect] = [
        (prefix, 1.0),
        (f"{prefix}|backend={backend}", 1.0),
        (f"{prefix}|family={family(host)}|{backend}", 1.0),
        (f"{prefix}|chip={host.name}|{backend}", 1.0),
        (f"{phase}|chip={host.name}|{backend}", 1.0),
        (f"{prefix}|memory={host.memory_type}|{backend}", 1.0),
    ]
    if term.kind in ("weights", "experts"):
        pairs += [
            (f"{phase}/type={term.type}", 1.0),
            (f"{phase}/type={term.type}|{backend}", 1.0),
        ]
    if run.runtime != "llama.cpp":
        pairs.append((f"{prefix}|runtime={run.runtime}|{backend}", 1.0))
    if run.stack not in ("", backend):
        pairs.append((f"{prefix}|stack={run.stack}", 1.0))
    pairs.extend(_covariates(prefix, phase, term, host, run, shape))
    return tuple(pairs)


def _covariates(
    prefix: str, phase: Phase, term: Term, host: Host, run: Run, shape: Shape
) -> Iterator[Effect]:
    side = "cpu" if run.backend == "CPU" else "gpu"
    yield f"{prefix}~bandwidth|{side}", math.log(host.bytes_per_s / CENTRE_BYTES_PER_S)
    peak = matmul_flops_per_s(host, run.backend)
    if peak:
        balance = peak / host.bytes_per_s / CENTRE_FLOPS_PER_BYTE
        yield f"{prefix}~balance|{side}", math.log(balance)
    if host.clock_hz:
        yield f"{prefix}~clock|{side}", math.log(host.clock_hz / CENTRE_CLOCK_HZ)
    if run.year is not None:
        yield f"{prefix}~year|{run.backend}", run.year - CENTRE_YEAR
    if phase == "prefill" and term.kind in ("weights", "experts"):
        width = math.log(shape.embedding_length / CENTRE_WIDTH)
        yield f"{prefix}~width|{side}", width
        if peak:
            yield f"{prefix}~width*peak|{side}", width * math.log(peak / 1e14)
        yield f"{prefix}~tokens|{side}", math.log(max(shape.n_tokens, 1) / 512)
