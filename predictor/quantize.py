"""The type llama-quantize gives each tensor: the rules of `quantize_rules`, applied."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from tokcast.predictor.architecture import Architecture, Shape
from tokcast.predictor.quantize_cells import BY_POSITION, Facts, choices_at, choose
from tokcast.predictor.quantize_roles import (
    F32_UNTIL_QUANTIZED,
    VALUE_LIKE,
    part_of,
    role_of,
    split_name,
    treatment_of,
)
from tokcast.predictor.quantize_rules import (
    BELOW_3_BITS,
    EIGHT_EXPERTS,
    EMBEDDING,
    FALLBACK,
    FILE_TYPES,
    OUTPUT,
    PLAIN,
    RULES,
)
from tokcast.predictor.quants import TYPES_BY_NAME
from tokcast.predictor.shapes import shapes


def assign(
    arch: Architecture,
    file_type: str,
    *,
    imatrix: bool = False,
    fused_as_v: bool = True,
    experts_as: str | None = None,
) -> dict[str, str]:
    """Return {tensor name: type} of a file that llama-quantize makes of the 16-bit model.

    `imatrix` applies the rules that change with an importance matrix. `fused_as_v` makes a
    fused attn_qkv and attn_kv_b follow the rules of values, as sources of 2026 do; builds
    through 2025 gave attn_qkv a row of its own and attn_kv_b the default. `experts_as` is a
    type that expert weights keep whatever the file type: gpt-oss files keep MXFP4.
    Raises KeyError for a file type that is not in `FILE_TYPES`.
    """
    named = [(*split_name(name), name, shape) for name, shape in shapes(arch)]
    n_values = sum(role_of(tail) in VALUE_LIKE for _, tail, _, _ in named)
    run = Run(traits_of(arch, n_values), file_type, imatrix, fused_as_v)
    types = dict.fromkeys((name for _, _, name, _ in named), "")
    for block, tail, name, shape in sorted(named):
        chosen = run.type(block, tail, shape)
        types[name] = experts_as if experts_as and tail.endswith("_exps.weight") else chosen
    return types


@dataclass(frozen=True, slots=True)
class Traits:
    """What of a model the rules look at; `gqa` is the query heads a K/V head in block 0."""

    n_blocks: int
    n_values: int
    gqa: int
    experts: int
    tied: bool
    is_70b: bool


def traits_of(arch: Architecture, n_values: int) -> Traits:
    """Return a model's traits from its architecture and the number of its value matrices."""
    gqa = _heads_per_kv_head(arch)
    return Traits(
        n_blocks=arch.block_count,
        n_values=n_values,
        gqa=gqa,
        experts=arch.experts.count if arch.experts else 0,
        tied=arch.tied_embeddings,
        is_70b=arch.arch in ("llama", "qwen2") and arch.block_count == 80 and gqa > 1,
    )


def row_of(file_type: str, experts: int) -> dict[str, str | None]:
    """Return the rules of a file type by part, for a model with so many experts."""
    row: dict[str, str | None] = dict(RULES.get(file_type, {}))
    return row | EIGHT_EXPERTS[file_type] if experts == 8 else row


@cache
def is_by_position(file_type: str, experts: int, part: str) -> bool:
    """Say whether a part's type depends on the tensor's position."""
    cell = row_of(file_type, experts).get(part) or ""
    return any(word in cell for word in BY_POSITION)


class Run:
    """One pass over a model's tensors, in the order llama-quantize takes them."""

    def __init__(self, traits: Traits, file_type: str, imatrix: bool, fused_as_v: bool) -> None:
        self._traits = traits
        self._file_type = file_type
        self._default = FILE_TYPES[file_type][1]
        self._imatrix = imatrix
        self._fused_as_v = fused_as_v
        self._row = row_of(file_type, traits.experts)
        self._seen: Counter[str] = Counter()

    def counts(self, tail: str, shape: Shape, places: Sequence[tuple[int, int]]) -> Counter[str]:
        """Return {type: number} of counted tensors alike but for their places.

        A place is how many tensors of the same part come before, and the block.
        """
        part = part_of(tail)
        if not is_by_position(self._file_type, self._traits.experts, part):
            self._seen[part] = 0
            return Counter({self.type(places[0][1], tail, shape): len(places)})
        cell, t = self._row[part] or "", self._traits
        count = self._position(part, 0, 0)[1]
        positions = [self._position(part, seen, block)[0] for seen, block in places]
        types = choices_at(
            cell,
            count,
            t.gqa if "gqa" in cell else 0,  # what the cell never asks would only multiply keys
            t.experts if "experts" in cell else 0,
            self._imatrix,
            max(count, *positions, 0) + 1,
        )
        found: Counter[str] = Counter()
        for name, n in Counter(map(types.__getitem__, positions)).items():
            found[_fit(self._raised(part, name or self._default), shape[0])] += n
        return found

    def type(self, block: int, tail: str, shape: Shape) -> str:
        """Return the type of the next tensor of a model."""
        treatment = treatment_of(tail) if len(shape) > 1 else "F32"
        if treatment in ("F32", "I32"):
            return treatment
        if self._file_type in PLAIN:
            return "F32" if tail in F32_UNTIL_QUANTIZED else self._default
        return "F16" if treatment == "16 bit" else _fit(self._chosen(block, tail, shape), shape[0])

    def _chosen(self, block: int, tail: str, shape: Shape) -> str:
        part = role_of(tail)
        if part == "output" or (part == "embedding" and self._traits.tied):
            whole = shape[0] % TYPES_BY_NAME[self._default].block == 0
            return OUTPUT.get(self._file_type, "Q6_K") if whole else "Q8_0"
        if self._file_type == "MXFP4_MOE":
            return "MXFP4" if len(shape) > 2 and shape[2] > 1 else "Q8_0"
        if part == "embedding":
            return EMBEDDING.get(self._file_type, self._default)
        return self._by_row("v" if part in VALUE_LIKE and self._fused_as_v else part, block)

    def _by_row(self, part: str, block: int) -> str:
        position, count = self._position(part, self._seen[part], block)
        self._seen[part] += 1
        cell = self._row.get(part)
        facts = Facts(position, count, self._traits.gqa, self._traits.experts, self._imatrix)
        return self._raised(part, choose(cell, self._default, facts) if cell else self._default)

    def _raised(self, part: str, chosen: str) -> str:
        raised = part == "v" and self._traits.is_70b and self._file_type not in BELOW_3_BITS
        return "Q5_K" if raised and chosen in ("Q3_K", "Q4_K") else chosen

    def _position(self, part: str, seen: int, block: int) -> tuple[int, int]:
        """Return a tensor's position and among how many it is.

        In a model with experts that is the block's number; values are always counted, and so
        are ffn_down tensors below three bits.
        """
        traits = self._traits
        if part == "v":
            return seen, traits.n_values
        if traits.experts > 1 and not (part == "down" and self._file_type in BELOW_3_BITS):
            return block, traits.n_blocks
        return seen, traits.n_blocks


def _heads_per_kv_head(arch: Architecture) -> int:
    """Return the ratio in block 0, as the keys of the file state it: 0 without attention there."""
    heads, kv_heads = arch.head_count(), arch.head_count_kv()
    first = heads if isinstance(heads, int) else heads[0]
    first_kv = kv_heads if isinstance(kv_heads, int) else kv_heads[0]
    return first // first_kv if first_kv else 0


def _fit(name: str, columns: int) -> str:
    if columns % TYPES_BY_NAME[name].block == 0:
        return name
    fallback = FALLBACK.get(name, name)
    return fallback if columns % TYPES_BY_NAME[fallback].block == 0 else "F16"
