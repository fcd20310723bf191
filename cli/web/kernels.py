"""One matrix product on a host: what its data sheet allows, and a measurement here."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from typing import Any

from tokcast.cli.charts.roofline import Point, Roofline
from tokcast.cli.scene import ceilings_of, link_of, side_of, slopes_of
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.quants import TYPES_BY_NAME

F32_BYTES = 4
# What may be measured while others wait: bounded in memory and time.
MOST_BYTES, MOST_FLOPS, MOST_SECONDS, MOST_RUNS = 256 << 20, 4e10, 0.5, 50


@dataclass(frozen=True, slots=True)
class Product:
    """An (m x k) by (k x n) product with weights of a ggml type, the rest F32."""

    m: int
    n: int
    k: int
    type: str

    @property
    def weight_bytes(self) -> int:
        """Return the bytes of the weights; raises InputError for rows of no whole blocks."""
        known = TYPES_BY_NAME.get(self.type.upper())
        if known is None:
            raise InputError(f"type {self.type!r}: expected one of {', '.join(TYPES_BY_NAME)}")
        if self.k % known.block:
            raise InputError(f"k is {self.k}: expected whole {known.name} blocks of {known.block}")
        return known.size((self.k, self.n))

    @property
    def flops(self) -> float:
        """Return the operations, two for a multiplication and an addition."""
        return 2.0 * self.m * self.n * self.k


def analyze(product: Product, host: Host) -> dict[str, Any]:
    """Return bytes, operations and bounds of a product on a host."""
    parts = {
        "weights": float(product.weight_bytes),
        "input": float(F32_BYTES * product.m * product.k),
        "output": float(F32_BYTES * product.m * product.n),
    }
    n_bytes = sum(parts.values())
    memory_s = n_bytes / host.bytes_per_s
    ceilings = ceilings_of(host)
    best_s = min((product.flops / c.flops_per_s for c in ceilings), default=0.0)
    seconds = max(memory_s, best_s)
    kind = "GEMV" if product.m == 1 else "GEMM"
    point = Point(kind, "", "component", product.flops, n_bytes, seconds)
    roof = Roofline(host.name, slopes_of(host, link_of(host)), ceilings, (point,))
    return {
        "kind": kind,
        "m": product.m,
        "n": product.n,
        "k": product.k,
        "type": product.type.upper(),
        "host": host.name,
        "bytes": parts,
        "flops": product.flops,
        "flops_per_byte": point.intensity,
        "ridge_flops_per_byte": roof.ridge,
        "memory_seconds": memory_s,
        "compute_seconds": [
            {"ceiling": c.label, "seconds": product.flops / c.flops_per_s} for c in ceilings
        ],
        "bound_seconds": seconds,
        "bound": side_of(point, roof) or "near the ridge",
    }


def why_not_measured(product: Product) -> str:
    """Return why a product can't be measured here, "" where it can."""
    if product.type.upper() != "F32":
        return "only F32 products on the processor are measured here"
    size = F32_BYTES * (product.k * product.n + product.m * (product.k + product.n))
    if size > MOST_BYTES or product.flops > MOST_FLOPS:
        return f"larger than what is measured here ({MOST_BYTES} bytes, {MOST_FLOPS:g} FLOP)"
    return ""


def measure(product: Product, clock: Callable[[], float] = time.perf_counter) -> dict[str, Any]:
    """Return seconds of the product on this machine's processor: every sample, warm-up apart."""
    import numpy as np

    rng = np.random.default_rng(0)
    left = rng.standard_normal((product.m, product.k), dtype=np.float32)
    right = rng.standard_normal((product.k, product.n), dtype=np.float32)
    out = np.empty((product.m, product.n), dtype=np.float32)
    samples: list[float] = []
    start = clock()
    while len(samples) <= MOST_RUNS and (len(samples) < 2 or clock() - start < MOST_SECONDS):
        before = clock()
        np.matmul(left, right, out=out)
        samples.append(max(clock() - before, 1e-9))
    typical = median(samples[1:])
    n_bytes = F32_BYTES * (product.k * product.n + product.m * (product.k + product.n))
    return {
        "what": "numpy F32 product on this machine's processor, all its threads",
        "warm_up_seconds": samples[0],
        "seconds": samples[1:],
        "median_seconds": typical,
        "flops_per_s": product.flops / typical,
        "bytes_per_s": n_bytes / typical,
    }
