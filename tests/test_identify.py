"""What a file is that is not GGUF."""

import bz2
import gzip
import io
import json
import lzma
import pickle
import struct
import tarfile
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcast.predictor.identify import identify

LFS_POINTER = b"""version https://git-lfs.github.com/spec/v1
oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393
size 12345
"""


def zipped(name: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, b"\x80\x02}q\x00.")
    return stream.getvalue()


def tarred() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("x"))
    return stream.getvalue()


def numpy_array() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.zeros(3))
    return stream.getvalue()


SAFETENSORS = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "an empty file"),
        (bytes(4096), "zero bytes only: an unfinished download?"),
        (b"<!DOCTYPE html><html>", "an HTML or XML page"),
        (b"\xef\xbb\xbf\r\n  <html lang='en'>", "an HTML or XML page"),
        (b"<?xml version='1.0'?><Error><Code>AccessDenied", "an HTML or XML page"),
        (LFS_POINTER, "a Git LFS pointer: `git lfs pull` fetches the file itself"),
        *[(pickle.dumps({"w": 1}, protocol), "a Python pickle") for protocol in (0, 2, 3, 4, 5)],
        (zipped("archive/data.pkl"), "a PyTorch checkpoint"),
        (zipped("model.bin"), "a ZIP archive"),
        (struct.pack("<Q", len(SAFETENSORS)) + SAFETENSORS, "a safetensors file: give the folder"),
        (struct.pack("<I", 0x67676D6C) + bytes(40), "a GGML file from before GGUF"),
        (struct.pack("<II", 0x67676D66, 1), "a GGML file (ggmf) from before GGUF"),
        (struct.pack("<II", 0x67676A74, 3), "a GGML file (ggjt) from before GGUF"),
        (b"ggjt\3\0\0\0", "a GGML file (ggjt) from before GGUF"),
        (gzip.compress(b"GGUF" + bytes(5000)), "a gzip-compressed GGUF file: decompress it"),
        (gzip.compress(b"hello"), "gzip data: decompress it"),
        (b"\x1f\x8b\xff", "gzip data: decompress it"),
        (bz2.compress(b"x"), "bzip2-compressed data"),
        (lzma.compress(b"x"), "XZ-compressed data"),
        (b"\x28\xb5\x2f\xfd\x00", "Zstandard-compressed data"),
        (tarred(), "a tar archive"),
        (numpy_array(), "a NumPy array"),
        (b'{"architectures": ["LlamaForCausalLM"]}', 'JSON that begins \'{"architectures":'),
        (b"  [1, 2]\n", "JSON that begins '[1, 2]"),
        (b"Entry not found", "text that begins 'Entry not found'"),
        ("Zugriff verweigert: größer".encode()[:-3], "text that begins 'Zugriff verweigert: grö"),
    ],
)
def test_it_is_named(data: bytes, words: str) -> None:
    found = identify(data[:512])
    assert found is not None
    assert found.startswith(words)
    assert found.isprintable()


@pytest.mark.parametrize(
    "data", [b"GGUF\3\0\0\0", b"\x7fELF\2\1\1\0", b"\xff\xfe\x00\x01", b"\x80"]
)
def test_it_is_not_known(data: bytes) -> None:
    assert identify(data) is None


def test_terminal_escapes_are_shown_and_not_sent() -> None:
    assert identify(b"\x1b[31mred\nline") == r"text that begins '\x1b[31mred\nline'"


@settings(deadline=None, max_examples=300)
@given(
    st.one_of(
        st.binary(max_size=64), st.text(max_size=64).map(lambda t: t.encode("utf-8", "replace"))
    )
)
def test_any_bytes_get_printable_words_or_none(data: bytes) -> None:
    found = identify(data)
    assert found is None or found.isprintable()
