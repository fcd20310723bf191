"""The type llama-quantize gives each tensor: the rules of `quantize_rules`, applied."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from tokcast.predictor.architecture import Architecture, Shape
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

# Parts of a tensor's name, in the order they are looked for, and the role they give.
_ROLES = (
    ("attn_qkv.weight", "qkv"),
    ("attn_kv_b.weight", "kv_b"),
    ("attn_v.weight", "v"),
    ("attn_k.weight", "k"),
    ("attn_q.weight", "q"),
    ("attn_output.weight", "o"),
    ("ffn_up", "up"),
    ("ffn_gate", "gate"),
    ("ffn_down", "down"),
)
_VALUE_LIKE = frozenset({"v", "qkv", "kv_b"})
_ALWAYS_F32 = (
    "ffn_gate_inp",
    "ssm_conv1d",
    "shortconv.conv",
    "altup_correct_coef",
    "altup_predict_coef",
    "_norm.weight",
)
_KEPT_16_BIT = ("altup", "laurel", "per_layer_model_proj")
_BLOCK = re.compile(r"blk\.(\d+)\.")


@dataclass(frozen=True, slots=True)
class _Facts:
    """What conditions look at: a position among `count`, and the model."""

    position: int
    count: int
    gqa: int
    experts: int
    imatrix: bool


def _more(facts: _Facts) -> bool:
    eighth = facts.count // 8
    return (
        facts.position < eighth
        or facts.position >= 7 * facts.count // 8
        or (facts.position - eighth) % 3 == 2
    )


_CONDITIONS: dict[str, Callable[[_Facts], bool]] = {
    "first16": lambda f: f.position < f.count // 16,
    "first8": lambda f: f.position < f.count // 8,
    "middle": lambda f: f.count // 8 <= f.position < 7 * f.count // 8,
    "more": _more,
    "top2": lambda f: f.position < 2,
    "top4": lambda f: f.position < 4,
    "gqa4": lambda f: f.gqa >= 4,
    "experts4": lambda f: f.experts >= 4,
    "experts8": lambda f: f.experts == 8,
    "imatrix": lambda f: f.imatrix,
    "!imatrix": lambda f: not f.imatrix,
}


def _choose(cell: str, default: str, facts: _Facts) -> str:
    for choice in cell.split():
        conditions, _, name = choice.rpartition(":")
        if all(_CONDITIONS[c](facts) for c in conditions.split("&") if c):
            return name
    return default


def role(name: str) -> str:
    """Return the part a tensor plays in the rules; "other" for those without any."""
    if name == "output.weight":
        return "output"
    if name in ("token_embd.weight", "per_layer_token_embd.weight"):
        return "embedding"
    return next((role for part, role in _ROLES if part in name), "other")


def unquantized_type(name: str, shape: Shape, plain: str = "F16") -> str:
    """Return the type before quantization: F32 for small things, `plain` for matrices."""
    if len(shape) < 2 or not name.endswith(".weight"):
        return "F32"
    return "F32" if any(part in name for part in _ALWAYS_F32) else plain


def is_quantized(name: str, shape: Shape) -> bool:
    """Say whether llama-quantize changes this tensor at all."""
    kept = any(part in name for part in _KEPT_16_BIT)
    return not kept and unquantized_type(name, shape) != "F32"


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
    named = shapes(arch)
    if file_type in PLAIN:
        plain = FILE_TYPES[file_type][1]
        types = {name: unquantized_type(name, shape, plain) for name, shape in named}
    else:
        types = _Run(arch, file_type, named, imatrix, fused_as_v).types()
    if experts_as is not None:
        types.update((name, experts_as) for name in types if name.endswith("_exps.weight"))
    return {name: types[name] for name, _ in named}


class _Run:
    """One pass over a model's tensors, in the order llama-quantize takes them."""

    def __init__(
        self,
        arch: Architecture,
        file_type: str,
        named: list[tuple[str, Shape]],
        imatrix: bool,
        fused_as_v: bool,
    ) -> None:
        self._file_type = file_type
        self._default = FILE_TYPES[file_type][1]
        self._named = sorted(named, key=lambda pair: (_block_number(pair[0]), pair[0]))
        self._imatrix = imatrix
        self._fused_as_v = fused_as_v
        self._blocks = arch.block_count
        self._experts = arch.experts.count if arch.experts else 0
        self._gqa = _heads_per_kv_head(arch)
        self._tied = arch.tied_embeddings
        self._is_70b = arch.arch in ("llama", "qwen2") and arch.block_count == 80 and self._gqa > 1
        self._row = self._effective_row()
        self._seen: Counter[str] = Counter()
        self._values = sum(role(name) in _VALUE_LIKE for name, _ in named)

    def _effective_row(self) -> dict[str, str | None]:
        row: dict[str, str | None] = dict(RULES.get(self._file_type, {}))
        if self._experts == 8:
            row.update(EIGHT_EXPERTS[self._file_type])
        return row

    def types(self) -> dict[str, str]:
        return {
            name: _fit(self._type(name, shape), shape[0])
            if is_quantized(name, shape)
            else unquantized_type(name, shape)
            for name, shape in self._named
        }

    def _type(self, name: str, shape: Shape) -> str:
        part = role(name)
        if part == "output" or (part == "embedding" and self._tied):
            whole = shape[0] % TYPES_BY_NAME[self._default].block == 0
            return OUTPUT.get(self._file_type, "Q6_K") if whole else "Q8_0"
        if self._file_type == "MXFP4_MOE":
            return "MXFP4" if len(shape) > 2 and shape[2] > 1 else "Q8_0"
        if part == "embedding":
            return EMBEDDING.get(self._file_type, self._default)
        if part in _VALUE_LIKE and self._fused_as_v:
            part = "v"
        facts = self._facts(part, _block_number(name))
        cell = self._row.get("input" if part in ("gate", "up") else part)
        chosen = _choose(cell, self._default, facts) if cell else self._default
        if part == "v" and self._is_70b and self._file_type not in BELOW_3_BITS:
            return "Q5_K" if chosen in ("Q3_K", "Q4_K") else chosen
        return chosen

    def _facts(self, part: str, block: int) -> _Facts:
        """Count this tensor; its position is the block's number in a model with experts.

        Values are always counted, and so are ffn_down tensors below three bits.
        """
        position, count = self._seen[part], self._blocks
        self._seen[part] += 1
        if part == "v":
            count = self._values
        elif self._experts > 1 and not (part == "down" and self._file_type in BELOW_3_BITS):
            position = block
        return _Facts(position, count, self._gqa, self._experts, self._imatrix)


def _block_number(name: str) -> int:
    found = _BLOCK.match(name)
    return int(found[1]) if found else -1


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
