"""Malformed files: one line with file, offset and expectation, in little time and memory.

The cases are those that llama.cpp's tests, ollama's and published advisories know.
"""

import io
import struct
import time
import tracemalloc
from collections.abc import Callable

import gguf_bytes as g
import pytest
from gguf_bytes import Build

from tokcast.predictor.errors import InputError
from tokcast.predictor.gguf import read_gguf
from tokcast.predictor.header import Header

MIB = 1 << 20


def refusal(data: bytes, *, sized: bool = True) -> str:
    """Return the error for `data`, which comes in one line and without delay."""
    start = time.process_time()
    message = error(data, sized=sized)
    assert time.process_time() - start < 2
    assert message.isprintable()
    assert message.startswith("x.gguf: byte ")
    return message.removeprefix("x.gguf: ")


def error(data: bytes, *, sized: bool = True) -> str:
    with pytest.raises(InputError, match=r"^x\.gguf: byte \d+: expected .+, found ") as caught:
        read_gguf(io.BytesIO(data).read, "x.gguf", len(data) if sized else None)
    return str(caught.value)


def peak_bytes(data: bytes, *, sized: bool = True) -> int:
    """Return the most memory that refusing `data` takes."""
    tracemalloc.start()
    try:
        error(data, sized=sized)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def read(build: Build) -> Header:
    data = build.bytes()
    return read_gguf(io.BytesIO(data).read, "x.gguf", len(data))


@pytest.mark.parametrize("sized", [True, False])
@pytest.mark.parametrize("version", [1, 3])
def test_cut_at_every_byte(version: int, *, sized: bool) -> None:
    build = g.small(version)
    data = build.bytes()[: -build.n_data]
    for end in range(len(data)):
        message = refusal(data[:end], sized=sized)
        where = int(message.removeprefix("byte ").partition(":")[0])
        assert where <= end
        assert sized or end < 4 or f"the end of the file at byte {end}" in message
    whole = read_gguf(io.BytesIO(data).read, "x.gguf", len(data))
    assert len(whole.tensors) == 2


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "an empty file"),
        (b"GG", "the end of the file at byte 2"),
        (b"GGUF", "the end of the file at byte 4"),
        (b"FUGG\3\0\0\0" + bytes(16), r"a file that begins b'FUGG'"),
        (b"\x1b[2JHello\0", r"a file that begins b'\x1b[2J'"),
        (b"tjgg\1\0\0\0" + bytes(100), "a GGML file (ggjt) from before GGUF"),
    ],
)
def test_what_is_not_gguf(data: bytes, words: str) -> None:
    assert words in refusal(data)


@pytest.mark.parametrize(
    ("raw", "version"),
    [(0, 0), (4, 4), (0x04000000, 4), (0x00010000, 256), (0xFFFFFFFF, 2**32 - 1)],
)
def test_other_versions(raw: int, version: int) -> None:
    data = b"GGUF" + struct.pack("<IQQ", raw, 0, 0)
    expected = f"byte 4: expected GGUF version 1, 2 or 3, found version {version}"
    assert refusal(data) == expected


def test_version_1_with_64_bit_lengths_is_refused_by_name() -> None:
    key = b"general.architecture\0"
    data = b"GGUF" + struct.pack("<III", 1, 0, 1)
    data += struct.pack("<Q", len(key)) + key + struct.pack("<IQ", 8, 6) + b"llama\0"
    assert refusal(data) == (
        "byte 16: expected 32-bit string lengths, as llama.cpp wrote version 1, found 64-bit ones"
    )


@pytest.mark.parametrize("count", [2**64 - 1, 2**63, 2**32, 65537, 40])
@pytest.mark.parametrize("what", ["tensors", "metadata entries"])
def test_counts_that_the_file_has_no_room_for(count: int, what: str) -> None:
    build = Build().u32(b"x", 1)
    if what == "tensors":
        build.n_tensors = count
    else:
        build.n_entries = count
    message = refusal(build.bytes())
    assert f" {what}, found a count of {count}" in message
    if count > 40:
        assert f"at most 65536 {what}" in refusal(build.bytes(), sized=False)
    else:
        assert "the end of the file" in refusal(build.bytes(), sized=False)


@pytest.mark.parametrize("sized", [True, False])
@pytest.mark.parametrize("n", [2**64 - 1, 2**63, 2**62, 2**30, 2**20])
def test_lengths_that_the_file_has_no_room_for(n: int, *, sized: bool) -> None:
    preamble = b"GGUF" + struct.pack("<IQQ", 3, 0, 1)
    length = struct.pack("<Q", n)
    message = refusal(preamble + length + bytes(8), sized=sized)
    assert message == (
        f"byte 24: expected the key of metadata entry 1 of 1: 1 to 65535 bytes, found {n}"
    )
    key = struct.pack("<Q", 1) + b"k"
    cases = {
        "the value of k": struct.pack("<I", 8) + length,
        "the value of k ": struct.pack("<IIQ", 9, 4, n),
        "value of k": struct.pack("<IIQ", 9, 8, n),
        "element 1 of the value of k": struct.pack("<IIQ", 9, 8, 1) + length,
    }
    for words, value in cases.items():
        data = preamble + key + value + b"abcdefgh"
        assert words.strip() in refusal(data, sized=sized)
        assert peak_bytes(data, sized=sized) < MIB


@pytest.mark.parametrize("sized", [True, False])
def test_the_string_that_is_too_long_in_a_list_is_found(*, sized: bool) -> None:
    build = Build()
    texts = build.text(b"abc") * 5 + struct.pack("<Q", 2**63) + b"abc" + bytes(400_000)
    build.entry(b"tokenizer.t", g.ARRAY, build.array(g.STRING, 9, texts))
    start = build.bytes().index(struct.pack("<Q", 2**63))
    message = refusal(build.bytes(), sized=sized)
    assert message.startswith(f"byte {start}: expected a string of the value of tokenizer.t")


def test_arrays_of_arrays() -> None:
    for depth in (2, 64, 1000):
        raw = struct.pack("<IQ", 9, 1) * (depth - 1) + struct.pack("<IQI", 4, 1, 7)
        build = Build().entry(b"deep", g.ARRAY, raw)
        assert refusal(build.bytes()).endswith("found an array of arrays")


@pytest.mark.parametrize("type_id", [13, 14, 0xFFFFFFFF])
def test_value_types_that_do_not_exist(type_id: int) -> None:
    scalar = Build().entry(b"x", type_id, bytes(8))
    array = Build().entry(b"x", g.ARRAY, scalar.array(type_id, 1, bytes(8)))
    for build in (scalar, array):
        assert refusal(build.bytes()).endswith(f"found type {type_id}")


def test_empty_and_repeated_keys() -> None:
    assert "1 to 65535 bytes, found 0" in refusal(Build().u32(b"", 1).bytes())
    assert "found x again" in refusal(Build().u32(b"x", 1).u32(b"y", 1).u32(b"x", 1).bytes())


def test_version_1_key_of_length_0() -> None:
    assert "1 to 65535 bytes, found 0" in refusal(Build(version=1).u32(b"", 1).bytes())
    empty = Build(version=1).string(b"x", b"")
    assert read(empty).metadata == {"x": ""}


def test_terminal_escapes_never_reach_the_message() -> None:
    name = b"\x1b]0;x\x07\n\xe2\x80\xae\xff"
    build = Build().u32(name, 1).u32(name, 1)
    assert r"\x1b]0;x\x07\n\u202e\xff again" in refusal(build.bytes())
    build = Build().tensor(name, (1,)).tensor(name, (1,))
    assert r"\x1b]0;x\x07\n\u202e\xff again" in refusal(build.bytes())
    with pytest.raises(InputError, match=r"^a\\nb: byte 0"):
        read_gguf(io.BytesIO(b"").read, "a\nb")


@pytest.mark.parametrize("alignment", [0, 3, 13, 2**21, 2**31, 2**32 - 1])
def test_alignments_that_are_none(alignment: int) -> None:
    build = Build().u32(b"general.alignment", alignment)
    assert f"power of two up to 1048576, found {alignment}" in refusal(build.bytes())


def test_the_alignment_is_a_u32() -> None:
    for type_id, raw in ((g.I32, bytes(4)), (10, bytes(8)), (g.STRING, bytes(8)), (77, b"")):
        build = Build().entry(b"general.alignment", type_id, raw)
        assert f"to be a u32, found value type {type_id}" in refusal(build.bytes())


@pytest.mark.parametrize("n", [5, 1_000_000, 0xFFFFFFFF])
def test_too_many_dimensions_are_refused_unread(n: int) -> None:
    data = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q", 1) + b"t"
    data += struct.pack("<I", n) + bytes(60)
    assert f"tensor 1 of 1 (t): at most 4 dimensions, found {n}" in refusal(data)


@pytest.mark.parametrize(
    "shape",
    [
        (0,),
        (32, 0),
        (2**64 - 1,),
        (2**63,),
        (2**63 - 1, 2),
        (2**64 - 1, 2),
        (2**42 + 1, 2**21),
        (2**32, 2**32),
        (2**16, 2**16, 2**16, 2**16),
    ],
)
def test_dimensions_without_a_sound_product(shape: tuple[int, ...]) -> None:
    message = refusal(Build(n_data=64).tensor(b"t", shape).bytes())
    assert f"(t): 1 to 2^63 - 1 elements, found dimensions {shape}" in message


def test_bytes_past_any_file() -> None:
    wraps_when_padded = Build().tensor(b"t", (4, 2**30 - 1, 2**30 + 1))
    assert "t (18446744073709551600 bytes) to end by" in refusal(wraps_when_padded.bytes())
    huge = 0x7FFFFFFFFFFFFFC0
    together = Build().tensor(b"a", (huge,), 24, 0).tensor(b"b", (huge,), 24, huge)
    assert f"b ({huge} bytes) to end by" in refusal(together.bytes())


@pytest.mark.parametrize(
    ("type_id", "row", "name", "block"), [(2, 31, "Q4_0", 32), (12, 128, "Q4_K", 256)]
)
def test_rows_that_are_not_whole_blocks(type_id: int, row: int, name: str, block: int) -> None:
    message = refusal(Build(n_data=64).tensor(b"t", (row, 2 * block), type_id).bytes())
    assert f"rows of whole {name} blocks of {block} elements, found rows of {row}" in message


def test_tensor_names() -> None:
    assert "a name of 1 to 63 bytes, found one of 0" in refusal(Build().tensor(b"", (1,)).bytes())
    long = Build().tensor(b"n" * 64, (1,))
    assert "a name of 1 to 63 bytes, found one of 64" in refusal(long.bytes())
    twice = Build().tensor(b"t", (1,)).tensor(b"t", (1,), 0, 32)
    assert "tensor names to differ, found t again" in refusal(twice.bytes())


@pytest.mark.parametrize(
    ("offset", "expected"),
    [
        (2**64 - 1, "at a multiple of 32"),
        (2**64 - 32, "(32 bytes) to end by"),
        (2**63 - 32, "(32 bytes) to end by"),
        (33, "at a multiple of 32"),
        (0, "(32 bytes) to end by 0"),
    ],
)
def test_offsets(offset: int, expected: str) -> None:
    build = Build(n_data=128).tensor(b"a", (8,), 0, 0).tensor(b"b", (8,), 0, offset)
    message = refusal(build.bytes())
    assert expected in message
    assert message.endswith(("found offset 0", f"found offset {offset}"))


def test_tensors_that_overlap() -> None:
    build = Build(n_data=128).tensor(b"a", (16,), 0, 0).tensor(b"b", (8,), 0, 32)
    assert "a (64 bytes) to end by 32, found offset 0" in refusal(build.bytes())
    unknown = Build(n_data=128).tensor(b"a", (16,), 99, 0).tensor(b"b", (8,), 99, 0)
    assert "a (0 bytes) to end by 0, found offset 0" in refusal(unknown.bytes())


def test_a_tensor_past_the_end_is_a_notice() -> None:
    header = read(Build(n_data=32).tensor(b"a", (8,)).tensor(b"b", (2**40,), 0, 32))
    assert header.tensors[1].n_bytes == 2**42
    assert "enough to predict with" in header.warnings[0]


def entries(n: int, key: bytes, type_id: int, raw: Callable[[Build], bytes]) -> Build:
    build = Build()
    for index in range(n):
        build.entry(key % index, type_id, raw(build))
    return build


def rows(n: int) -> Build:
    build = Build()
    for index in range(n):
        build.tensor(b"%063d" % index, (1 << 40, 1, 1, 1), 0, index << 42)
    return build


@pytest.mark.parametrize(
    "build",
    [
        rows(6000),
        entries(9000, b"%d", 10, lambda b: b.pack("Q", 1 << 62)),
        entries(9000, b"%060d", g.STRING, lambda b: b.text(b"v" * 60)),
        entries(30, b"%d", g.ARRAY, lambda b: b.array(10, 4096, b.pack("Q", 1 << 62) * 4096)),
        entries(99, b"%d", g.STRING, lambda b: b.text(b"\xff" * 9999)),
        entries(99, b"%d", g.STRING, lambda b: b.text("\U0001f600x".encode() * 9999)),
        entries(99, b"%d", g.ARRAY, lambda b: b.array(g.STRING, 999, b.text(b"x") * 999)),
    ],
    ids=["tensors", "keys", "texts", "numbers", "not utf-8", "wide", "many texts"],
)
def test_metadata_that_would_fill_memory(build: Build, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sound files, but with more to keep than any model has: the budget counts honestly.

    Run with a 32nd of the budget, to be quick.
    """
    monkeypatch.setattr("tokcast.predictor.gguf_cursor.MAX_KEPT_BYTES", MIB)
    data = build.bytes()
    assert "found more" in refusal(data)
    assert peak_bytes(data) < 2 * MIB


def test_strings_that_would_take_long() -> None:
    build = Build()
    for index in range(5):
        strings = build.array(g.STRING, 1 << 20, bytes(8 << 20))
        build.entry(b"tokenizer.%d" % index, g.ARRAY, strings)
    assert "at most 4194304 strings in all arrays" in refusal(build.bytes())


def test_a_header_without_end() -> None:
    """A stream of no known length that goes on for ever is left after 256 MiB."""
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 2)
    entry = struct.pack("<Q", 11) + b"tokenizer.a" + struct.pack("<IIQ", 9, 0, 1 << 28)
    chunks = iter([head + entry])
    with pytest.raises(InputError, match=r"in the first 268435456 bytes"):
        read_gguf(lambda n: next(chunks, bytes(n)), "x.gguf")
