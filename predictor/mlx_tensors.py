"""GGUF's tensors from a checkpoint's: names, dimension order, experts stacked, fused parts split.

llama.cpp's converters (MIT) do the same with the data; here only the table is made. Bytes are
kept: a tensor that is split or joined has the bytes of its parts.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tokcast.predictor.header import Tensor
from tokcast.predictor.mlx_names import Place, place
from tokcast.predictor.mlx_packing import Stored


@dataclass(frozen=True, slots=True)
class Shapes:
    """What is needed to tell the sides of a matrix apart; 0 where it is not known.

    `nope_length` and `value_length` are one head's parts of MLA's fused kv_b matrix, both 0
    where the runtime keeps it fused.
    """

    architecture: str
    n_layers: int
    hidden_size: int
    nope_length: int = 0
    value_length: int = 0


def gguf_tensors(stored: Iterable[Stored], shapes: Shapes) -> tuple[tuple[Tensor, ...], str]:
    """Return the tensors under GGUF names in GGUF order, and a warning or ''."""
    named: list[tuple[Place, Tensor]] = []
    n_unknown = 0
    for part in stored:
        found = place(part.name, shapes.architecture, shapes.n_layers)
        n_unknown += found is None
        found = found or Place(part.name)
        named.append((found, Tensor(found.name, _gguf_order(part), part.type, part.n_bytes)))
    tensors = [t for whole in _stacked(named) for t in _split(_turned(whole, shapes), shapes)]
    unknown = f"{n_unknown} tensors have names that are not known and keep them"
    return tuple(_renamed_shared(tensors)), unknown if n_unknown else ""


def _gguf_order(part: Stored) -> tuple[int, ...]:
    """Return the shape with the row length first; a depthwise convolution is a matrix."""
    shape = part.shape
    if "conv" in part.name and len(shape) == 3:
        shape = (shape[0], shape[1] * shape[2])
    return shape[::-1]


def _stacked(named: Iterable[tuple[Place, Tensor]]) -> Iterator[Tensor]:
    """Yield tensors with those that are members of a stack joined along a last dimension."""
    groups: dict[tuple[str, str, tuple[int, ...], bool], list[Tensor]] = {}
    for found, tensor in named:
        key = (tensor.name, tensor.type, tensor.shape, found.member is not None)
        groups.setdefault(key, []).append(tensor)
    for (_, _, shape, is_member), members in groups.items():
        if is_member:
            n_bytes = sum(t.n_bytes for t in members)
            yield replace(members[0], shape=(*shape, len(members)), n_bytes=n_bytes)
        else:
            yield from members


def _turned(tensor: Tensor, shapes: Shapes) -> Tensor:
    """Return a stack of experts with the side that faces the residual stream where GGUF has it.

    `transformers` keeps some stacks as (experts, in, out) and others as (experts, out, in).
    """
    is_out = "ffn_down_exps.weight" in tensor.name
    if len(tensor.shape) != 3 or not (is_out or "ffn_gate_up_exps.weight" in tensor.name):
        return tensor
    first, second, n = tensor.shape
    facing, other = (second, first) if is_out else (first, second)
    if facing != shapes.hidden_size and other == shapes.hidden_size:
        return replace(tensor, shape=(second, first, n))
    return tensor


def _split(tensor: Tensor, shapes: Shapes) -> Iterator[Tensor]:
    """Yield a fused tensor's parts where llama.cpp has them apart, else the tensor."""
    name = tensor.name
    if "ffn_gate_up_" in name:
        axis = 0 if name.endswith(".bias") else 1
        yield from _halves(tensor, axis)
    elif "ffn_gate_up." in name:
        # Phi-3 and GLM-4 keep gate and up in one matrix that llama.cpp calls ffn_up.
        yield replace(tensor, name=name.replace("ffn_gate_up.", "ffn_up."))
    elif name.endswith("attn_kv_b.weight") and shapes.nope_length:
        yield from _latent(tensor, shapes)
    else:
        yield tensor


def _halves(tensor: Tensor, axis: int) -> Iterator[Tensor]:
    if len(tensor.shape) <= axis or tensor.shape[axis] % 2:
        yield tensor
        return
    shape = list(tensor.shape)
    shape[axis] //= 2
    gate_bytes = tensor.n_bytes // 2
    for part, n_bytes in (("gate", gate_bytes), ("up", tensor.n_bytes - gate_bytes)):
        name = tensor.name.replace("ffn_gate_up_", f"ffn_{part}_")
        yield Tensor(name, tuple(shape), tensor.type, n_bytes)


def _latent(tensor: Tensor, shapes: Shapes) -> Iterator[Tensor]:
    """Yield MLA's kv_b as the two stacks that work on the cached row."""
    nope, value = shapes.nope_length, shapes.value_length
    rank, rows = tensor.shape if len(tensor.shape) == 2 else (0, 0)
    heads = rows // (nope + value)
    if not rank or heads * (nope + value) != rows or not heads:
        yield tensor
        return
    key_bytes = tensor.n_bytes * nope // (nope + value)
    stem = tensor.name.removesuffix("attn_kv_b.weight")
    yield Tensor(f"{stem}attn_k_b.weight", (nope, rank, heads), tensor.type, key_bytes)
    rest = tensor.n_bytes - key_bytes
    yield Tensor(f"{stem}attn_v_b.weight", (rank, value, heads), tensor.type, rest)


def _renamed_shared(tensors: list[Tensor]) -> Iterator[Tensor]:
    """Yield the tensors; what is shared with no experts beside it is a plain feed-forward part."""
    blocks_with_experts = {t.name.split(".")[1] for t in tensors if "_exps." in t.name}
    for tensor in tensors:
        if "_shexp." in tensor.name and tensor.name.split(".")[1] not in blocks_with_experts:
            yield replace(tensor, name=tensor.name.replace("_shexp.", "."))
        else:
            yield tensor
