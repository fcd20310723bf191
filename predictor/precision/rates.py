"""A chip's peaks by what is multiplied, and which of them a product of two formats runs at."""

from collections.abc import Mapping
from dataclasses import dataclass

from tokcast.predictor.errors import InputError
from tokcast.predictor.precision.formats import ARITHMETIC, Format

# Where a chip lacks an arithmetic, its numbers are widened to the next one that it has.
_WIDER = {"fp4": "fp8", "int4": "int8", "fp8": "fp16", "int8": "fp16", "fp16": "fp32"}


@dataclass(frozen=True, slots=True)
class Rates:
    """Peak bytes/s of memory and dense operations/s by arithmetic; what is unknown is left out.

    Raises InputError for a peak that is not above zero.
    """

    name: str
    bytes_per_s: float
    flops_per_s: Mapping[str, float]

    def __post_init__(self) -> None:
        """Refuse peaks that no chip has."""
        for what, value in (("bytes/s", self.bytes_per_s), *self.flops_per_s.items()):
            if not 0 < value < float("inf"):
                raise InputError(f"{self.name}: {what} is {value}; expected a rate above 0")
        if "fp32" not in self.flops_per_s and "fp16" not in self.flops_per_s:
            raise InputError(
                f"{self.name}: no rate of arithmetic is known; --tflops gives that of 16 bits"
            )

    def native(self, arithmetic: str) -> str:
        """Return the arithmetic itself where the chip has it, else what it is widened to."""
        found = arithmetic
        while found not in self.flops_per_s:
            found = _WIDER.get(found, "fp16")
        return found

    def flops_of(self, arithmetic: str) -> float:
        """Return operations/s of an arithmetic, or of what it is widened to."""
        return self.flops_per_s[self.native(arithmetic)]

    def ridge(self, arithmetic: str) -> float:
        """Return the operations a byte above which an arithmetic, not memory, is the limit."""
        return self.flops_of(arithmetic) / self.bytes_per_s


def multiplied_as(weights: Format, activations: Format) -> str:
    """Return the arithmetic of a product: both are widened to the wider one's.

    So 4-bit weights beside 16-bit activations run at the rate of 16 bits: they save bytes only.
    """
    return max(weights.arithmetic, activations.arithmetic, key=ARITHMETIC.index)
