"""From what benchmarks print to names that tokcast knows: file types, models, backends, chips."""

import re
from functools import cache

from tokcast.hosts.match import candidates
from tokcast.predictor.catalogue import entry, header, names
from tokcast.predictor.errors import InputError
from tokcast.predictor.model import model_spec
from tokcast.predictor.quantize_rules import FILE_TYPES

# llama.cpp's words after a type, as in "Q4_K - Medium".
_SIZES = {"small": "_S", "medium": "_M", "large": "_L"}
_PRINTED = re.compile(
    r"(?:all |mostly )?(?P<type>I?Q\d\w*|TQ\d_\d|MXFP4(?:_MOE| MoE)?|BF16|F16|F32)"
    r"(?:\s*-\s*(?P<size>Small|Medium|Large))?",
    re.I,
)
_BACKENDS = (
    ("cuda", "CUDA"),
    ("rocm", "ROCm"),
    ("hip", "ROCm"),
    ("vulkan", "Vulkan"),
    ("metal", "Metal"),
    ("mtl", "Metal"),
    ("mlx", "MLX"),
    ("sycl", "SYCL"),
    ("cpu", "CPU"),
    ("blas", "CPU"),
    ("accelerate", "CPU"),
)
# A parameter count printed with two decimals of a billion is good to half a percent or better.
_SAME_SIZE = 0.006
# Model cards count with or without embeddings, towers and the like.
_PUBLISHED = 0.35


def backend_of(printed: str) -> str:
    """Return the backend's usual name; "BLAS" and a blank are the CPU's."""
    text = printed.lower()
    for mark, name in _BACKENDS:
        if mark in text:
            return name
    return "CPU" if not text else printed


def file_type_of(model: str, file: str) -> str:
    """Return a file type such as Q4_K_M from "qwen3 8B Q4_K - Medium" or a file's name."""
    for text in (file, model):
        found = list(_PRINTED.finditer(text))
        for match in reversed(found):
            name = match["type"].upper().replace(" ", "_")
            size = _SIZES.get((match["size"] or "").lower(), "")
            known = {"MXFP4": "MXFP4_MOE"}.get(name, name + size)
            if known in FILE_TYPES:
                return known
            if f"{known}_M" in FILE_TYPES:
                return f"{known}_M"
    return ""


@cache
def _counted(name: str) -> tuple[str, int]:
    """Return a catalogue model's architecture and its parameters as llama-bench counts."""
    spec = model_spec(header(name, "F16"))
    return spec.architecture, spec.n_params


def _of_size(n_params: float) -> list[str]:
    """Return the catalogue's models of a size; published totals narrow them down first."""
    near = [n for n in names() if abs(entry(n).published_total_params / n_params - 1) < _PUBLISHED]
    return [n for n in near if abs(_counted(n)[1] / n_params - 1) < _SAME_SIZE]


def _squeezed(text: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", text.lower())


def model_of(model: str, file: str, params_b: float | None) -> str:
    """Return a catalogue name for llama-bench's label or a file's name; "" where none is clear.

    The label's first word is the architecture. With a parameter count only models of that size
    are looked at; among several, the one the file's name spells.
    """
    stem = re.sub(r"(\.gguf|-\d{5}-of-\d{5})+$", "", file.replace("\\", "/").rpartition("/")[2])
    stem = re.sub(r"[-_.](ud-)?(i?q\d\w*|mxfp4\w*|bf16|f16|f32)$", "", stem, flags=re.I)
    if params_b is None:
        return _named(stem) or _named(_PRINTED.sub("", model).strip(" -"))
    architecture = model.split()[0].lower() if model.split() else ""
    fitting = _of_size(params_b * 1e9)
    alike = [n for n in fitting if _counted(n)[0] == architecture] or fitting
    spelled = [n for n in alike if _squeezed(n) in _squeezed(stem)]
    if spelled:
        return max(spelled, key=len)
    return alike[0] if len(alike) == 1 else ""


def _named(text: str) -> str:
    if not text:
        return ""
    try:
        return entry(text).name
    except InputError:
        return ""


def chip_of(printed: str) -> str:
    """Return a chip's canonical name from what a driver prints; "" where it is not clear."""
    text = re.sub(r"\(RADV[^)]*\)|\(TM\)|\(R\)|\bCPU @.*|\d+-Core Processor", " ", printed)
    text = text.split(",")[0].strip()
    if not text:
        return ""
    found = candidates(text)
    return found[0].name if len(found) == 1 else ""
