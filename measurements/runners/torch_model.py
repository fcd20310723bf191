"""BERT's and Llama's blocks in PyTorch, and how they are spread over processes."""

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from tokcast.measurements.training_runs import TrainPoint
from tokcast.predictor.training.shape import TrainShape


class Attention(nn.Module):
    """Queries, keys and values of all heads; heads that are here only, under tensor parallelism."""

    def __init__(self, shape: TrainShape) -> None:
        super().__init__()
        inner = shape.n_heads * shape.head_width
        self.head_width = shape.head_width
        self.is_causal = shape.is_causal
        self.q = nn.Linear(shape.width, inner, bias=not shape.is_gated)
        self.k = nn.Linear(shape.width, inner, bias=not shape.is_gated)
        self.v = nn.Linear(shape.width, inner, bias=not shape.is_gated)
        self.o = nn.Linear(inner, shape.width, bias=not shape.is_gated)

    def forward(self, x: Any, rotation: Any) -> Any:
        """Return the values mixed over positions."""
        n, length = x.shape[:2]
        heads = (n, length, -1, self.head_width)
        q, k, v = (each(x).view(heads).transpose(1, 2) for each in (self.q, self.k, self.v))
        if rotation is not None:
            q, k = (rotated(each, rotation) for each in (q, k))
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal)
        return self.o(mixed.transpose(1, 2).reshape(n, length, -1))


class FeedForward(nn.Module):
    """Two matrices with GELU between, or three with a SiLU gate."""

    def __init__(self, shape: TrainShape) -> None:
        super().__init__()
        self.is_gated = shape.is_gated
        self.up = nn.Linear(shape.width, shape.inner, bias=not shape.is_gated)
        self.down = nn.Linear(shape.inner, shape.width, bias=not shape.is_gated)
        if shape.is_gated:
            self.gate = nn.Linear(shape.width, shape.inner, bias=False)

    def forward(self, x: Any) -> Any:
        """Return the block's change of each token."""
        if self.is_gated:
            return self.down(functional.silu(self.gate(x)) * self.up(x))
        return self.down(functional.gelu(self.up(x)))


class Block(nn.Module):
    """Attention and a feed-forward, norms before them."""

    def __init__(self, shape: TrainShape) -> None:
        super().__init__()
        norm = nn.RMSNorm if shape.is_gated else nn.LayerNorm
        self.first, self.second = norm(shape.width), norm(shape.width)
        self.attention, self.feed_forward = Attention(shape), FeedForward(shape)

    def forward(self, x: Any, rotation: Any) -> Any:
        """Return the tokens after both parts."""
        x = x + self.attention(self.first(x), rotation)
        return x + self.feed_forward(self.second(x))


class Transformer(nn.Module):
    """Embedding, blocks, head; the loss of predicting every token."""

    def __init__(self, shape: TrainShape, n_length: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(shape.n_vocab, shape.width)
        self.positions = nn.Embedding(shape.n_positions, shape.width) if shape.n_positions else None
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.n_layers))
        self.head = nn.Linear(shape.width, shape.n_vocab, bias=False)
        if shape.is_tied:
            self.head.weight = self.embedding.weight
        self.rotation = None if shape.n_positions else angles(n_length, shape.head_width)

    def forward(self, tokens: Any) -> Any:
        """Return the mean loss of a batch of tokens."""
        x = self.embedding(tokens)
        if self.positions is not None:
            x = x + self.positions(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x, self.rotation)
        logits = self.head(x)
        return functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())


def angles(n_length: int, head_width: int) -> Any:
    """Return the cosines and sines of rotary positions, (length, half a head) each."""
    rates = 10000.0 ** (-torch.arange(0, head_width, 2) / head_width)
    turns = torch.outer(torch.arange(n_length).float(), rates)
    return turns.cos(), turns.sin()


def rotated(x: Any, rotation: Any) -> Any:
    """Return heads turned by their positions' angles."""
    cos, sin = rotation
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, first * sin + second * cos), dim=-1)


def build(point: TrainPoint, mesh: Any) -> Any:
    """Return the point's model, spread over the mesh of processes as its strategy says."""
    torch.manual_seed(0)
    model = Transformer(point.shape, point.n_length)
    if point.strategy == "fsdp":
        from torch.distributed.fsdp import fully_shard

        for block in model.blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
    elif point.strategy == "tp":
        _split(model, mesh)
    return model


def _split(model: Any, mesh: Any) -> None:
    """Split every block as Megatron does: columns first, then rows, one sum after each pair."""
    from torch.distributed.tensor.parallel import (
        ColwiseParallel,
        RowwiseParallel,
        parallelize_module,
    )

    columns = ("attention.q", "attention.k", "attention.v", "feed_forward.up")
    for block in model.blocks:
        plan: dict[str, Any] = {name: ColwiseParallel() for name in columns}
        if block.feed_forward.is_gated:
            plan["feed_forward.gate"] = ColwiseParallel()
        plan |= {"attention.o": RowwiseParallel(), "feed_forward.down": RowwiseParallel()}
        parallelize_module(block, mesh, plan)
