"""Storage types of weights and their exact sizes.

Block sizes are sums of the fields of each block structure in ggml (`ggml-common.h`,
MIT), so that each row can be checked by eye. Ids 4, 5, 31-33 and 36-38 are types that
ggml removed; ids above the table are unknown to this version.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

QK_K = 256


@dataclass(frozen=True, slots=True)
class QuantType:
    """A ggml type: id in files, elements per block and bytes per block."""

    name: str
    id: int
    block: int
    n_bytes: int

    @property
    def bits_per_weight(self) -> float:
        """Return the stored bits per element, scales included."""
        return 8 * self.n_bytes / self.block

    def size(self, shape: Sequence[int]) -> int:
        """Return the bytes of a tensor whose rows (`shape[0]`) are whole blocks."""
        return math.prod(shape) // self.block * self.n_bytes


_ROWS = (
    ("F32", 0, 1, 4),
    ("F16", 1, 1, 2),
    ("Q4_0", 2, 32, 2 + 16),
    ("Q4_1", 3, 32, 2 + 2 + 16),
    ("Q5_0", 6, 32, 2 + 4 + 16),
    ("Q5_1", 7, 32, 2 + 2 + 4 + 16),
    ("Q8_0", 8, 32, 2 + 32),
    ("Q8_1", 9, 32, 2 + 2 + 32),
    ("Q2_K", 10, QK_K, 2 + 2 + QK_K // 16 + QK_K // 4),
    ("Q3_K", 11, QK_K, 2 + QK_K // 4 + QK_K // 8 + 12),
    ("Q4_K", 12, QK_K, 2 + 2 + QK_K // 2 + 12),
    ("Q5_K", 13, QK_K, 2 + 2 + QK_K // 2 + QK_K // 8 + 12),
    ("Q6_K", 14, QK_K, 2 + QK_K // 2 + QK_K // 4 + QK_K // 16),
    ("Q8_K", 15, QK_K, 4 + QK_K + QK_K // 8),
    ("IQ2_XXS", 16, QK_K, 2 + QK_K // 4),
    ("IQ2_XS", 17, QK_K, 2 + QK_K // 4 + QK_K // 32),
    ("IQ3_XXS", 18, QK_K, 2 + QK_K // 4 + QK_K // 8),
    ("IQ1_S", 19, QK_K, 2 + QK_K // 8 + QK_K // 16),
    ("IQ4_NL", 20, 32, 2 + 16),
    ("IQ3_S", 21, QK_K, 2 + QK_K // 4 + QK_K // 8 + QK_K // 32 + 4),
    ("IQ2_S", 22, QK_K, 2 + QK_K // 4 + QK_K // 16),
    ("IQ4_XS", 23, QK_K, 2 + 2 + QK_K // 2 + QK_K // 64),
    ("I8", 24, 1, 1),
    ("I16", 25, 1, 2),
    ("I32", 26, 1, 4),
    ("I64", 27, 1, 8),
    ("F64", 28, 1, 8),
    ("IQ1_M", 29, QK_K, QK_K // 8 + QK_K // 16 + QK_K // 32),
    ("BF16", 30, 1, 2),
    ("TQ1_0", 34, QK_K, 2 + 4 * 13),
    ("TQ2_0", 35, QK_K, 2 + QK_K // 4),
    ("MXFP4", 39, 32, 1 + 16),
    ("NVFP4", 40, 64, 4 + 32),
    ("Q1_0", 41, 128, 2 + 16),
    ("Q2_0", 42, 64, 2 + 16),
)

TYPES_BY_ID = {id: QuantType(name, id, block, size) for name, id, block, size in _ROWS}
TYPES_BY_NAME = {t.name: t for t in TYPES_BY_ID.values()}
REMOVED_IDS = frozenset({4, 5, 31, 32, 33, 36, 37, 38})


def mlx_type(bits: int, group_size: int) -> str:
    """Return the name used for MLX affine quantization, such as `MLX4G64`."""
    return f"MLX{bits}G{group_size}"


# Types of safetensors files alone: 8-bit floats, and MXFP8's one scale byte for 32 of them.
_SAFETENSORS_BITS = {"F8_E4M3": 8.0, "F8_E5M2": 8.0, "MXFP8": 8.25}


def bits_per_weight(name: str) -> float:
    """Return stored bits per element of a ggml, MLX or safetensors type.

    MLX keeps one 16-bit scale and one 16-bit bias a group: bits + 32 / group_size.
    Raises KeyError for a name that is none of them.
    """
    if name in _SAFETENSORS_BITS:
        return _SAFETENSORS_BITS[name]
    known = TYPES_BY_NAME.get(name)
    if known is not None:
        return known.bits_per_weight
    if name.startswith("MLX"):
        bits, _, group = name[3:].partition("G")
        return int(bits) + 32 / int(group)
    raise KeyError(name)
