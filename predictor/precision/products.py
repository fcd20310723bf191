"""One matrix product: bytes, operations, and which peak bounds it."""

from dataclasses import dataclass
from typing import Literal

from tokcast.predictor.errors import InputError
from tokcast.predictor.precision.formats import Format
from tokcast.predictor.precision.rates import Rates, multiplied_as

Bound = Literal["memory", "compute"]


@dataclass(frozen=True, slots=True)
class Product:
    """(m x k) activations by (k x n) weights; m = 1 is a GEMV. Raises InputError for no numbers."""

    m: int
    n: int
    k: int
    weights: Format
    activations: Format
    output: Format

    def __post_init__(self) -> None:
        """Refuse a product of nothing."""
        for name, value in (("m", self.m), ("n", self.n), ("k", self.k)):
            if value < 1:
                raise InputError(f"product of {name} = {value}: expected at least 1")

    @property
    def kind(self) -> str:
        """Return GEMV for one row of activations, else GEMM."""
        return "GEMV" if self.m == 1 else "GEMM"

    @property
    def flops(self) -> float:
        """Return operations: 2 m n k."""
        return 2.0 * self.m * self.n * self.k

    @property
    def n_bytes(self) -> float:
        """Return bytes moved once: weights, activations and output, scales included."""
        read = self.k * self.n * self.weights.bytes + self.m * self.k * self.activations.bytes
        return read + self.m * self.n * self.output.bytes

    @property
    def arithmetic(self) -> str:
        """Return what it is multiplied as."""
        return multiplied_as(self.weights, self.activations)


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds at the peaks: the larger of memory's and arithmetic's."""

    memory_s: float
    compute_s: float

    @property
    def seconds(self) -> float:
        """Return max(bytes / bytes per s, operations / operations per s)."""
        return max(self.memory_s, self.compute_s)

    @property
    def bound(self) -> Bound:
        """Return the larger side."""
        return "memory" if self.memory_s >= self.compute_s else "compute"


def timing(n_bytes: float, flops: float, arithmetic: str, rates: Rates) -> Timing:
    """Return the roofline's two times (Williams, Waterman, Patterson 2009)."""
    return Timing(n_bytes / rates.bytes_per_s, flops / rates.flops_of(arithmetic))


def time_of(product: Product, rates: Rates) -> Timing:
    """Return a product's times."""
    return timing(product.n_bytes, product.flops, product.arithmetic, rates)
