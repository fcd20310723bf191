"""What a calibration measures: synthetic models that tell the terms of the time apart.

Quantization types at one shape, two sizes, many thin layers against few wide ones, a large
vocabulary, experts, and depths.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tokcast.measurements.record import Task
from tokcast.measurements.synthetic_mlx import MlxShape
from tokcast.measurements.synthetic_shape import Shape, shaped
from tokcast.predictor.header import Header

_SMALL = Shape("Q4_K", 8, 1024, 4096, 16, 4)
_DEEP = Shape("Q4_K", 28, 512, 1536, 8, 4)
# Attention that is wide beside the model: the keys of most current models are 128 long.
_HEADS = Shape("Q4_K", 14, 768, 2048, 16, 8, head_length=128)
_WIDE = Shape("Q4_K", 10, 2048, 5632, 16, 4)
_WIDE_FAST = Shape("Q4_K", 10, 4096, 11008, 32, 8)
_VOCABULARY = Shape("Q8_0", 12, 640, 2048, 4, 1, n_vocab=131072, head_length=256)
_EXPERTS = Shape("Q4_K", 12, 768, 512, 12, 4, n_expert=32, n_expert_used=4)
_MORE_EXPERTS = Shape("Q4_K", 8, 1024, 512, 16, 8, n_expert=32, n_expert_used=8)


@dataclass(frozen=True, slots=True)
class Item:
    """One model and its tests; `key` names it within the plan."""

    key: str
    shape: Shape | MlxShape
    tests: tuple[Task, ...]

    @property
    def header(self) -> Header:
        """Return the header of the model to be made; for MLX one of nearly its size."""
        if isinstance(self.shape, MlxShape):
            return shaped(_alike(self.shape))
        return shaped(self.shape)


_MLX_ALIKE = {4: "Q4_0", 8: "Q8_0", 16: "F16"}


def _alike(s: MlxShape) -> Shape:
    """Return the GGUF shape that moves about as many bytes as an MLX one."""
    return Shape(
        _MLX_ALIKE[s.bits],
        s.n_layer,
        s.width,
        s.n_ff,
        s.n_head,
        s.n_head_kv,
        s.n_vocab,
        n_expert=s.n_expert,
        n_expert_used=s.n_expert_used,
    )


def _tests(depths: Sequence[int], n_prompt: int, n_gen: int = 16) -> tuple[Task, ...]:
    found: list[Task] = []
    for depth in depths:
        found.append(Task("decode", n_gen, depth))
        found.append(Task("prefill", n_prompt if depth == 0 else 128, depth))
    return tuple(found)


def _of_type(type_name: str, shape: Shape = _SMALL) -> Shape:
    return replace(shape, type=type_name)


def _shapes(is_fast: bool) -> Iterator[tuple[Shape, tuple[int, ...], int]]:
    """Yield shapes with their depths and prompt lengths, the most telling ones first."""
    deep, flat = (0, 512, 2048), (0,)
    yield _SMALL, deep, 512
    yield _of_type("Q8_0"), flat, 512
    yield _HEADS, deep, 128
    yield _DEEP, (0, 1024), 128
    yield (_WIDE_FAST if is_fast else _WIDE), (0, 1024), 128
    yield _VOCABULARY, (0, 1024), 128
    yield _EXPERTS, (0, 1024), 512
    yield _MORE_EXPERTS, (0, 512), 128
    yield _of_type("Q6_K"), flat, 512
    yield _of_type("F16", replace(_SMALL, n_layer=6)), flat, 128
    yield _of_type("Q5_0"), flat, 128
    yield _of_type("Q5_K"), flat, 128
    yield _of_type("Q4_0"), flat, 512
    yield _of_type("IQ4_XS"), flat, 128
    yield _of_type("Q8_0", _EXPERTS), flat, 128
    yield _of_type("Q3_K"), flat, 128
    yield _of_type("Q2_K"), flat, 128
    yield _of_type("MXFP4", _EXPERTS), flat, 128
    yield _of_type("BF16", replace(_SMALL, n_layer=6)), flat, 128
    yield _of_type("Q8_0", _DEEP), (0, 2048), 512
    yield _of_type("IQ3_S"), flat, 128
    yield _of_type("Q6_K", _WIDE), flat, 128


def gguf_items(is_fast: bool) -> Iterator[Item]:
    """Yield GGUF models, the most telling ones first; larger ones for fast memory."""
    for shape, depths, n_prompt in _shapes(is_fast):
        key = shape.name.removeprefix("synthetic-")
        yield Item(f"{key}-v{shape.n_vocab // 1000}k", shape, _tests(depths, n_prompt))


def mlx_items() -> Iterator[Item]:
    """Yield MLX models: bits at one shape, a deep, a wide and an expert one."""
    for shape, depths in (
        (MlxShape(4, 8, 2048, 5632, 32, 8), (0, 512, 2048)),
        (MlxShape(8, 8, 2048, 5632, 32, 8), (0,)),
        (MlxShape(4, 28, 1024, 3072, 16, 4), (0, 1024)),
        (MlxShape(4, 10, 4096, 11008, 32, 8), (0,)),
        (MlxShape(4, 12, 1024, 768, 16, 4, n_expert=32, n_expert_used=4), (0, 1024)),
        (MlxShape(16, 6, 2048, 5632, 32, 8), (0,)),
        (MlxShape(8, 12, 1024, 768, 16, 4, n_expert=32, n_expert_used=4), (0,)),
    ):
        yield Item(shape.name.removeprefix("synthetic-"), shape, _tests(depths, 512))
