"""The table of types against the official one."""

import gguf
import pytest
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

from tokcast.predictor.quants import (
    REMOVED_IDS,
    TYPES_BY_ID,
    TYPES_BY_NAME,
    bits_per_weight,
    mlx_type,
)

# gguf 0.19 counts Q8_1 with two 4-byte scales; ggml's block_q8_1 has two 2-byte ones. Files never
# hold it: it is what activations are turned into.
OTHER_SIZE = {"Q8_1": 36}
# Newer than gguf 0.19.
NEWER = {"Q2_0"}


def test_the_table_is_the_official_one() -> None:
    ours = {t.name: (t.id, t.block, t.n_bytes) for t in TYPES_BY_ID.values()}
    theirs = {t.name: (t.value, *GGML_QUANT_SIZES[t]) for t in GGMLQuantizationType}
    for name, n_bytes in OTHER_SIZE.items():
        assert ours[name][:2] == theirs[name][:2]
        assert ours[name][2] == n_bytes
        del ours[name], theirs[name]
    for name in NEWER - theirs.keys():
        del ours[name]
    assert ours == theirs, f"gguf {gguf.__file__}"


def test_removed_ids_fill_the_gaps() -> None:
    assert set(range(43)) == set(TYPES_BY_ID) | REMOVED_IDS
    assert not set(TYPES_BY_ID) & REMOVED_IDS


def test_sizes_of_tensors() -> None:
    assert TYPES_BY_NAME["Q4_K"].size((4096, 4096)) == 4096 * 4096 // 256 * 144
    assert TYPES_BY_NAME["F32"].size(()) == 4
    # A shape whose elements do not fit in 64 bits.
    assert TYPES_BY_NAME["F16"].size((1 << 40, 1 << 40)) == 1 << 81


@pytest.mark.parametrize(
    ("name", "bits"),
    [("Q4_K", 4.5), ("Q6_K", 6.5625), ("MXFP4", 4.25), ("MLX4G64", 4.5), ("MLX8G32", 9.0)],
)
def test_bits_per_weight(name: str, bits: float) -> None:
    assert bits_per_weight(name) == bits


def test_bits_of_what_is_no_type() -> None:
    assert mlx_type(4, 64) == "MLX4G64"
    with pytest.raises(KeyError, match="Q9_X"):
        bits_per_weight("Q9_X")
