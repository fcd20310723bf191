"""Folders of MLX models: shards, indexes and what can be wrong with them."""

import json
import struct

import pytest
from mlx_models import LLAMA, tensors_of

from tokcast.predictor.errors import InputError
from tokcast.predictor.mlx import read_mlx_folder
from tokcast.predictor.safetensors import tensor_bytes


def framed(tensors):
    entries, end = {}, 0
    for name, (dtype, shape) in tensors.items():
        begin, end = end, end + tensor_bytes(dtype, shape)
        entries[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(entries).encode()
    return struct.pack("<Q", len(text)) + text


def write(folder, files, config=LLAMA, index=None):
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    for name, tensors in files.items():
        (folder / name).write_bytes(framed(tensors))
    if index is not None:
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    return folder


A = {"model.embed_tokens.weight": ("BF16", (1000, 256))}
B = {"model.layers.0.self_attn.q_proj.weight": ("BF16", (256, 256))}
FIRST, SECOND = (f"model-0000{i}-of-00002.safetensors" for i in (1, 2))
INDEX = {"weight_map": {next(iter(A)): FIRST, next(iter(B)): SECOND}}


@pytest.mark.parametrize("index", [None, INDEX])
def test_shards_are_read_together(tmp_path, index):
    header = read_mlx_folder(write(tmp_path / "Tiny-4bit", {FIRST: A, SECOND: B}, index=index))
    assert set(tensors_of(header)) == {"token_embd.weight", "blk.0.attn_q.weight"}
    assert (header.format, header.n_parts) == ("mlx", 2)
    assert header.metadata["general.name"] == "Tiny-4bit"
    assert header.metadata["llama.vocab_size"] == 1000


@pytest.mark.parametrize("index", [None, INDEX])
def test_a_missing_shard_is_named(tmp_path, index):
    folder = write(tmp_path, {FIRST: A}, index=index)
    with pytest.raises(InputError, match=f": {SECOND} missing; download"):
        read_mlx_folder(folder)


def test_a_whole_file_counts_more_than_a_foreign_index(tmp_path):
    folder = write(tmp_path, {"model.safetensors": {**A, **B}}, index=INDEX)
    assert read_mlx_folder(folder).n_parts == 1


def test_older_names_of_weights_are_found(tmp_path):
    folder = write(tmp_path, {"weights.00.safetensors": A, "weights.01.safetensors": B})
    assert read_mlx_folder(folder).n_parts == 2


def test_the_same_tensor_twice_is_refused(tmp_path):
    folder = write(tmp_path, {"model.safetensors": A, "model-copy.safetensors": A})
    with pytest.raises(InputError, match=r"embed_tokens\.weight is in another file"):
        read_mlx_folder(folder)


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ({"weight_map": {"a": "../model.safetensors"}}, "names '../model.safetensors', expected"),
        ({"weight_map": {"a": "/etc/passwd"}}, "names '/etc/passwd', expected"),
        ({"weight_map": {"a": 7}}, "names '7', expected"),
        ({"weight_map": ["a"]}, "no weight_map"),
        ({}, "no weight_map"),
        ([], "a JSON list, expected an object"),
    ],
)
def test_an_index_may_name_files_of_its_folder_only(tmp_path, index, message):
    folder = write(tmp_path, {"model.safetensors": A}, index=index)
    with pytest.raises(InputError, match=message):
        read_mlx_folder(folder)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "no weights, expected model"),
        ({"model.gguf": b"GGUF"}, "a GGUF file but no safetensors"),
        ({"pytorch_model.bin": b""}, "PyTorch weights but no safetensors"),
        ({"weights.npz": b""}, "NumPy weights but no safetensors"),
        ({"model.safetensors": b""}, "header ends at byte 0"),
        ({"model.safetensors": b"version https://git-lfs"}, "Git LFS pointer"),
        ({"model.safetensors": struct.pack("<Q", 2) + b"{}"}, "no tensors, expected the weights"),
        ({"config.json": b""}, "expected JSON"),
        ({"config.json": b"[" * 10**5}, "expected JSON .RecursionError"),
        ({"config.json": b"[1]"}, "a JSON list, expected an object"),
        ({"config.json": b" " * 16_000_001}, "larger than 16000000 bytes"),
    ],
)
def test_what_is_missing_or_broken_in_a_folder_is_said(tmp_path, files, message):
    write(tmp_path, {})
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError, match=message) as failure:
        read_mlx_folder(tmp_path)
    assert str(failure.value).startswith(str(tmp_path))
    assert str(failure.value).isprintable()


def test_a_folder_that_is_none_is_said(tmp_path):
    with pytest.raises(InputError, match=r"no config\.json, expected"):
        read_mlx_folder(tmp_path)
    with pytest.raises(InputError, match="No such file or directory, expected a folder"):
        read_mlx_folder(tmp_path / "absent")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="Not a directory, expected a folder"):
        read_mlx_folder(tmp_path / "file")
