"""The type mlx-lm's converter gives each tensor, under GGUF names.

mlx-lm quantizes every matrix whose row is a whole number of groups, the embedding
included, and keeps norms, biases and convolutions in 16 bits. A model's class may put
matrices at 8 bits: the one that chooses experts, in Granite those that write to the residual
stream. Some hold the former as a bare array that is never quantized (`mlx_lm/models`, MIT,
0.32.2). It drops MTP blocks, and rope tables are not weights there.
"""

import re
from dataclasses import dataclass, replace

from tokcast.predictor.architecture import Architecture, Shape
from tokcast.predictor.quants import mlx_type
from tokcast.predictor.shapes import shapes

_FILE_TYPE = re.compile(r"mlx-(?:bf16|([234568])bit(?:-g(32|64|128))?)")
_ROUTER = "ffn_gate_inp"
# Parts of names that a model's class puts at 8 bits in groups of 64.
_AT_8_BITS = {
    **dict.fromkeys(
        (
            *("qwen3moe", "qwen3next", "qwen35moe", "gpt-oss", "granitehybrid", "lfm2moe"),
            *("minimax-m2", "minimax-m3", "bailingmoe", "bailingmoe2", "step35", "gemma4"),
            *("jamba", "kimi-linear"),
        ),
        (_ROUTER,),
    ),
    "granite": ("attn_output.", "ffn_down.", "output.weight"),
    "granitemoe": (_ROUTER, "attn_output.", "output.weight"),
}
_ROUTER_16_BIT = frozenset(
    {
        *("deepseek", "deepseek2", "deepseek32", "glm-dsa", "glm4moe", "dots1"),
        *("exaone-moe", "mimo2", "nemotron_h_moe"),
    }
)
_NOT_QUANTIZED = ("_norm.weight", "ssm_conv1d", "shortconv.conv", "altup_c", "altup_predict_coef")


@dataclass(frozen=True, slots=True)
class MlxFileType:
    """Bits and group size of a conversion; `bits` is None for one that keeps BF16."""

    bits: int | None
    group_size: int

    @property
    def name(self) -> str:
        """Return the spelling the catalogue uses, such as `mlx-4bit` or `mlx-4bit-g32`."""
        if self.bits is None:
            return "mlx-bf16"
        suffix = "" if self.group_size == 64 else f"-g{self.group_size}"
        return f"mlx-{self.bits}bit{suffix}"


def parse(text: str) -> MlxFileType | None:
    """Return the file type that `mlx-4bit`, `mlx-8bit-g32` or `mlx-bf16` names, else None."""
    found = _FILE_TYPE.fullmatch(text.lower())
    if found is None:
        return None
    return MlxFileType(int(found[1]) if found[1] else None, int(found[2] or 64))


def without_mtp(arch: Architecture) -> Architecture:
    """Return the architecture without its MTP blocks and rope tables."""
    blocks = arch.block_count - arch.mtp_blocks
    return replace(
        arch,
        block_count=blocks,
        mtp_blocks=0,
        layers=arch.layers[:blocks],
        ffn=arch.ffn[:blocks],
        extra_tensors=tuple(x for x in arch.extra_tensors if not x[0].startswith("rope_")),
    )


def assign(
    arch: Architecture, file_type: MlxFileType, *, experts_as: str | None = None
) -> dict[str, str]:
    """Return {tensor name: type}; `experts_as` is a type that expert weights keep."""
    return {
        name: experts_as
        if experts_as is not None and name.endswith("_exps.weight")
        else type_of(arch.arch, name, shape, file_type)
        for name, shape in shapes(arch)
    }


def type_of(arch: str, name: str, shape: Shape, file_type: MlxFileType) -> str:
    """Return the type of one tensor of an architecture."""
    bits, group = file_type.bits, file_type.group_size
    if bits is None or len(shape) < 2 or not name.endswith(".weight"):
        return "BF16"
    if any(part in name for part in _NOT_QUANTIZED):
        return "BF16"
    if _ROUTER in name and arch in _ROUTER_16_BIT:
        return "BF16"
    if any(part in name for part in _AT_8_BITS.get(arch, ())):
        bits, group = 8, 64
    return mlx_type(bits, group) if shape[0] % group == 0 else "BF16"
