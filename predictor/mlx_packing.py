"""Quantized matrices of MLX and Hugging Face checkpoints, put together from their parts.

MLX (`mlx.core.quantize`, MIT) packs a row's elements into 32-bit words and keeps a scale, and for
affine quantization a bias, for each group of elements: `weight`, `scales`, `biases`. The number of
columns follows from the shapes once the bits are known, and bits x group size follows from the
shapes alone: words x 32 / scales. The config is asked only to tell the two apart.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from tokcast.predictor.errors import InputError
from tokcast.predictor.mlx_tables import names
from tokcast.predictor.quants import mlx_type
from tokcast.predictor.safetensors import Listing, tensor_bytes
from tokcast.predictor.text import listing, printable

_BITS = (4, 8, 6, 5, 3, 2)
_GROUPS = (64, 32, 128, 16)
# Modes with 8-bit scales and no biases allow one pair of bits and group size each.
_SMALL_FLOATS = {(4, 32): "MXFP4", (4, 16): "NVFP4", (8, 32): "MXFP8"}
_PACKED = ("weight", "qweight", "weight_packed")
_COMPANIONS = names("""
    scales biases global_scale qzeros g_idx weight_scale weight_scale_inv weight_scale_2
    weight_global_scale weight_zero_point weight_shape weight_g_idx input_scale
    input_global_scale activation_scale
""")
_TYPE_NAMES = {"BOOL": "I8", "U8": "I8", "U16": "I16", "U32": "I32", "U64": "I64"}
_WHOLE_NUMBERS = frozenset({"U8", "I8", "U32", "I32"})
# Modules whose input is the residual stream, so that a row has `hidden_size` elements.
_FROM_HIDDEN = frozenset(
    {"embed_tokens", "lm_head", "q_proj", "k_proj", "v_proj", "gate_proj", "up_proj"}
)

# Parameters of fused experts are no modules of their own there: `experts.gate_up_proj_blocks`.
_BARE_EXPERTS = re.compile(r"(.*experts\.(?:gate_up|down)_proj)(?:_(blocks|scales|bias))?")
_ENDINGS = {None: "weight", "blocks": "weight", "scales": "scales", "bias": "bias"}

Shape = tuple[int, ...]
Part = tuple[str, Shape]


@dataclass(frozen=True, slots=True)
class Stored:
    """A tensor as it is meant: its checkpoint name, shape in row-major order, type and bytes."""

    name: str
    shape: Shape
    type: str
    n_bytes: int


@dataclass(slots=True)
class Quantization:
    """What the config says about quantized modules, and where the shapes disagree."""

    bits: int | None = None
    group_size: int | None = None
    overrides: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    hidden_size: int | None = None
    disagreeing: list[str] = field(default_factory=list)

    def declared(self, module: str) -> tuple[int, int] | None:
        """Return (bits, group size) of a module as the config has it."""
        if module in self.overrides:
            return self.overrides[module]
        if self.bits is None or self.group_size is None:
            return None
        return self.bits, self.group_size

    @property
    def warning(self) -> str:
        """Return what a user should know about the config, or ''."""
        if not self.disagreeing:
            return ""
        return (
            "config.json gives other bits or group sizes than the shapes of "
            f"{listing(self.disagreeing, 2)}; the shapes are believed"
        )


def read_quantization(config: Mapping[str, object], hidden_size: int | None) -> Quantization:
    """Return what a config says under `quantization` or `quantization_config`."""
    section = config.get("quantization")
    if not isinstance(section, Mapping):
        section = config.get("quantization_config")
    if not isinstance(section, Mapping):
        return Quantization(hidden_size=hidden_size)
    bits, group = _pair(section)
    bits = bits or _compressed_tensors_bits(section)
    overrides = {}
    for module, value in section.items():
        own_bits, own_group = _pair(value) if isinstance(value, Mapping) else (None, None)
        if own_bits or own_group:
            overrides[module] = (own_bits or bits or 4, own_group or group or 64)
    return Quantization(bits, group, overrides, hidden_size)


def _compressed_tensors_bits(section: Mapping[str, object]) -> int | None:
    """Return the bits of the first group of a compressed-tensors config."""
    groups = section.get("config_groups")
    for group in groups.values() if isinstance(groups, Mapping) else ():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        bits = weights.get("num_bits") if isinstance(weights, Mapping) else None
        if type(bits) is int and 0 < bits <= 32:
            return bits
    return None


def _pair(section: Mapping[str, object]) -> tuple[int | None, int | None]:
    bits, group = section.get("bits"), section.get("group_size")
    return (
        bits if type(bits) is int and 0 < bits <= 32 else None,
        group if type(group) is int and 0 < group <= 1 << 20 else None,
    )


def join(tensors: Listing, quantization: Quantization, source: str) -> list[Stored]:
    """Return the tensors with quantized matrices made whole.

    Raises InputError for packed numbers whose scheme is not known: their element count would
    be wrong by a factor.
    """
    modules: dict[str, dict[str, Part]] = {}
    for name, part in tensors.items():
        module, _, last = _normal(name).rpartition(".")
        modules.setdefault(module, {})[last] = part
    stored: list[Stored] = []
    for module, parts in modules.items():
        packed = next((p for p in _PACKED if p in parts and _is_packed(p, parts)), None)
        companions = set(parts) & _COMPANIONS if packed else set()
        if packed:
            own = {name: parts[name] for name in (packed, *sorted(companions))}
            stored.append(_whole(module, packed, own, quantization, source))
        for last, (dtype, shape) in parts.items():
            if last != packed and last not in companions:
                name = f"{module}.{last}" if module else last
                type_name = _TYPE_NAMES.get(dtype, dtype)
                stored.append(Stored(name, shape, type_name, tensor_bytes(dtype, shape)))
    return stored


def _normal(name: str) -> str:
    """Return the name with the endings that stacked experts of `transformers` lack."""
    found = _BARE_EXPERTS.fullmatch(name)
    return f"{found[1]}.{_ENDINGS[found[2]]}" if found else name


def _is_packed(name: str, parts: Mapping[str, Part]) -> bool:
    return name != "weight" or parts[name][0] in _WHOLE_NUMBERS or bool(_COMPANIONS & set(parts))


def _whole(
    module: str, packed: str, parts: Mapping[str, Part], quantization: Quantization, source: str
) -> Stored:
    found = _as_mlx(module, packed, parts, quantization) or _as_other(packed, parts, quantization)
    if found is None:
        given = ", ".join(f"{n} {d} {list(s)}" for n, (d, s) in list(parts.items())[:4])
        raise InputError(
            f"{source}: {printable(module)} is packed in a way that is not known ({given}); "
            "expected MLX weight, scales, biases or plain 16-bit weights"
        )
    type_name, logical = found
    n_bytes = sum(tensor_bytes(d, s) for d, s in parts.values())
    return Stored(f"{module}.weight", logical, type_name, n_bytes)


def _as_mlx(
    module: str, packed: str, parts: Mapping[str, Part], quantization: Quantization
) -> tuple[str, Shape] | None:
    """Return type name and shape of 32-bit words with `scales`, None for anything else."""
    dtype, shape = parts[packed]
    scale_type, scale_shape = parts.get("scales", ("", ()))
    if packed != "weight" or dtype != "U32" or not _is_grouped(shape, scale_shape):
        return None
    words, groups = shape[-1], scale_shape[-1]
    if words * 32 % groups:
        return None
    product = words * 32 // groups
    if scale_type == "U8":
        pair = next((p for p in _SMALL_FLOATS if p[0] * p[1] == product), None)
        return pair and (_SMALL_FLOATS[pair], (*shape[:-1], groups * pair[1]))
    candidates = [(product // g, g) for g in _GROUPS if product % g == 0 and product // g in _BITS]
    chosen = _choose(module, candidates, groups, quantization)
    return chosen and (mlx_type(*chosen), (*shape[:-1], groups * chosen[1]))


def _is_grouped(shape: Shape, scale_shape: Shape) -> bool:
    """Return whether each row of packed numbers has a row of scales."""
    is_alike = bool(shape) and len(shape) == len(scale_shape) and shape[:-1] == scale_shape[:-1]
    return is_alike and scale_shape[-1] > 0


def _choose(
    module: str, candidates: list[tuple[int, int]], groups: int, quantization: Quantization
) -> tuple[int, int] | None:
    declared = quantization.declared(module)
    leaf = module.rpartition(".")[2]
    if leaf in _FROM_HIDDEN and ".experts" not in module and ".switch_" not in module:
        fitting = [c for c in candidates if c[1] * groups == quantization.hidden_size]
        candidates = fitting or candidates
    if not candidates or declared in candidates:
        return declared if candidates else None
    if declared is not None:
        quantization.disagreeing.append(module)
        candidates = [c for c in candidates if c[1] == declared[1]] or candidates
    return candidates[0]


def _as_other(
    packed: str, parts: Mapping[str, Part], quantization: Quantization
) -> tuple[str, Shape] | None:
    """Return type name and logical shape of the packings of other tools."""
    dtype, shape = parts[packed]
    _, scale_shape = parts.get("weight_scale", parts.get("scales", ("", ())))
    if dtype.startswith("F8") or dtype == "I8":
        return dtype, shape
    if dtype in {"F16", "BF16", "F32"}:
        return dtype, shape
    if dtype == "U8" and len(shape) == 4 and shape[:3] == scale_shape:
        return "MXFP4", (*shape[:2], shape[2] * shape[3] * 2)
    if dtype == "U8" and _is_grouped(shape, scale_shape):
        group = shape[-1] * 2 // scale_shape[-1]
        name = _SMALL_FLOATS.get((4, group))
        return (name, (*shape[:-1], shape[-1] * 2)) if name else None
    if dtype == "I32" and len(shape) == 2 and len(scale_shape) == 2:
        return _as_words(packed, shape, scale_shape, quantization)
    return None


def _as_words(
    packed: str, shape: Shape, scale_shape: Shape, quantization: Quantization
) -> tuple[str, Shape] | None:
    """Return type and shape of GPTQ, AWQ (`qweight`) and compressed-tensors (`weight_packed`).

    Scales are (groups, rows) in the former, (rows, groups) in the latter.
    """
    rows, groups = scale_shape if packed == "weight_packed" else scale_shape[::-1]
    bits = quantization.bits or 0
    if not bits * rows * groups or prod(shape) * 32 % (bits * rows):
        return None
    columns = prod(shape) * 32 // (bits * rows)
    if columns % groups:
        return None
    return mlx_type(bits, columns // groups), (rows, columns)
