"""From a header to a ModelSpec."""

from collections.abc import Mapping
from dataclasses import dataclass

from tokcast.predictor.errors import InputError
from tokcast.predictor.families import ENCODERS, KNOWN, PROJECTORS
from tokcast.predictor.geometry import Geometry
from tokcast.predictor.header import Header, Value
from tokcast.predictor.keys import Keys, length, shown
from tokcast.predictor.quantize_rules import FILE_TYPES
from tokcast.predictor.spec import Confidence, Layer, ModelSpec, WeightGroup
from tokcast.predictor.weights import Sorted, largest_type, sort_tensors, weight_groups

_FILE_TYPE_NAMES = {number: name for name, (number, _) in FILE_TYPES.items()}
_SHOWN = (
    "general.name",
    "general.basename",
    "general.size_label",
    "general.file_type",
    "general.quantized_by",
    "general.license",
)


@dataclass(frozen=True, slots=True)
class _Parts:
    layers: tuple[Layer, ...]
    groups: tuple[WeightGroup, ...]
    active_params: int
    is_guessed: bool


def model_spec(header: Header) -> ModelSpec:
    """Return what a header says about a model's parameters, bytes and shapes.

    An architecture that is not known is read from tensor names and shapes, with confidence
    "generic". Raises InputError for a file that holds no language model.
    """
    architecture, prefix, complaint = _architecture(header)
    keys = Keys(header.metadata, prefix)
    if complaint:
        keys.warn(complaint)
    tensors = sort_tensors(header.tensors)
    _refuse_other_files(header, architecture, tensors)
    parts = _parts(header, architecture, keys, tensors)
    _warn_of_contents(header, architecture, keys, tensors, parts)
    is_known = architecture in KNOWN and not parts.is_guessed and not complaint
    confidence: Confidence = "known" if is_known else "generic"
    return ModelSpec(
        name=_text(header.metadata, "general.name") or architecture,
        architecture=architecture,
        format=header.format,
        file_type=_file_type(header.metadata, parts.groups),
        n_params=sum(g.n_params for g in parts.groups),
        active_params=parts.active_params,
        n_bytes=sum(g.n_bytes for g in parts.groups),
        groups=parts.groups,
        layers=parts.layers,
        embedding_length=keys.count("embedding_length") or _shape(tensors, 0),
        vocab_size=_vocab_size(header, keys, tensors),
        context_length=keys.count("context_length") or None,
        tied_embeddings=_is_tied(architecture, tensors),
        confidence=confidence,
        source=header.source,
        metadata=shown_metadata(header.metadata, prefix),
        warnings=header.warnings + keys.warnings,
    )


def _parts(header: Header, architecture: str, keys: Keys, tensors: Sorted) -> _Parts:
    mtp = {
        index
        for index, members in tensors.blocks.items()
        if any(name.startswith("nextn.") for name in members)
    }
    own = [index for index in tensors.blocks if index not in mtp]
    geometry = Geometry(architecture, keys, len(own))
    layers = tuple(geometry.layer(index, tensors.blocks[index]) for index in own)
    groups, active = weight_groups(
        tensors,
        experts={x.index: (x.n_expert_used, x.n_expert) for x in layers if x.n_expert},
        mtp_blocks=mtp,
        reusing_blocks={x.index for x in layers if not x.has_kv},
        is_tied=_is_tied(architecture, tensors),
    )
    return _Parts(layers, groups, active, geometry.is_guessed)


def _architecture(header: Header) -> tuple[str, str, str]:
    """Return the architecture, the prefix its keys have, and a complaint or ''."""
    named = header.metadata.get("general.architecture")
    prefixes = [
        k.removesuffix(".block_count") for k in header.metadata if k.endswith(".block_count")
    ]
    found = prefixes[0] if prefixes else ""
    if not isinstance(named, str) or not named:
        if not found and not header.tensors:
            raise InputError(
                f"{header.source}: general.architecture is {shown(named)} and there are no "
                "tensors; expected the header of a language model"
            )
        complaint = f"general.architecture is {shown(named)}, expected a name"
        return found or "unknown", found or "unknown", complaint
    if found and named not in prefixes:
        return named, found, f"keys are under {shown(found)}, the architecture is {shown(named)}"
    return named, named, ""


def _refuse_other_files(header: Header, architecture: str, tensors: Sorted) -> None:
    general_type = header.metadata.get("general.type")
    has_text = bool(tensors.blocks)
    if architecture in PROJECTORS or (general_type == "mmproj" and not has_text):
        raise InputError(
            f"{header.source}: this is a vision or audio projector (mmproj), not a language model; "
            "give the model's own file"
        )
    if general_type == "adapter":
        raise InputError(
            f"{header.source}: this is a LoRA adapter, not a language model; "
            "give the base model's file"
        )


def _warn_of_contents(
    header: Header, architecture: str, keys: Keys, tensors: Sorted, parts: _Parts
) -> None:
    if not header.tensors:
        keys.warn("no tensors: vocabulary only")
        return
    if tensors.n_vision:
        keys.warn(f"{tensors.n_vision} tensors of a vision or audio tower are not counted")
    warn_of_architecture(architecture, keys)
    told, seen = keys.count("block_count"), len(tensors.blocks)
    n_mtp = seen - len(parts.layers)
    if told is not None and told not in {seen, seen - n_mtp}:
        keys.warn(f"block_count is {told}, the file holds {seen} blocks; the tensors are believed")


def warn_of_architecture(architecture: str, keys: Keys) -> None:
    """Keep a sentence about an architecture that this version does not read as a decoder."""
    if architecture in ENCODERS:
        keys.warn(f"{architecture} embeds text and decodes no tokens")
    elif architecture not in KNOWN:
        keys.warn(
            f"architecture {shown(architecture)} is not known to this version; "
            "it was read from tensor names and shapes"
        )


def _is_tied(architecture: str, tensors: Sorted) -> bool:
    names = {t.name for t in tensors.outside}
    return (
        "token_embd.weight" in names
        and "output.weight" not in names
        and architecture not in ENCODERS
    )


def _shape(tensors: Sorted, axis: int) -> int:
    for tensor in tensors.outside:
        if tensor.name == "token_embd.weight" and len(tensor.shape) > axis:
            return tensor.shape[axis]
    return 0


def _vocab_size(header: Header, keys: Keys, tensors: Sorted) -> int:
    tokens = length(header.metadata.get("tokenizer.ggml.tokens"))
    return _shape(tensors, 1) or keys.count("vocab_size") or tokens or 0


def _file_type(metadata: Mapping[str, Value], groups: tuple[WeightGroup, ...]) -> str:
    """Return the label of the file, or the type most of its bytes have."""
    label = metadata.get("general.file_type")
    if isinstance(label, str) and label:
        return label
    if isinstance(label, int) and label in _FILE_TYPE_NAMES:
        return _FILE_TYPE_NAMES[label]
    return largest_type(groups)


def _text(metadata: Mapping[str, Value], key: str) -> str:
    value = metadata.get(key)
    return value if isinstance(value, str) else ""


def shown_metadata(
    metadata: Mapping[str, Value], prefix: str
) -> dict[str, str | int | float | bool]:
    """Return the plain keys of a header that commands show."""
    names = (*_SHOWN, f"{prefix}.context_length", f"{prefix}.block_count")
    found = ((name, metadata.get(name)) for name in names)
    return {name: v for name, v in found if isinstance(v, str | int | float)}
