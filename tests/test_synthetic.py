"""Files with random weights: right sizes, finite scales, no leftovers."""

import errno
import math
from pathlib import Path

import numpy as np
import pytest
from gguf.quants import dequantize
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcast.measurements import headers, synthetic
from tokcast.measurements.random_blocks import FLOATS, SUPPORTED, tile
from tokcast.measurements.synthetic import NoRoomError, need_bytes, write
from tokcast.measurements.synthetic_mlx import MlxShape, write_folder
from tokcast.measurements.synthetic_shape import Shape, clone, shaped
from tokcast.predictor.catalogue import header as catalogue_header
from tokcast.predictor.errors import InputError
from tokcast.predictor.header import Header, SkippedArray, Tensor
from tokcast.predictor.model import model_spec
from tokcast.predictor.quants import TYPES_BY_NAME
from tokcast.predictor.sources import open_model

DENSE = Shape("Q4_K", 2, 256, 512, 4, 2, n_vocab=256)
EXPERTS = Shape("Q8_0", 2, 64, 32, 4, 2, n_vocab=64, n_expert=8, n_expert_used=2)


@pytest.mark.parametrize("shape", [DENSE, EXPERTS])
def test_a_file_reads_back_as_it_was_asked_for(tmp_path: Path, shape: Shape) -> None:
    path = tmp_path / "m.gguf"
    made = shaped(shape)
    write(path, made)
    read = open_model(str(path))
    assert read.tensors == made.tensors
    assert path.stat().st_size == need_bytes(made)
    assert read.metadata["tokenizer.ggml.model"] == "no_vocab"
    spec = model_spec(read)
    assert spec.confidence == "known"
    assert len(spec.layers) == shape.n_layer
    assert spec.layers[0].n_expert == shape.n_expert
    assert list(tmp_path.iterdir()) == [path]


def test_dense_parameters_by_hand() -> None:
    # Embedding 256*256; per layer q, o 256*256, k, v 256*128, three of 256*512; norms of 256.
    per_layer = 2 * 256 * 256 + 2 * 256 * 128 + 3 * 256 * 512 + 2 * 256
    assert model_spec(shaped(DENSE)).n_params == 256 * 256 + 2 * per_layer + 256


@pytest.mark.parametrize("name", SUPPORTED)
def test_random_blocks_are_finite_and_small(name: str) -> None:
    data = tile(name, np.random.default_rng(0))
    known = TYPES_BY_NAME[name]
    assert data.size % known.n_bytes == 0
    if name in FLOATS:
        return
    from gguf import GGMLQuantizationType

    blocks = data[: 200 * known.n_bytes].reshape(1, -1)
    try:
        values = dequantize(blocks, GGMLQuantizationType[name])
    except NotImplementedError:
        pytest.skip(f"gguf cannot dequantize {name}")
    assert np.isfinite(values).all()
    assert 1e-5 < float(np.abs(values).mean()) < 1.0


def test_norms_are_one(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    write(path, shaped(DENSE))
    from gguf import GGUFReader

    norm = next(t for t in GGUFReader(path).tensors if t.name == "output_norm.weight")
    assert (norm.data == 1.0).all()


def test_a_clone_keeps_shapes_and_keys_but_no_tokenizer() -> None:
    original = catalogue_header("qwen3-0.6b", "Q4_K_M")
    tokens = SkippedArray("string", 10)
    original = Header(
        "gguf",
        {**original.metadata, "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.model": "gpt2"},
        original.tensors,
        "real.gguf",
    )
    made = clone(original)
    assert made.tensors == original.tensors
    assert not any(k.startswith("tokenizer.") for k in made.metadata)
    assert made.metadata["qwen3.vocab_size"] == 151936
    assert model_spec(made).n_params == model_spec(original).n_params


def test_what_cannot_be_cloned_is_said() -> None:
    with pytest.raises(InputError, match="only GGUF models can be cloned"):
        clone(Header("mlx", {}, (), "folder"))
    odd = Tensor("a.weight", (256, 4), "NVFP4", 576)
    with pytest.raises(InputError, match=r"a\.weight is NVFP4"):
        clone(Header("gguf", {}, (odd,), "x.gguf"))


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> object:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(synthetic, "bytes_of", full)
    with pytest.raises(NoRoomError, match="the disk is full; free"):
        write(tmp_path / "m.gguf", shaped(DENSE))
    assert list(tmp_path.iterdir()) == []


def test_room_is_looked_at_first(tmp_path: Path) -> None:
    with pytest.raises(NoRoomError, match=r"GB needed, .* GB free; free some space or set"):
        synthetic.check_room(tmp_path, 10**18)


def test_an_interrupt_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(synthetic, "bytes_of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "m.gguf", shaped(DENSE))
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=30, deadline=None)
@given(
    n_layer=st.integers(1, 4),
    width=st.sampled_from([64, 128]),
    n_ff=st.sampled_from([32, 96]),
    n_expert=st.sampled_from([0, 4]),
    type_name=st.sampled_from(["Q8_0", "Q4_0", "F16"]),
    tied=st.booleans(),
)
def test_headers_pack_and_unpack(
    n_layer: int, width: int, n_ff: int, n_expert: int, type_name: str, tied: bool
) -> None:
    shape = Shape(type_name, n_layer, width, n_ff, 2, 1, 64, 0, n_expert, n_expert and 2, tied)
    made = shaped(shape)
    assert headers.unpack(headers.pack(made)) == made


def test_other_text_is_no_header() -> None:
    with pytest.raises(InputError, match="not a packed header"):
        headers.unpack("nonsense")


@pytest.mark.parametrize("bits", [16, 8, 4, 3])
def test_an_mlx_folder_reads_back(tmp_path: Path, bits: int) -> None:
    write_folder(tmp_path, MlxShape(bits, 2, 64, 128, 2, 1, 64))
    spec = model_spec(open_model(str(tmp_path)))
    per_layer = 2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 128 + 2 * 64
    assert spec.n_params == 64 * 64 + 2 * per_layer + 64
    if bits < 16:
        matrices = 64 * 64 + 2 * (per_layer - 2 * 64)
        norms = 2 * (5 * 64)
        assert spec.n_bytes == math.ceil(matrices * (bits + 0.5) / 8) + norms


def test_mlx_shapes_that_do_not_pack(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="7 bits: expected 16 or one of 2, 3, 4"):
        write_folder(tmp_path, MlxShape(7, 2, 64, 128, 2, 1))
    with pytest.raises(InputError, match="width 100: expected a multiple of 64"):
        write_folder(tmp_path, MlxShape(4, 2, 100, 128, 2, 1))
