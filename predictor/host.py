"""What a machine can do at best: the facts a roofline needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Kind = Literal["discrete_gpu", "apple_soc", "apu", "cpu"]


@dataclass(frozen=True, slots=True)
class Host:
    """A chip with its published peaks, in SI units; None where nobody publishes it.

    `bytes_per_s` is the nameplate memory bandwidth of one device. The rates are dense:
    `matrix_fp16_flops_per_s` with FP16 accumulate, `matrix_fp32acc_flops_per_s` with FP32
    accumulate, `fp16_flops_per_s` and `fp32_flops_per_s` of the vector units,
    `int8_ops_per_s` matrix or dot-product instructions. `source` gives, per field, where the
    number was published; `memory_options_bytes` lists the sizes the chip was sold with;
    `link_bytes_per_s` is what its slot moves one way between it and main memory.
    """

    name: str
    vendor: str
    kind: Kind
    architecture: str
    bytes_per_s: float
    memory_bytes: float | None = None
    memory_options_bytes: tuple[float, ...] = ()
    matrix_fp16_flops_per_s: float | None = None
    matrix_fp32acc_flops_per_s: float | None = None
    fp16_flops_per_s: float | None = None
    fp32_flops_per_s: float | None = None
    int8_ops_per_s: float | None = None
    cache_bytes: float | None = None
    n_cores: int | None = None
    clock_hz: float | None = None
    tdp_w: float | None = None
    launch_year: int | None = None
    link_bytes_per_s: float | None = None
    memory_type: str = ""
    n_devices: int = 1
    confidence: Literal["high", "medium", "low"] = "low"
    source: Mapping[str, str] = field(default_factory=dict, hash=False)
    notes: tuple[str, ...] = ()

    @property
    def is_unified(self) -> bool:
        """Return whether the accelerator shares the machine's memory."""
        return self.kind != "discrete_gpu"
