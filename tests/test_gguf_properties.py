"""Properties over made-up files, with the official gguf package as the other side."""

import io
import math
import tempfile
import tracemalloc
from collections.abc import Mapping
from pathlib import Path

import gguf
import gguf_bytes as g
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcast.predictor.errors import InputError
from tokcast.predictor.gguf import read_gguf, read_gguf_file
from tokcast.predictor.gguf_write import data_offsets, header_bytes, write_gguf
from tokcast.predictor.header import Header, Scalar, Tensor, Value
from tokcast.predictor.quants import TYPES_BY_NAME

# gguf 0.19 does not know Q2_0 and has another size for Q8_1 (see test_quants).
SHARED_TYPES = sorted(set(TYPES_BY_NAME) - {"Q2_0", "Q8_1"})

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
floats = st.floats(width=32, allow_nan=False, allow_infinity=False)
integers = st.one_of(
    st.integers(-10, 10), st.integers(-(2**31), 2**32 - 1), st.integers(-(2**63), 2**64 - 1)
)
small_integers = st.integers(-(2**31), 2**31 - 1)
scalars: st.SearchStrategy[Scalar] = st.one_of(integers, floats, st.booleans(), texts)
values: st.SearchStrategy[Value] = st.one_of(
    scalars,
    *[
        st.lists(kind, max_size=5).map(tuple)
        for kind in (small_integers, floats, st.booleans(), texts)
    ],
)
keys = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(
    lambda key: not key.startswith(("tokenizer.", "general.", "split.", "GGUF."))
)
metadata = st.dictionaries(keys, values, max_size=8)


@st.composite
def tensor_lists(draw: st.DrawFn) -> list[Tensor]:
    names = draw(
        st.lists(st.from_regex(r"[a-z_.0-9]{1,63}", fullmatch=True), unique=True, max_size=5)
    )
    tensors = []
    for name in names:
        kind = TYPES_BY_NAME[draw(st.sampled_from(SHARED_TYPES))]
        rest = draw(st.lists(st.integers(1, 4), max_size=3))
        shape = (kind.block * draw(st.integers(1, 3)), *rest)
        tensors.append(Tensor(name, shape, kind.name, kind.size(shape)))
    return tensors


@settings(deadline=None, max_examples=100)
@given(metadata, tensor_lists(), st.sampled_from([1, 32, 64, 4096]))
def test_what_is_written_is_read(
    metadata: Mapping[str, Value], tensors: list[Tensor], alignment: int
) -> None:
    header, n_data = header_bytes(metadata, tensors, alignment=alignment)
    read = read_gguf(io.BytesIO(header).read, "x", len(header) + n_data)
    expected = dict(metadata)
    if alignment != 32:
        expected["general.alignment"] = alignment
    assert dict(read.metadata) == expected
    assert [type(v) for v in read.metadata.values()] == [type(v) for v in expected.values()]
    assert read.tensors == tuple(tensors)
    assert read.warnings == ()
    if tensors:
        assert read.n_header_bytes == len(header)


@settings(deadline=None, max_examples=30)
@given(metadata, tensor_lists(), st.sampled_from([32, 256]))
def test_the_official_reader_reads_what_is_written(
    metadata: Mapping[str, Value], tensors: list[Tensor], alignment: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.gguf"
        write_gguf(path, metadata, tensors, alignment=alignment)
        reader = gguf.GGUFReader(path)
        fields = {k: f.contents() for k, f in reader.fields.items() if not k.startswith("GGUF.")}
        rows = [
            (t.name, tuple(t.shape.tolist()), t.tensor_type.name, t.n_bytes, t.data_offset)
            for t in reader.tensors
        ]
        size = path.stat().st_size
    if alignment != 32:
        assert fields.pop("general.alignment") == alignment
    assert fields == {k: list(v) if isinstance(v, tuple) else v for k, v in metadata.items()}
    assert [row[:-1] for row in rows] == [(t.name, t.shape, t.type, t.n_bytes) for t in tensors]
    offsets = data_offsets(tensors, alignment)
    assert [row[-1] - reader.data_offset for row in rows] == offsets[:-1]
    assert size == reader.data_offset + offsets[-1]


@settings(deadline=None, max_examples=30)
@given(
    st.dictionaries(
        keys,
        scalars.filter(lambda v: v != "") | st.lists(small_integers, min_size=1, max_size=5),
        max_size=6,
    ),
    st.sampled_from(["<", ">"]),
    st.sampled_from([32, 128]),
)
def test_what_the_official_writer_writes_is_read(
    entries: Mapping[str, Scalar | list[int]], order: str, alignment: int
) -> None:
    endian = gguf.GGUFEndian.LITTLE if order == "<" else gguf.GGUFEndian.BIG
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.gguf"
        writer = gguf.GGUFWriter(path, "llama", endianess=endian)
        writer.add_custom_alignment(alignment)
        for key, value in entries.items():
            add(writer, key, value)
        writer.add_tensor("a", np.zeros((3, 5), np.float32))
        writer.add_tensor(
            "b", np.zeros((2, 34), np.uint8), raw_dtype=gguf.GGMLQuantizationType.Q8_0
        )
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        read = read_gguf_file(path)
    expected = {"general.architecture": "llama", "general.alignment": alignment}
    expected |= {k: tuple(v) if isinstance(v, list) else v for k, v in entries.items()}
    assert dict(read.metadata) == expected
    assert read.tensors == (Tensor("a", (5, 3), "F32", 60), Tensor("b", (32, 2), "Q8_0", 68))
    assert [w.partition(":")[0] for w in read.warnings] == (["big-endian"] if order == ">" else [])


def add(writer: gguf.GGUFWriter, key: str, value: Scalar | list[int]) -> None:
    # The official writer leaves out empty strings, so none is made.
    match value:
        case bool():
            writer.add_bool(key, value)
        case int():
            (writer.add_uint64 if value >= 0 else writer.add_int64)(key, value)
        case float():
            writer.add_float32(key, value)
        case str():
            writer.add_string(key, value)
        case list():
            writer.add_array(key, value)


SMALL = {(v, o): g.small(v, o).bytes() for v in (1, 2, 3) for o in "<>"}
INTERESTING = st.one_of(
    st.binary(max_size=8),
    st.sampled_from([b"\xff" * 8, b"\0" * 8, b"\0" * 7 + b"\x80", b"\0\0\0\x40", b"\x09\0\0\0"]),
)


@settings(deadline=None, max_examples=400)
@given(
    st.sampled_from(sorted(SMALL)),
    st.lists(
        st.tuples(st.integers(0, 900), st.integers(0, 8), INTERESTING), min_size=1, max_size=4
    ),
    st.booleans(),
)
def test_a_damaged_file_is_read_or_refused_in_words(
    kind: tuple[int, str], edits: list[tuple[int, int, bytes]], sized: bool
) -> None:
    data = SMALL[kind]
    for at, n_removed, put in edits:
        data = data[:at] + put + data[at + n_removed :]
    tracemalloc.start()
    try:
        header, message = read_or_message(data, sized)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1 << 20
    assert message.isprintable()
    if header is not None:
        for value in header.metadata.values():
            numbers = value if isinstance(value, tuple) else (value,)
            assert all(math.isfinite(n) for n in numbers if isinstance(n, float))
        assert all(t.n_bytes >= 0 and t.n_params > 0 for t in header.tensors)
        assert all(w.isprintable() for w in header.warnings)


def read_or_message(data: bytes, sized: bool) -> tuple[Header | None, str]:
    try:
        return read_gguf(io.BytesIO(data).read, "x", len(data) if sized else None), ""
    except InputError as error:
        return None, str(error)


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=200), st.booleans())
def test_noise_after_the_magic_is_refused_in_words(noise: bytes, version_3: bool) -> None:
    data = b"GGUF" + (b"\3\0\0\0" if version_3 else b"") + noise
    header, message = read_or_message(data, sized=True)
    assert message.isprintable()
    assert header is None or header.n_header_bytes <= len(data)


def test_arrays_that_were_skipped_cannot_be_written() -> None:
    header = read_gguf(io.BytesIO(g.small().bytes()).read, "x")
    with pytest.raises(
        InputError, match=r"tokenizer\.ggml\.tokens: .* an array skipped on reading"
    ):
        header_bytes(header.metadata, header.tensors)
