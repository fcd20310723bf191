"""The energy roofline: joules from time, bytes and operations.

    watts = base + energy/byte x bytes/s + energy/operation x operations/s, at most the sustained power

after Choi, Bedard, Fowler and Vuduc, "A roofline model of energy" (IPDPS 2013), whose capped form
is of the same authors' "Algorithmic time, energy, and power on candidate HPC compute building
blocks" (IPDPS 2014). All are shares of a chip's reference power, so that a chip nobody measured
has them too.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Activity:
    """What a span of time was spent on: bytes moved and operations by phase."""

    seconds: float
    n_bytes: float
    decode_flops: float
    prefill_flops: float
