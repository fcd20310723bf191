"""Reading MLX models and other safetensors checkpoints as a `Header`.

An MLX model is a folder with config.json and model*.safetensors, as mlx-lm writes and loads it;
plain checkpoints of `transformers` have the same form and are read the same way.
"""

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path, PurePosixPath

from tokcast.predictor import mlx_tables as tables
from tokcast.predictor.errors import InputError
from tokcast.predictor.header import Header, Tensor, Value
from tokcast.predictor.mlx_config import (
    LARGEST_LAYER_COUNT,
    Config,
    architecture,
    language_part,
    layer_count,
    number,
)
from tokcast.predictor.mlx_files import CONFIG, INDEX, read_object, weight_files
from tokcast.predictor.mlx_metadata import metadata
from tokcast.predictor.mlx_names import is_buffer, is_tower
from tokcast.predictor.mlx_packing import join, read_quantization
from tokcast.predictor.mlx_tensors import Shapes, gguf_tensors
from tokcast.predictor.safetensors import (
    MAX_HEADER_BYTES,
    Listing,
    read_safetensors_header,
    tensor_bytes,
)
from tokcast.predictor.text import printable

# mlx-lm runs these with the up-projection of latent attention fused and caches whole heads.
_KEPT_FUSED = ("deepseek_v2", "minicpm3", "plm", "youtu_llm")
MAX_CONFIG_BYTES = 16_000_000


def read_mlx_folder(path: Path) -> Header:
    """Return the header of the checkpoint in a folder, of all its files together.

    Raises InputError, one line, for what is missing or cannot be read.
    """
    present = _file_names(path)
    if CONFIG not in present:
        raise InputError(f"{path}: no {CONFIG}, expected {CONFIG} and model*.safetensors")
    config = read_object(path / CONFIG, MAX_CONFIG_BYTES)
    index = read_object(path / INDEX, MAX_HEADER_BYTES) if INDEX in present else None
    names = weight_files(present, index, str(path))
    tensors: dict[str, tuple[str, tuple[int, ...]]] = {}
    for name in names:
        found = _file_header(path / name)
        twice = tensors.keys() & found.keys()
        if twice:
            raise InputError(
                f"{path / name}: tensor {printable(min(twice))} is in another file of the "
                "folder too; keep one set of weights"
            )
        tensors |= found
    return read_mlx(config, tensors, str(path), n_parts=len(names))


def _file_names(path: Path) -> list[str]:
    try:
        return [entry.name for entry in path.iterdir()]
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror}, expected a folder with {CONFIG} and model*.safetensors"
        ) from None


def _file_header(path: Path) -> dict[str, tuple[str, tuple[int, ...]]]:
    try:
        with path.open("rb") as file:
            return read_safetensors_header(file.read, str(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from None


def read_mlx(config: Config, tensors: Listing, source: str, n_parts: int = 1) -> Header:
    """Return a checkpoint's header under GGUF names and keys.

    `tensors` is {name: (safetensors dtype, row-major shape)} of all shards together. Quantized
    matrices become one tensor with the real number of elements and the bytes of weight, scales
    and biases. Raises InputError for weights packed in an unknown way, or none.
    """
    if not tensors:
        raise InputError(f"{source}: no tensors, expected the weights of a language model")
    part = language_part(config)
    own, ignored = _of_language_model(tensors, is_tied=part.get("tie_word_embeddings") is True)
    if not own:
        raise InputError(f"{source}: no weights of a language model among {len(tensors)} tensors")
    arch, complaint = architecture(config)
    hidden = number(part, tables.WIDTHS)
    quantization = read_quantization(config, hidden)
    stored = join(own, quantization, source)
    shapes = Shapes(arch, _n_layers(part, own), hidden or 0, *_latent_parts(config, part))
    named, unknown = gguf_tensors(stored, shapes)
    arch = _by_content(arch, named)
    values: dict[str, Value] = {
        "general.architecture": arch,
        "general.name": printable(PurePosixPath(source.replace("\\", "/")).name or source),
    }
    values |= metadata(part, arch, shapes.n_layers, named)
    complaints = (complaint, ignored, unknown, quantization.warning, _stored_as_float8(named))
    return Header(
        format="mlx",
        metadata=values,
        tensors=named,
        source=source,
        n_parts=n_parts,
        warnings=tuple(c for c in complaints if c),
    )


def _of_language_model(tensors: Listing, is_tied: bool) -> tuple[Listing, str]:
    """Return the tensors that a text runtime keeps, and a warning or ''."""
    own = {name: part for name, part in tensors.items() if not is_tower(name)}
    n_bytes = sum(tensor_bytes(*part) for name, part in tensors.items() if name not in own)
    kept = {
        name: part
        for name, part in own.items()
        # Some checkpoints hold the head again although the embedding serves as it.
        if not is_buffer(name) and not (is_tied and "lm_head" in name.split("."))
    }
    return kept, f"vision or audio tower ignored, {n_bytes / 1e6:.0f} MB" if n_bytes else ""


def _n_layers(config: Config, tensors: Iterable[str]) -> int:
    told = layer_count(config)
    if told is not None:
        return told
    numbers = (
        int(following)
        for name in tensors
        for part, following in pairwise(name.split("."))
        if part in {"layers", "h", "blocks"} and following.isascii() and following.isdigit()
        if len(following) <= 5
    )
    return min(max(numbers, default=-1) + 1, LARGEST_LAYER_COUNT)


def _latent_parts(config: Config, part: Config) -> tuple[int, int]:
    """Return MLA's key and value lengths if the runtime splits the fused matrix, else zeros."""
    if any(c.get("model_type") in _KEPT_FUSED for c in (config, part)):
        return 0, 0
    nope, value = number(part, ("qk_nope_head_dim",)), number(part, ("v_head_dim",))
    return (nope, value) if nope and value else (0, 0)


def _by_content(arch: str, tensors: Iterable[Tensor]) -> str:
    """Return the architecture where llama.cpp has several for one `model_type`."""
    names = {t.name.partition(".")[2].partition(".")[2] for t in tensors}
    has_experts = "ffn_down_exps.weight" in names
    if arch == "granitehybrid" and "ssm_in.weight" not in names:
        return "granitemoe" if has_experts else "granite"
    if arch == "nemotron_h" and has_experts:
        return "nemotron_h_moe"
    return arch


def _stored_as_float8(tensors: Iterable[Tensor]) -> str:
    n_bytes = sum(t.n_bytes for t in tensors if t.type.startswith("F8"))
    if not n_bytes:
        return ""
    return (
        f"{n_bytes / 1e9:.1f} GB are 8-bit floats; runtimes may turn them into 16 bits on loading"
    )
