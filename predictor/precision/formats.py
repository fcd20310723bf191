"""Number formats with the bits that they really take, scales included."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tokcast.predictor.errors import InputError
from tokcast.predictor.quants import TYPES_BY_NAME

# What a number of a format is multiplied as: the rate that a chip is asked for.
ARITHMETIC = ("fp4", "int4", "fp8", "int8", "fp16", "fp32")


@dataclass(frozen=True, slots=True)
class Format:
    """A format: bits of a number, and of a scale (with its zero point) for `block` numbers.

    `block` 0 is one scale a row or tensor, below 0.01 bits a number and left out. `arithmetic` is
    what its numbers are multiplied as.
    """

    name: str
    number_bits: float
    scale_bits: float
    block: int
    arithmetic: str
    source: str

    @property
    def bits(self) -> float:
        """Return bits a number, scales included."""
        return self.number_bits + (self.scale_bits / self.block if self.block else 0.0)

    @property
    def bytes(self) -> float:
        """Return bytes a number, scales included."""
        return self.bits / 8


_IEEE, _OCP8 = "IEEE 754-2019", "OCP 8-bit floating point (OFP8) 1.0"
_OCP_MX, _NVFP4 = "OCP microscaling formats (MX) 1.0", "NVIDIA, Introducing NVFP4 (2025)"
_ROWS = (
    Format("FP32", 32, 0, 0, "fp32", _IEEE),
    Format("TF32", 32, 0, 0, "fp32", "NVIDIA A100 white paper: 19 bits used, 32 stored"),
    Format("FP16", 16, 0, 0, "fp16", _IEEE),
    Format("BF16", 16, 0, 0, "fp16", "bfloat16"),
    Format("FP8_E4M3", 8, 0, 0, "fp8", _OCP8),
    Format("FP8_E5M2", 8, 0, 0, "fp8", _OCP8),
    Format("INT8", 8, 0, 0, "int8", "one FP16 scale an output row (SmoothQuant, LLM.int8)"),
    Format("INT4", 4, 16 + 4, 128, "int4", "GPTQ and AWQ files: FP16 scale and 4-bit zero of 128"),
    Format("MXFP8", 8, 8, 32, "fp8", _OCP_MX),
    Format("MXFP6", 6, 8, 32, "fp8", _OCP_MX),
    Format("MXFP4", 4, 8, 32, "fp4", _OCP_MX),
    Format("NVFP4", 4, 8, 16, "fp4", f"{_NVFP4}: an E4M3 scale of 16, an FP32 one of a tensor"),
    Format("NF4", 4, 32, 64, "fp16", "QLoRA: an FP32 scale of 64, before double quantization"),
)
FORMATS: Mapping[str, Format] = MappingProxyType({f.name: f for f in _ROWS})
_ALIASES = {"FP8": "FP8_E4M3", "F32": "FP32", "F16": "FP16"}


def format_of(name: str) -> Format:
    """Return a format by its name, or a ggml type as one that is multiplied as 16 bits.

    Raises InputError for a name that is neither.
    """
    key = name.strip().upper()
    found = FORMATS.get(_ALIASES.get(key, key))
    if found is not None:
        return found
    ggml = TYPES_BY_NAME.get(key)
    if ggml is None:
        raise InputError(
            f"format {name!r}: expected one of {', '.join(FORMATS)}, or a ggml type such as Q8_0"
        )
    return Format(key, ggml.bits_per_weight, 0, 0, "fp16", "ggml block structures")
