"""The numbers of a Transformer that training cost depends on."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TrainShape:
    """A Transformer of like blocks; of a mixture of experts, `n_used` of `n_experts` a token.

    `width` is the model's hidden size, `inner` a feed-forward's (one expert's). `is_gated`: three
    feed-forward matrices instead of two. `n_positions` counts learned positions, 0 for none.
    `is_causal`: a token attends to those before it only.
    """

    name: str
    n_layers: int
    width: int
    n_heads: int
    n_kv_heads: int
    head_width: int
    inner: int
    n_vocab: int
    n_positions: int = 0
    is_gated: bool = False
    is_tied: bool = True
    is_causal: bool = True
    n_experts: int = 1
    n_used: int = 1

    @property
    def attention_params(self) -> int:
        """Return the parameters of one block's attention matrices."""
        q = self.width * self.n_heads * self.head_width
        kv = self.width * self.n_kv_heads * self.head_width
        return 2 * q + 2 * kv

    @property
    def expert_params(self) -> int:
        """Return the parameters of one feed-forward, or of one expert."""
        return (3 if self.is_gated else 2) * self.width * self.inner

    @property
    def n_params(self) -> int:
        """Return all parameters that are trained: matrices, embeddings, router; norms left out."""
        router = self.width * self.n_experts if self.n_experts > 1 else 0
        block = self.attention_params + self.n_experts * self.expert_params + router
        tables = self.n_vocab * (1 if self.is_tied else 2) + self.n_positions
        return self.n_layers * block + tables * self.width

    @property
    def n_multiplied(self) -> int:
        """Return the parameters that a token is multiplied with: active ones, and the head once.

        A lookup in the embedding is no multiplication; the output head is one.
        """
        router = self.width * self.n_experts if self.n_experts > 1 else 0
        block = self.attention_params + self.n_used * self.expert_params + router
        return self.n_layers * block + self.n_vocab * self.width
