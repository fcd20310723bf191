"""What the reader returns, for files spelled out by hand."""

import io
import time
from pathlib import Path

import gguf_bytes as g
import pytest
from gguf_bytes import Build

from tokcast.predictor.errors import InputError
from tokcast.predictor.gguf import read_gguf, read_gguf_file
from tokcast.predictor.gguf_cursor import CHUNK_BYTES
from tokcast.predictor.header import Header, SkippedArray, Tensor


def read(data: bytes, *, sized: bool = True) -> Header:
    return read_gguf(io.BytesIO(data).read, "x.gguf", len(data) if sized else None)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("version", [1, 2, 3])
def test_every_version_and_byte_order_says_the_same(version: int, order: str) -> None:
    build = g.small(version, order)
    header = read(build.bytes())
    assert header.metadata == {
        "general.architecture": "llama",
        "llama.block_count": 2,
        "kind.0": 200,
        "kind.1": -5,
        "kind.2": 60000,
        "kind.3": -300,
        "kind.5": -70000,
        "kind.6": 0.5,
        "kind.7": True,
        "kind.10": 1 << 40,
        "kind.11": -(1 << 40),
        "kind.12": 0.1,
        "llama.heads": (8, -1),
        "flags": (False, True),
        "general.tags": ("a", ""),
        "tokenizer.ggml.tokens": SkippedArray("string", 3),
        "tokenizer.ggml.scores": SkippedArray("f32", 3),
    }
    assert header.tensors == (
        Tensor("token_embd.weight", (8, 4), "F32", 128),
        Tensor("output.weight", (256, 2), "Q4_K", 288),
    )
    assert header.n_header_bytes == len(build.bytes()) - build.n_data
    assert (header.format, header.source, header.n_parts) == ("gguf", "x.gguf", 1)
    told = " ".join(header.warnings)
    assert ("big-endian" in told, "version 1" in told) == (order == ">", version == 1)


def test_a_read_that_gives_a_byte_at_a_time_changes_nothing() -> None:
    data = g.small().bytes()
    stream = io.BytesIO(data)
    assert read_gguf(lambda n: stream.read(1), "x.gguf") == read(data, sized=False)


def test_no_more_is_read_than_the_header_reaches_into() -> None:
    build = g.small()
    build.n_data = 10 * CHUNK_BYTES
    stream = io.BytesIO(build.bytes())
    read_gguf(stream.read, "x.gguf")
    assert stream.tell() == CHUNK_BYTES


def test_strings_across_chunks_are_walked_over() -> None:
    lengths = [0, 1, CHUNK_BYTES - 3, CHUNK_BYTES, 3 * CHUNK_BYTES + 5, 7] * 3
    build = Build()
    tokens = b"".join(build.text(bytes(n)) for n in lengths)
    build.entry(b"tokenizer.x", g.ARRAY, build.array(g.STRING, len(lengths), tokens))
    build.u32(b"after", 42)
    for sized in (True, False):
        metadata = read(build.bytes(), sized=sized).metadata
        assert metadata == {"tokenizer.x": SkippedArray("string", len(lengths)), "after": 42}


@pytest.mark.parametrize(
    ("key", "n", "kept"),
    [
        (b"llama.head_count_kv", 65536, True),
        (b"llama.head_count_kv", 65537, False),
        (b"tokenizer.ggml.eot_ids", 1, False),
        (b"llama.nothing", 0, True),
    ],
)
def test_numeric_arrays_are_kept_up_to_a_length(key: bytes, n: int, *, kept: bool) -> None:
    build = Build()
    build.entry(key, g.ARRAY, build.array(g.U32, n, build.pack(f"{n}I", *range(n))))
    value = read(build.bytes()).metadata[key.decode()]
    assert value == (tuple(range(n)) if kept else SkippedArray("u32", n))


def test_texts_are_kept_up_to_64_kib() -> None:
    build = Build().string(b"kept", b"x" * 65536).string(b"skipped", b"x" * 65537).u32(b"after", 1)
    texts = build.text(b"short") + build.text(bytes(65537))
    build.entry(b"one is long", g.ARRAY, build.array(g.STRING, 2, texts))
    build.entry(b"many", g.ARRAY, build.array(g.STRING, 1025, build.text(b"x") * 1025))
    assert read(build.bytes()).metadata == {
        "kept": "x" * 65536,
        "skipped": SkippedArray("byte", 65537),
        "after": 1,
        "one is long": SkippedArray("string", 2),
        "many": SkippedArray("string", 1025),
    }


def test_a_bool_other_than_one_is_true() -> None:
    build = Build().entry(b"x", g.BOOL, b"\xff")
    build.entry(b"y", g.ARRAY, build.array(g.BOOL, 3, b"\0\2\x80"))
    assert read(build.bytes()).metadata == {"x": True, "y": (False, True, True)}


def test_text_that_is_not_utf8_shows_its_bytes() -> None:
    build = Build().string(b"general.name", b"caf\xe9 \xff").string(b"k\xff", b"")
    assert read(build.bytes()).metadata == {"general.name": r"caf\xe9 \xff", r"k\xff": ""}


def test_numbers_that_are_not_finite_are_dropped_by_name() -> None:
    build = Build().u32(b"stays", 1)
    for index, value in enumerate((float("nan"), float("inf"), float("-inf"))):
        build.entry(b"bad.%d" % index, g.F32, build.pack("f", value))
    build.entry(b"list", g.ARRAY, build.array(g.F32, 2, build.pack("2f", 1, float("nan"))))
    build.entry(b"double", 12, build.pack("d", float("nan")))
    header = read(build.bytes())
    assert header.metadata == {"stays": 1}
    assert header.warnings == (
        "ignored, not a finite number: bad.0, bad.1, bad.2, list and 1 more",
    )


def test_what_the_metadata_means_is_not_the_readers_business() -> None:
    build = (
        Build().u32(b"general.architecture", 7).entry(b"llama.block_count", 10, b"\0" * 7 + b"\1")
    )
    build.string(b"llama.attention.head_count", b"many")
    assert read(build.bytes()).metadata == {
        "general.architecture": 7,
        "llama.block_count": 1 << 56,
        "llama.attention.head_count": "many",
    }
    assert read(Build().bytes()).metadata == {}


def test_the_alignment_moves_the_data() -> None:
    build = Build(alignment=4096, n_data=4096 + 4).u32(b"general.alignment", 4096)
    build.tensor(b"a", (1,), 0, 0).tensor(b"b", (1,), 0, 4096)
    header = read(build.bytes())
    assert header.n_header_bytes == 4096
    assert header.warnings == ()


def test_a_file_without_tensors_ends_where_it_ends() -> None:
    build = Build().u32(b"x", 1)
    assert read(build.bytes()).n_header_bytes == len(build.bytes())
    assert read(build.bytes()).warnings == ()


def test_a_scalar_tensor_has_one_element() -> None:
    assert read(Build(n_data=4).tensor(b"s", ()).bytes()).tensors == (Tensor("s", (), "F32", 4),)


def test_missing_weights_are_a_notice() -> None:
    build = Build(n_data=127).tensor(b"a", (32,))
    start = len(build.bytes()) - 127
    assert read(build.bytes()).warnings == (
        f"the file ends at byte {start + 127}, its tensors at byte {start + 128}: "
        "enough to predict with, not to run",
    )
    assert read(build.bytes(), sized=False).warnings == ()


def test_unknown_types_are_named_and_sized_by_their_neighbours() -> None:
    build = Build(n_data=64 + 96 + 32 + 40)
    build.tensor(b"a", (16,), 137, 0)
    build.tensor(b"b", (16,), 4, 64)
    build.tensor(b"c", (8,), 0, 160)
    build.tensor(b"d", (16,), 0xFFFFFFFF, 192)
    header = read(build.bytes())
    assert [(t.type, t.n_bytes) for t in header.tensors] == [
        ("TYPE_137", 64),
        ("TYPE_4", 96),
        ("F32", 32),
        ("TYPE_4294967295", 40),
    ]
    assert header.warnings == (
        "types that ggml removed, tensors sized by their offsets (1): TYPE_4",
        "types unknown to this version, tensors sized by their offsets (2): "
        "TYPE_137, TYPE_4294967295",
    )


def test_the_last_tensor_of_unknown_type_has_no_size_without_the_files() -> None:
    build = Build(n_data=64).tensor(b"a", (16,), 137, 0)
    header = read(build.bytes(), sized=False)
    assert header.tensors[0].n_bytes == 0
    assert "bytes unknown, counted as 0: a" in header.warnings


def test_gaps_and_another_order_are_a_warning() -> None:
    gap = Build(n_data=256).tensor(b"a", (8,), 0, 0).tensor(b"b", (8,), 0, 64)
    swapped = Build(n_data=64).tensor(b"a", (8,), 0, 32).tensor(b"b", (8,), 0, 0)
    for build, names in ((gap, "b"), (swapped, "a, b")):
        assert read(build.bytes()).warnings == (
            f"not right after the tensor before, which llama.cpp refuses: {names}",
        )


def test_a_header_for_a_large_vocabulary_takes_linear_time() -> None:
    """32,768 metadata keys, 250,000 tokens and a chat template of 100 MB."""
    build = Build()
    for index in range(32768):
        build.u32(b"key.%d" % index, index)
    build.entry(
        b"tokenizer.t", g.ARRAY, build.array(g.STRING, 250_000, build.text(b"abc") * 250_000)
    )
    build.string(b"tokenizer.chat_template", bytes(100_000_000))
    data = build.bytes()
    start = time.process_time()
    header = read(data)
    assert time.process_time() - start < 2
    assert header.metadata["key.32767"] == 32767
    assert header.metadata["tokenizer.chat_template"] == SkippedArray("byte", 100_000_000)


def test_a_file_that_cannot_be_opened_is_said_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.gguf: cannot be read: No such file"):
        read_gguf_file(tmp_path / "none.gguf")
    with pytest.raises(InputError, match=r"expected a GGUF file, found a directory$"):
        read_gguf_file(tmp_path)
    with pytest.raises(InputError, match=r"expected a GGUF file, found a device$"):
        read_gguf_file(Path("/dev/zero"))
    with pytest.raises(InputError, match=r"cannot be read: File name too long$"):
        read_gguf_file(tmp_path / ("x" * 300 + "-00001-of-00002.gguf"))
    (tmp_path / "empty.gguf").touch()
    with pytest.raises(InputError, match=r"empty\.gguf: byte 0: .* found an empty file$"):
        read_gguf_file(tmp_path / "empty.gguf")


def test_a_file_is_read_from_disk(tmp_path: Path) -> None:
    path = tmp_path / "x.gguf"
    path.write_bytes(g.small().bytes())
    assert read_gguf_file(path).metadata == read(path.read_bytes()).metadata
    assert read_gguf_file(path).source == str(path)
