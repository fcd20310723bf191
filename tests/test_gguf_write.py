"""The writer, byte by byte; that others read it is in test_gguf_properties."""

import struct
from pathlib import Path

import gguf
import numpy as np
import pytest

from tokcast.predictor.errors import InputError
from tokcast.predictor.gguf import read_gguf_file
from tokcast.predictor.gguf_write import data_offsets, header_bytes, write_gguf
from tokcast.predictor.header import Tensor, Value


def test_a_header_worked_by_hand() -> None:
    header, n_data = header_bytes({"a": 7}, [Tensor("t", (32, 2), "Q4_0", 36)])
    rows = (
        b"GGUF" + struct.pack("<IQQ", 3, 1, 1),
        struct.pack("<Q", 1) + b"a" + struct.pack("<II", 4, 7),
        struct.pack("<Q", 1) + b"t" + struct.pack("<IQQIQ", 2, 32, 2, 2, 0),
    )
    raw = b"".join(rows)
    assert header == raw + bytes(-len(raw) % 32)
    assert n_data == 64


@pytest.mark.parametrize(
    ("value", "type_id", "raw"),
    [
        (0, 4, struct.pack("<I", 0)),
        (2**32 - 1, 4, struct.pack("<I", 2**32 - 1)),
        (2**32, 10, struct.pack("<Q", 2**32)),
        (-1, 5, struct.pack("<i", -1)),
        (-(2**31) - 1, 11, struct.pack("<q", -(2**31) - 1)),
        (1.5, 6, struct.pack("<f", 1.5)),
        (1e300, 12, struct.pack("<d", 1e300)),
        (True, 7, b"\1"),
        ("é", 8, struct.pack("<Q", 2) + "é".encode()),
        ((1, -1), 9, struct.pack("<IQii", 5, 2, 1, -1)),
        ((2**31, -1), 9, struct.pack("<IQqq", 11, 2, 2**31, -1)),
        ((True, False), 9, struct.pack("<IQ??", 7, 2, True, False)),
        (("a",), 9, struct.pack("<IQQ", 8, 1, 1) + b"a"),
        ((), 9, struct.pack("<IQ", 4, 0)),
    ],
)
def test_how_values_are_stored(value: Value, type_id: int, raw: bytes) -> None:
    header, _ = header_bytes({"k": value}, [])
    body = header[24 + 8 + 1 :]
    assert body[: 4 + len(raw)] == struct.pack("<I", type_id) + raw
    assert not any(body[4 + len(raw) :])


def test_split_keys_have_the_types_that_llama_cpp_insists_on() -> None:
    header, _ = header_bytes({"split.no": 0, "split.count": 2, "split.tensors.count": 9}, [])
    assert b"split.no" + struct.pack("<IH", 2, 0) in header
    assert b"split.count" + struct.pack("<IH", 2, 2) in header
    assert b"split.tensors.count" + struct.pack("<Ii", 5, 9) in header


def test_what_cannot_be_written() -> None:
    with pytest.raises(InputError, match=r"^k: expected values of one type, found \(1, 'a'\)$"):
        header_bytes({"k": (1, "a")}, [])
    with pytest.raises(InputError, match=r"^t: expected a ggml type, found MLX4G64$"):
        header_bytes({}, [Tensor("t", (64,), "MLX4G64", 36)])


def test_types_without_a_name_keep_their_id() -> None:
    header, _ = header_bytes({}, [Tensor("t", (64,), "TYPE_99", 36)])
    assert struct.pack("<IQIQ", 1, 64, 99, 0) in header


def test_a_full_size_file_takes_no_space(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    tensors = [Tensor("a", (1 << 20, 4096), "Q8_0", (1 << 32) * 34 // 32)]
    write_gguf(path, {"general.architecture": "llama"}, tensors)
    assert path.stat().st_size > 4e9
    assert path.stat().st_blocks * 512 < 1e6
    assert read_gguf_file(path).warnings == ()
    write_gguf(path, {}, tensors, sparse_data=False)
    assert path.stat().st_size == read_gguf_file(path).n_header_bytes


def test_weights_can_be_put_where_they_belong(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    tensors = [Tensor("a", (3,), "F32", 12), Tensor("b", (2, 2), "F32", 16)]
    write_gguf(path, {"general.architecture": "llama"}, tensors, alignment=64)
    start, offsets = read_gguf_file(path).n_header_bytes, data_offsets(tensors, 64)
    assert offsets == [0, 64, 128]
    with path.open("r+b") as file:
        for tensor, offset in zip(tensors, offsets, strict=False):
            file.seek(start + offset)
            file.write(np.arange(tensor.n_params, dtype="<f4").tobytes())
    for tensor in gguf.GGUFReader(path).tensors:
        assert tensor.data.ravel().tolist() == list(range(tensor.n_elements))
