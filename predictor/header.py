"""What a model file says about itself, whichever format it came from.

GGUF files, MLX folders and catalogue entries all become a `Header`, with GGUF
key names and GGUF tensor names, so that everything after reads one form.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Scalar = str | int | float | bool


@dataclass(frozen=True, slots=True)
class SkippedArray:
    """An array that was walked over and not kept: a tokenizer list."""

    element_type: str
    length: int


Value = Scalar | tuple[Scalar, ...] | SkippedArray


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor's name, shape in GGUF order (fastest dimension first), type name and bytes."""

    name: str
    shape: tuple[int, ...]
    type: str
    n_bytes: int

    @property
    def n_params(self) -> int:
        """Return the number of elements; Python integers cannot overflow."""
        product = 1
        for size in self.shape:
            product *= size
        return product


@dataclass(frozen=True, slots=True)
class Header:
    """Metadata and tensor table of a model.

    `n_header_bytes` is where the tensor data starts (0 for a catalogue entry);
    `n_parts` counts the files of a split model; `warnings` are sentences a user should see.
    """

    format: Literal["gguf", "mlx"]
    metadata: Mapping[str, Value]
    tensors: tuple[Tensor, ...]
    source: str
    n_header_bytes: int = 0
    n_parts: int = 1
    warnings: tuple[str, ...] = ()
