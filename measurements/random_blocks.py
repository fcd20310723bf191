"""Random weights in ggml's block formats.

Each block's scales are drawn from as wide a range as trained models have, small and finite:
llama.cpp looks half-precision scales up in a table, and a single value in all blocks decodes a
fifth too fast.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from tokcast.predictor.header import Tensor
from tokcast.predictor.quants import TYPES_BY_NAME

Bytes = npt.NDArray[np.uint8]
_TILE_BYTES = 4 << 20
_DEVIATION = 0.02

# Where the half-precision scales lie in a block, and a value that keeps weights near 0.02:
# (offset, value). From the field order of each block structure in ggml-common.h (MIT).
_SCALES: Mapping[str, tuple[tuple[int, float], ...]] = {
    "Q4_0": ((0, 2.5e-3),),
    "Q4_1": ((0, 2.5e-3), (2, -0.02)),
    "Q5_0": ((0, 1.25e-3),),
    "Q5_1": ((0, 1.25e-3), (2, -0.02)),
    "Q8_0": ((0, 2.7e-4),),
    "Q2_K": ((80, 1.2e-3), (82, 2e-3)),
    "Q3_K": ((108, 3e-4),),
    "Q4_K": ((0, 8e-5), (2, 6e-4)),
    "Q5_K": ((0, 4e-5), (2, 6e-4)),
    "Q6_K": ((208, 1.5e-5),),
    "IQ4_NL": ((0, 2.7e-4),),
    "IQ4_XS": ((0, 1.7e-5),),
    "IQ3_XXS": ((0, 1e-4),),
    "IQ3_S": ((0, 1e-4),),
    "IQ2_XXS": ((0, 2e-4),),
    "IQ2_XS": ((0, 2e-4),),
    "IQ2_S": ((0, 2e-4),),
    "IQ1_S": ((0, 1e-3),),
    "TQ1_0": ((52, 0.02),),
    "TQ2_0": ((64, 0.02),),
}
# Standard deviation of a trained model's log scales: 0.28 to 0.41 in the types of gemma3-270m.
_LOG_SPREAD = 0.38
# Types whose scale carries the sign of the block's largest weight.
_SIGNED = frozenset({"Q4_0", "Q5_0", "Q3_K", "Q6_K", "IQ4_NL", "IQ4_XS"})
# MXFP4's scale is a power of two with exponent byte - 127.
_MXFP4_EXPONENTS = (118, 123)
FLOATS = ("F32", "F16", "BF16")
SUPPORTED = (*FLOATS, *_SCALES, "MXFP4")


def _scales(type_name: str, value: float, n: int, random: np.random.Generator) -> Bytes:
    """Return scales of n blocks around a value, (n, 2)."""
    drawn = value * np.exp(_LOG_SPREAD * random.standard_normal(n))
    if type_name in _SIGNED:
        drawn *= random.choice((-1.0, 1.0), n)
    return drawn.astype(np.float16).view(np.uint8).reshape(n, 2)


def _floats(type_name: str, n: int, random: np.random.Generator) -> Bytes:
    x = random.standard_normal(n, dtype=np.float32) * np.float32(_DEVIATION)
    if type_name == "F16":
        return x.astype(np.float16).view(np.uint8)
    if type_name == "BF16":
        return (x.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
    return x.view(np.uint8)


def tile(type_name: str, random: np.random.Generator) -> Bytes:
    """Return some mebibytes of whole random blocks of a type, with valid scales."""
    known = TYPES_BY_NAME[type_name]
    if type_name in FLOATS:
        return _floats(type_name, _TILE_BYTES // known.n_bytes, random)
    n_blocks = _TILE_BYTES // known.n_bytes
    blocks = random.integers(0, 256, (n_blocks, known.n_bytes), dtype=np.uint8)
    if type_name == "MXFP4":
        blocks[:, 0] = random.integers(*_MXFP4_EXPONENTS, n_blocks, dtype=np.uint8)
    for offset, value in _SCALES.get(type_name, ()):
        blocks[:, offset : offset + 2] = _scales(type_name, value, n_blocks, random)
    return blocks.reshape(-1)


def bytes_of(tensor: Tensor, tiles: dict[str, Bytes], seed: int) -> Iterator[memoryview]:
    """Yield a tensor's bytes; `tiles` keeps what was drawn for each type."""
    if len(tensor.shape) == 1 and tensor.type == "F32":
        # Norms of one keep activations in range through any number of layers.
        yield memoryview(np.ones(tensor.n_params, np.float32).view(np.uint8).data)
        return
    if tensor.type not in tiles:
        tiles[tensor.type] = tile(tensor.type, np.random.default_rng(seed + len(tiles)))
    data, left = tiles[tensor.type], tensor.n_bytes
    while left > 0:
        part = data[: min(left, data.size)]
        yield memoryview(part.data)
        left -= part.size
