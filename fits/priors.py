"""What is believed of an effect before any measurement, and which share a width.

The first mark that an effect's name contains decides. Groups (marked `shared`) are
exchangeable effects, one a chip, family, type, ...: their common width is estimated from how far
they spread, starting from the standard deviation given here. All in log units.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tokcast.fits.estimate import Prior
from tokcast.predictor.terms import BACKENDS


@dataclass(frozen=True, slots=True)
class Belief:
    """Prior of the effects whose names contain `mark`.

    `tailed`: a Cauchy distribution, where most are alike and a few are far off.
    """

    mark: str
    sd: float
    mean: float = 0.0
    shared: bool = False
    tailed: bool = False


def _backend_in(name: str) -> str:
    """Return the backend an effect is of: each backend has its own spread of chips and types."""
    return next((b for b in BACKENDS if f"|{b}" in name), "")


def prior_of(names: Sequence[str], beliefs: Sequence[Belief]) -> Prior:
    """Return the prior of named effects; raises StopIteration when no belief covers one."""
    chosen = [next(b for b in beliefs if b.mark in name) for name in names]
    groups: dict[tuple[str, str], list[int]] = defaultdict(list)
    for i, belief in enumerate(chosen):
        if belief.shared:
            groups[belief.mark, _backend_in(names[i])].append(i)
    return Prior(
        np.array([b.mean for b in chosen]),
        np.array([b.sd for b in chosen]),
        tuple(np.array(rows, dtype=np.intp) for rows in groups.values()),
        np.array([b.tailed for b in chosen], dtype=np.bool_),
    )


WHOLE = (
    # Of a chip's published machines a few are throttled, half filled or misnamed.
    Belief("|chipGPU=", 0.15, shared=True, tailed=True),
    Belief("|chipCPU=", 0.3, shared=True, tailed=True),
    Belief("|chiprt=", 0.08, shared=True),
    Belief("|model=", 0.06, shared=True),
    Belief("|modelbackend=", 0.05, shared=True),
    Belief("|architecture=", 0.06, shared=True),
    Belief("|client", 0.1),
    Belief("launch|windows", 0.5),
    Belief("|windows", 0.15),
)

DECODE = (
    Belief("launch|chip", 0.25),
    Belief("attention|chip", 0.3),
    *WHOLE,
    # Launches: about three microseconds each on a GPU, one thousandth of that of a CPU's loop.
    Belief("launch|base", 1.0, 1.0),
    Belief("launch|backend", 0.7),
    Belief("launch|runtime=", 0.5),
    Belief("launch|family", 0.3, shared=True),
    Belief("launch~clock", 0.4),
    Belief("launch~", 0.3),
    # Weights read: a base efficiency of about 0.8. Memory does not know types: what they cost is
    # arithmetic.
    Belief("memory|base", 0.1, 0.2),
    Belief("memory|backend", 0.08),
    Belief("memory|runtime=", 0.15),
    Belief("memory|family", 0.12, shared=True),
    Belief("memory~bandwidth", 0.15),
    Belief("memory~cores", 0.2),
    Belief("memory~", 0.1),
    Belief("memory|hbm", 0.2),
    Belief("memory|ecc", 0.2),
    Belief("memory|apu", 0.2, 0.05),
    Belief("memory|lpddr-option", 0.3, 0.1),
    Belief("memory|mobile", 0.3),
    Belief("memory|server", 0.3),
    Belief("memory~tdp", 0.15),
    Belief("memory|runtimefamily", 0.1, shared=True),
    Belief("launch|runtimefamily", 0.3, shared=True),
    Belief("compute|runtimefamily", 0.15, shared=True),
    Belief("launch|flash", 0.3),
    Belief("memory|littleram", 0.3),
    Belief("memory|laptop", 0.1),
    Belief("memory|memory=", 0.2),
    Belief("memory|vendor=", 0.3),
    Belief("memory|stack=", 0.08, shared=True),
    Belief("memory|type=", 0.05),
    Belief("memory|typebackend=", 0.04),
    Belief("memory|typeruntime=", 0.1, shared=True),
    Belief("memory|moe", 0.4),
    # Unpacking and multiplying: of the FP32 rate.
    Belief("compute|base", 0.7, 2.5),
    Belief("compute|backend=CPU", 0.5, -0.9),
    Belief("compute|backend", 0.5),
    Belief("compute|runtime=", 0.3),
    Belief("compute|family", 0.15, shared=True),
    Belief("compute~", 0.2),
    Belief("compute|type=", 0.5, shared=True),
    Belief("compute|typebackend=", 0.4, shared=True),
    Belief("compute|", 0.3),
    Belief("cache|base", 0.5, 0.5),
    Belief("cache|", 0.4),
    Belief("cache~", 0.4),
    Belief("attention|base", 1.0, 2.0),
    Belief("attention|", 0.5),
    Belief("attention~", 0.5),
    Belief("state|base", 0.7, 0.5),
    Belief("state|", 0.5),
    Belief("activation|base", 0.5),
    Belief("activation|", 0.3),
)

PREFILL = (
    Belief("launch|chip", 0.25),
    Belief("attention|chip", 0.3),
    *WHOLE,
    Belief("compute|base", 1.5, 1.0),
    Belief("compute|backend", 1.0),
    Belief("compute|family=", 0.3, shared=True),
    Belief("compute|familyall=", 0.3, shared=True),
    Belief("compute|vendor=", 0.3),
    Belief("compute|laptop", 0.3, 0.1),
    Belief("compute|runtime=", 0.4),
    Belief("compute|runtimefamily=", 0.2, shared=True),
    Belief("compute|stackfamily=", 0.2, shared=True),
    Belief("compute~flashfamily", 0.1, shared=True),
    Belief("compute~flash", 0.1),
    Belief("compute~threads", 0.2),
    Belief("compute~oversubscribed", 0.2, 0.1),
    Belief("compute~int8|CUDA", 0.3, -0.4),
    Belief("compute~int8|CPU", 0.3, -0.3),
    Belief("compute~int8|", 0.3, -0.2),
    Belief("compute~matrix", 0.3, -0.3),
    Belief("compute~power", 0.3, -0.2),
    Belief("compute~fp32|", 0.2),
    Belief("compute~balance|", 0.2, -0.1),
    Belief("compute~cache", 0.1),
    Belief("compute~launched", 0.05),
    Belief("compute~cores", 0.3),
    Belief("compute~ram", 0.1),
    Belief("compute|littleram", 0.3),
    Belief("compute~yearfamily", 0.15, shared=True),
    Belief("compute~year", 0.1, -0.08),
    Belief("compute~before", 0.1),
    Belief("compute~since", 0.1),
    Belief("compute|before-mmq", 0.3, 0.3),
    Belief("compute~narrowbackend", 0.15),
    Belief("compute~narrow", 0.3, 0.2),
    Belief("compute|fp4", 0.3, -0.2),
    Belief("compute~widthruntime", 0.15),
    Belief("compute~width", 0.15, -0.05),
    Belief("compute~rows", 0.15, -0.1),
    Belief("compute~", 0.15),
    Belief("compute|moe|", 0.3, 0.3),
    Belief("compute|expertloop", 0.5, 0.3),
    Belief("compute|moeruntime", 0.15),
    Belief("compute|typebackend=", 0.15, shared=True),
    Belief("compute|typeruntime=", 0.15, shared=True),
    Belief("compute|type=", 0.2, shared=True),
    Belief("compute|floatstack=", 0.3, shared=True),
    Belief("compute|floatfamily=", 0.3, shared=True),
    Belief("tile|backend", 0.7),
    Belief("tile|", 0.3),
    Belief("attention|base", 1.0, 1.5),
    Belief("attention|family", 0.3, shared=True),
    Belief("attention~matrix", 0.3, -0.5),
    # Kernels of flash attention differ more between backends and runtimes than matrix products do.
    Belief("attention|flash-on", 1.0),
    Belief("attention|flashruntime-on", 1.0),
    Belief("attention~year", 0.4),
    Belief("attention|", 0.3),
    Belief("attention~", 0.15),
    Belief("memory|base", 0.7, 0.3),
    Belief("memory|", 0.5),
    Belief("state|base", 0.7, 0.5),
    Belief("state|", 0.5),
    Belief("activation|base", 0.5),
    Belief("activation|", 0.3),
    Belief("cache|", 0.5),
    Belief("launch|base", 0.7, 1.0),
    Belief("launch|", 0.7),
    Belief("launch~", 0.5),
)

BELIEFS = {"decode": DECODE, "prefill": PREFILL}
