"""What one training step does: operations, bytes moved, bytes held.

Operations are 6 a parameter and token (two forward, four backward; Kaplan et al. 2020,
https://arxiv.org/abs/2001.08361), 8 where the forward pass is done again instead of keeping its
activations, and the products of queries with keys and of scores with values. Bytes held by
activations follow Korthikanti et al. 2022 (https://arxiv.org/abs/2205.05198): 17 widths a token
and block, and five scores for two a head and pair where attention is not fused.
"""

import math
from dataclasses import dataclass

from tokcast.predictor.training.shape import TrainShape

# Adam keeps two moments; with the weights and gradients in 32 bits that is 16 bytes a parameter,
# and mixed precision holds the same beside its 16-bit copies (Rajbhandari et al. 2020).
STATE_BYTES = 16.0
# An update reads weight, gradient and both moments and writes all but the gradient.
UPDATE_BYTES = 28.0
# Activations are written once, read forward, read backward, and their gradients written and read.
_ACTIVATION_PASSES = 5.0
_WIDTHS_A_BLOCK = 17.0
_SCORES_A_PAIR = 2.5
# Logits are written, read and written by the softmax, read for the loss, and their gradients
# written, scaled in place, and read by two products.
_LOGIT_PASSES = 8.0
# A fused attention keeps no scores; one that isn't keeps them all.
BYTES_OF = {"fp32": 4.0, "tf32": 4.0, "fp16": 2.0, "bf16": 2.0}


@dataclass(frozen=True, slots=True)
class Step:
    """One optimiser step: sequences, their length in tokens, and how it is computed.

    `n_micro` is the number of micro-batches whose gradients are summed. `recomputes`: activations
    are computed again in the backward pass. `is_fused`: attention keeps no matrix of scores.
    """

    n_batch: int
    n_length: int
    n_micro: int = 1
    precision: str = "bf16"
    recomputes: bool = False
    is_fused: bool = True

    @property
    def n_tokens(self) -> int:
        """Return the tokens of one step."""
        return self.n_batch * self.n_length

    @property
    def value_bytes(self) -> float:
        """Return the bytes of an activation; TF32 is kept in 32 bits."""
        return BYTES_OF[self.precision]


def flops(shape: TrainShape, step: Step) -> float:
    """Return the operations of one step, C: products with weights, and attention's own."""
    passes = 8.0 if step.recomputes else 6.0
    pairs = step.n_length * (0.5 if shape.is_causal and step.is_fused else 1.0)
    attention = 2.0 * shape.n_layers * shape.n_heads * shape.head_width * pairs
    return passes * step.n_tokens * (shape.n_multiplied + attention)


def activation_values(shape: TrainShape, step: Step) -> float:
    """Return the activations that one token leaves behind in all blocks."""
    inner = shape.n_used * shape.inner * (3 if shape.is_gated else 2)
    # The 17 widths hold two of the usual inner width, 4 of the model's each.
    widths = (_WIDTHS_A_BLOCK - 8.0) * shape.width + inner
    scores = 0.0 if step.is_fused else _SCORES_A_PAIR * shape.n_heads * step.n_length
    return shape.n_layers * (widths + scores)


def traffic_bytes(shape: TrainShape, step: Step) -> float:
    """Return the bytes that one step moves through memory, M.

    Weights are read forward and backward (again where recomputed) and their gradients written
    once a micro-batch; the optimiser passes over its state once a step.
    """
    passes = 5.0 if step.recomputes else 4.0
    weights = passes * step.n_micro * shape.n_params * step.value_bytes
    again = 1.4 if step.recomputes else 1.0
    blocks = _ACTIVATION_PASSES * again * step.n_tokens * activation_values(shape, step)
    logits = _LOGIT_PASSES * step.n_tokens * shape.n_vocab
    return weights + UPDATE_BYTES * shape.n_params + (blocks + logits) * step.value_bytes


def held_bytes(shape: TrainShape, step: Step, n_shards: int, n_split: int) -> float:
    """Return the bytes that one device must hold, its runtime's own left out.

    The state is divided over `n_shards` devices, a micro-batch's activations over `n_split`.
    """
    micro = math.ceil(step.n_batch / step.n_micro) * step.n_length
    if step.recomputes:
        # The input of every block is kept, and one block's activations at a time.
        values = shape.n_layers * shape.width + activation_values(shape, step) / shape.n_layers
    else:
        values = activation_values(shape, step)
    logits = 2.0 * shape.n_vocab
    held = micro * (values + logits) * step.value_bytes
    return STATE_BYTES * shape.n_params / n_shards + held / n_split
