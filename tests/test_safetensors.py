"""Safetensors headers: read within bounds, and every broken one refused in a line."""

import json
import struct
import tracemalloc
from io import BytesIO
from math import prod

import mlx_models
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcast.predictor.errors import InputError
from tokcast.predictor.safetensors import (
    DTYPE_BITS,
    MAX_HEADER_BYTES,
    read_safetensors_header,
    tensor_bytes,
)

FEW = settings(deadline=None, max_examples=150)
TINY = (mlx_models.FOLDER / "tiny-qwen3-moe-mxfp4" / "model.safetensors").read_bytes()


def framed(text):
    return struct.pack("<Q", len(text)) + text


def of(entries):
    return framed(json.dumps(entries).encode())


def one(dtype="F32", shape=(2, 3), offsets=(0, 24), name="a"):
    return of({name: {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}})


def read(data):
    return read_safetensors_header(BytesIO(data).read, "m.safetensors")


def outcome(data):
    try:
        return read(data), ""
    except InputError as error:
        return {}, str(error)


def test_names_types_and_shapes_come_back_and_free_text_does_not():
    data = of(
        {
            "__metadata__": {"format": "mlx"},
            "w": {"dtype": "U32", "shape": [4, 8], "data_offsets": [0, 128]},
            "s": {"dtype": "BF16", "shape": [], "data_offsets": [128, 130]},
        }
    )
    assert read(data) == {"w": ("U32", (4, 8)), "s": ("BF16", ())}


def test_the_header_a_real_writer_pads_with_spaces_is_read():
    assert TINY[8 + struct.unpack("<Q", TINY[:8])[0] - 1 :] in (b" ", b"}")
    assert read(TINY)["model.layers.1.mlp.switch_mlp.up_proj.weight"] == ("U32", (8, 96, 16))


def test_nothing_after_the_header_is_asked_for():
    data = one()
    asked = []
    file = BytesIO(data + b"weights" * 100)

    def counted(size):
        asked.append(size)
        return file.read(size)

    read_safetensors_header(counted, "m")
    assert sum(asked) == len(data)
    assert file.tell() == len(data)


def test_a_source_that_gives_one_byte_at_a_time_is_enough():
    file = BytesIO(one())
    assert read_safetensors_header(lambda _: file.read(1), "m") == {"a": ("F32", (2, 3))}


@pytest.mark.parametrize(
    ("dtype", "shape", "n_bytes"),
    [
        ("F32", (2, 3), 24),
        ("BF16", (), 2),
        ("U8", (5,), 5),
        ("F4", (3,), 2),
        ("F6_E2M3", (4, 8), 24),
        ("I64", (0, 7), 0),
    ],
)
def test_bytes_of_a_tensor_are_its_elements_by_their_bits(dtype, shape, n_bytes):
    assert tensor_bytes(dtype, shape) == n_bytes


def test_a_header_cut_anywhere_says_where_it_ends():
    data = one()
    for length in range(len(data)):
        with pytest.raises(InputError, match=f"ends at byte {length}, expected") as failure:
            read(data[:length])
        assert "\n" not in str(failure.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"GGUF\x03\0\0\0" + bytes(100), "a GGUF file, expected a safetensors header"),
        (b"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer"),
        (b"<!DOCTYPE html><html>", "HTML"),
        (b"\x80\x02}q\x00X\x0a\0\0\0state", "pickle"),
        (b"PK\x03\x04\0\0\x08\x08" + bytes(60), "ZIP archive"),
        (struct.pack("<Q", MAX_HEADER_BYTES + 1), f"first 8 bytes give {MAX_HEADER_BYTES + 1}"),
        (b"\xff" * 8, "first 8 bytes give 18446744073709551615"),
        (bytes(64), "first 8 bytes give 0"),
        (struct.pack("<Q", 1) + b"{", "first 8 bytes give 1"),
        (framed(b"[1]"), "is a list, expected an object of tensors"),
        (framed(b"{'a': 1}"), "not readable JSON"),
        (framed(b'{"\xff": 1}'), "not readable JSON"),
        (framed(b'{"a": 1, "a": 2}'), "a name occurs twice"),
        (framed(b'{"a":' * 10**5), "not readable JSON .RecursionError"),
        (framed(b'{"a":' + b"9" * 5000 + b"}"), "not readable JSON"),
        (framed(b'{"a":[' + b"[]," * 1000 + b"[]]}"), "more lists than tensors can have"),
        (of({"a": [1]}), "'a' is not an object"),
        (of({"": {}}), "expected a printable name"),
        (of({"a\x1b[2Jb": {}}), r"'a\\x1b\[2Jb': expected a printable name"),
        (framed(b'{"\\ud800": {}}'), "expected a printable name"),
        (one(dtype="Q4_0"), "has dtype 'Q4_0', expected one of BOOL, U8"),
        (one(dtype=7), "has dtype '7'"),
        (one(shape=(2, -3)), "shape is .* expected at most 8 whole numbers"),
        (one(shape=(2, True)), "shape is .* expected at most 8 whole numbers"),
        (one(shape=(1,) * 9), "shape is .* expected at most 8 whole numbers"),
        (one(shape=(2**63, 1)), "shape is .* expected at most 8 whole numbers"),
        (one(shape=(2**62, 2**62)), "expected a span of"),
        (one(offsets=(0, 23)), "expected a span of 24 bytes"),
        (one(offsets=(24, 0)), "expected a span of 24 bytes"),
        (one(offsets=(0, 24, 0)), "expected a span of 24 bytes"),
        (of({"a": {"dtype": "F32", "shape": [1]}}), "data_offsets is 'None'"),
    ],
)
def test_what_is_no_header_is_named_in_one_line(data, message):
    with pytest.raises(InputError, match=message) as failure:
        read(data)
    text = str(failure.value)
    assert text.startswith("m.safetensors: ")
    assert text.isprintable()
    assert len(text) < 400


def test_a_length_that_lies_allocates_nothing():
    tracemalloc.start()
    with pytest.raises(InputError, match="ends at byte 11"):
        read(struct.pack("<Q", MAX_HEADER_BYTES) + b"{  ")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


NAMES = st.text(st.characters(categories=("L", "N", "P")), min_size=1, max_size=30)
SHAPES = st.lists(st.integers(0, 2**40), max_size=8).map(tuple)
TABLES = st.dictionaries(
    NAMES.filter(lambda name: name != "__metadata__"),
    st.tuples(st.sampled_from(sorted(DTYPE_BITS)), SHAPES),
    max_size=6,
)


@FEW
@given(TABLES)
def test_every_table_comes_back_as_it_was_written(table):
    entries, end = {}, 0
    for name, (dtype, shape) in table.items():
        begin, end = end, end + -(-prod(shape) * DTYPE_BITS[dtype] // 8)
        if end >= 2**63:
            return
        entries[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}
    assert read(of(entries)) == table


@FEW
@given(
    st.lists(
        st.tuples(st.integers(0, len(TINY)), st.integers(0, 3), st.binary(max_size=4)),
        min_size=1,
        max_size=5,
    )
)
def test_a_damaged_header_is_read_or_refused_and_nothing_else(edits):
    data = bytearray(TINY)
    for position, n_removed, added in edits:
        data[position : position + n_removed] = added
    tensors, complaint = outcome(bytes(data))
    assert complaint.isprintable()
    assert all(dtype in DTYPE_BITS for dtype, _ in tensors.values())


@FEW
@given(st.binary(max_size=80))
def test_random_bytes_are_refused(data):
    assert outcome(data)[1].isprintable()
