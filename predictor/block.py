"""One block's tensors by their names inside it, and the sizes they tell."""

from collections.abc import Mapping

from tokcast.predictor.header import Tensor

Block = Mapping[str, Tensor]


def rows(block: Block, name: str) -> int:
    """Return how many numbers a matrix puts out, 0 if the block has none of that name."""
    tensor = block.get(name)
    return tensor.shape[1] if tensor is not None and len(tensor.shape) > 1 else 0


def columns(block: Block, name: str) -> int:
    """Return how many numbers a tensor takes in, 0 if the block has none of that name."""
    tensor = block.get(name)
    return tensor.shape[0] if tensor is not None and tensor.shape else 0
