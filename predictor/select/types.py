"""File types beside each other on the same models, and the order in which they are taken.

Published losses of two types are mostly of different models, and models differ more than types
do. So a type's loss is worked out from differences within models: least squares of the logarithm
of the loss on one number a model and one a type, over every published perplexity ratio to 16 bits
on the same text. It orders types; what is shown of a file is what was published.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median

from tokcast.predictor.select.quality import published

# Beyond 8-bit blocks a file grows and slows while its answers stay the same for all that
# published perplexities can tell.
MOST_BITS = 8.6
# Types that lose no more than this at the typical model are taken as good ones.
GOOD_LOSS = 1.02
# Of a type without a published figure, so many bits a weight are taken for a better sign.
MANY_BITS = 4.5
# Below it perplexity ratios are noise, and some are below 1.
LEAST_LOSS = 5e-4
# One or two models say too little of a type.
LEAST_MODELS = 3
# What a model's weights were published in, by architecture, where that is a quantized type: files
# of more bits hold the same experts and wider weights around them (OpenAI's gpt-oss, 2025).
PUBLISHED_AS: Mapping[str, str] = {"gpt-oss": "MXFP4_MOE"}
SIXTEEN_BITS = frozenset({"F16", "BF16", "F32", "mlx-bf16"})
RULE = (
    f"the type that loses least on the same published models, up to {MOST_BITS:g} bits a weight,"
    " among those that fit and are fast enough; the most bits where nothing was published"
)

# A model's files with or without an importance matrix are two, as they lose differently.
_Block = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class TypeLoss:
    """A type's perplexity ratio to 16 bits at the typical model, and how many models tell it."""

    ratio: float
    n_models: int


def type_loss(file_type: str) -> TypeLoss | None:
    """Return what a type loses, compared on the same models; None where too few tell."""
    if file_type in SIXTEEN_BITS:
        return TypeLoss(1.0, 0)
    return _losses().get(file_type)


def preference(file_type: str, bits: float, architecture: str = "") -> tuple[float, ...]:
    """Return the place of a type among those of a model that are fast enough: lowest first.

    First the type that the model was published in, if that is a quantized one; then those that
    lose at most `GOOD_LOSS`, those of `MANY_BITS` of which nothing is published, the lossier, and
    the rest; within these up to `MOST_BITS` the least lossy, or the one of most bits.
    """
    known = type_loss(file_type)
    ratio = 0.0 if known is None else known.ratio
    if file_type == PUBLISHED_AS.get(architecture):
        return (0, False, 0.0, -bits)
    return (standing(file_type, bits), bits > MOST_BITS, ratio, -bits)


def standing(file_type: str, bits: float) -> int:
    """Return the class of a type: 0 for a good one to 3 for few bits and nothing published."""
    known = type_loss(file_type)
    if known is None:
        return 1 if bits >= MANY_BITS else 3
    return 0 if known.ratio <= GOOD_LOSS else 2


@cache
def _losses() -> Mapping[str, TypeLoss]:
    cells: dict[tuple[_Block, str], list[float]] = defaultdict(list)
    for row in published():
        if (row.metric, row.reference, row.text) != ("ppl_ratio", "16-bit", "wikitext-2"):
            continue
        if not row.kv_type:
            loss = math.log(max(math.log(row.value), LEAST_LOSS))
            cells[(row.model, row.imatrix == "yes"), row.file_type].append(loss)
    found = {place: median(values) for place, values in cells.items()}
    blocks, types = two_way([(b, t, y) for (b, t), y in found.items()])
    typical = median(blocks.values())
    models: dict[str, set[str]] = defaultdict(set)
    for (model, _), name in found:
        models[name].add(model)
    return {
        name: TypeLoss(math.exp(math.exp(effect + typical)), len(models[name]))
        for name, effect in types.items()
        if len(models[name]) >= LEAST_MODELS
    }


def two_way(
    cells: Sequence[tuple[_Block, str, float]],
) -> tuple[dict[_Block, float], dict[str, float]]:
    """Return the least-squares effects of rows and columns that add up to the values.

    Only effects of one connected set of cells can be compared; the types' mean is 0.
    """
    rows: dict[_Block, list[tuple[str, float]]] = defaultdict(list)
    columns: dict[str, list[tuple[_Block, float]]] = defaultdict(list)
    for b, t, y in cells:
        rows[b].append((t, y))
        columns[t].append((b, y))
    row, column = dict.fromkeys(rows, 0.0), dict.fromkeys(columns, 0.0)
    moved = math.inf
    while moved > 1e-6:
        for b, found in rows.items():
            row[b] = sum(y - column[t] for t, y in found) / len(found)
        moved = 0.0
        for t, others in columns.items():
            value = sum(y - row[b] for b, y in others) / len(others)
            moved, column[t] = max(moved, abs(value - column[t])), value
    mean = sum(column.values()) / len(column)
    shifted = {t: value - mean for t, value in column.items()}
    return {b: value + mean for b, value in row.items()}, shifted
