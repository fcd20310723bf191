"""Models and file types of energy rows by the catalogue's names."""

import re

from tokcast.measurements.energy_rows import EnergyRow
from tokcast.predictor.catalogue import gguf_file_type, known_name
from tokcast.predictor.errors import InputError

# Storage that llama.cpp has no type for, by the one of its types that has nearly its size.
_LIKE = {
    "16": "F16",
    "BFLOAT16": "BF16",
    "FP16": "F16",
    "": "F16",
    "8": "Q8_0",
    "FP8": "Q8_0",
    "INT8": "Q8_0",
    "4": "Q4_0",
    "FP4": "Q4_0",
    "NF4": "Q4_0",
    "NF4_DOUBLE": "Q4_0",
    "GPTQ": "Q4_0",
    "AUTOROUND INT4": "Q4_0",
}
# Models outside the catalogue with the size and family of one in it.
_SAME_SHAPE = {
    "qwen3.6-27b": "qwen3.5-27b",
    "qwen3.8-27b": "qwen3.5-27b",
    "qwen3.6-35b-a3b": "qwen3.5-35b-a3b",
}


def file_type_of(quant: str) -> str | None:
    """Return the catalogue's file type of a source's spelling, or the nearest in size."""
    text = quant.upper().removeprefix("GGUF-").removeprefix("UD-")
    text = _LIKE.get(text, text)
    if match := re.fullmatch(r"(Q\d_K)_X?L", text):
        # A larger mix of the same type: the largest that llama.cpp's own table has.
        text = {"Q2_K": "Q2_K", "Q3_K": "Q3_K_L", "Q6_K": "Q6_K"}.get(match[1], f"{match[1]}_M")
    try:
        return gguf_file_type(text)
    except InputError:
        return None


def model_of(r: EnergyRow) -> str | None:
    """Return the catalogue's model of a row, told by its id or its printed name."""
    if r.model_id:
        return r.model_id
    name = r.model.rpartition("/")[2].split(" ")[0].removesuffix(".gguf")
    for mark, same in _SAME_SHAPE.items():
        if name.lower().startswith(mark):
            return same
    name = re.sub(r"-(UD-)?[A-Z0-9]+_[A-Z0-9_]+$|-bf16$|^google_", "", name)
    return known_name(re.sub(r"-bf16$|^google_", "", name))
