"""Naming what a file is that should have been a GGUF file."""

import codecs
import struct
import zlib

from tokcast.predictor.text import printable

_MAGICS = (
    (b"lmgg", "a GGML file from before GGUF: convert it, or take a newer upload"),
    (b"fmgg", "a GGML file (ggmf) from before GGUF: convert it, or take a newer upload"),
    (b"tjgg", "a GGML file (ggjt) from before GGUF: convert it, or take a newer upload"),
    (b"algg", "a GGML adapter (ggla) from before GGUF"),
    (b"ggml", "a GGML file from before GGUF: convert it, or take a newer upload"),
    (b"ggjt", "a GGML file (ggjt) from before GGUF: convert it, or take a newer upload"),
    (b"version https://git-lfs", "a Git LFS pointer: `git lfs pull` fetches the file itself"),
    (b"# xet version", "a Xet pointer instead of the file itself"),
    (b"PK\x03\x04", "a ZIP archive: unpack it"),
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\x28\xb5\x2f\xfd", "Zstandard-compressed data: decompress it"),
    (b"\xfd7zXZ\x00", "XZ-compressed data: decompress it"),
    (b"BZh", "bzip2-compressed data: decompress it"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive: unpack it"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"(dp", "a Python pickle, an old PyTorch checkpoint perhaps: convert it to GGUF"),
    (b"(lp", "a Python pickle, an old PyTorch checkpoint perhaps: convert it to GGUF"),
)
_HTML = (b"<!doctype", b"<html", b"<head", b"<body", b"<?xml")


def identify(first_bytes: bytes) -> str | None:
    """Return in words what a file is by its first bytes; None for GGUF and the unrecognized.

    512 bytes are enough. The words never hold a control character, whatever the bytes.
    """
    if first_bytes.startswith(b"GGUF"):
        return None
    if not first_bytes:
        return "an empty file"
    if not any(first_bytes):
        return "zero bytes only: an unfinished download?"
    return _binary(first_bytes) or _text(first_bytes)


def _binary(data: bytes) -> str | None:
    if data.startswith(b"PK\x03\x04") and b"data.pkl" in data:
        return "a PyTorch checkpoint: convert it to GGUF, or give its safetensors folder"
    for magic, what in _MAGICS:
        if data.startswith(magic):
            return what
    if data.startswith(b"\x1f\x8b"):
        inside = "a gzip-compressed GGUF file" if _gunzip(data) == b"GGUF" else "gzip data"
        return f"{inside}: decompress it"
    if data[:1] == b"\x80" and data[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return "a Python pickle, an old PyTorch checkpoint perhaps: convert it to GGUF"
    if data[257:262] == b"ustar":
        return "a tar archive: unpack it"
    if data[8:9] == b"{" and struct.unpack_from("<Q", data)[0] < 1 << 32:
        return "a safetensors file: give the folder with its config.json"
    return None


def _gunzip(data: bytes) -> bytes:
    try:
        return zlib.decompressobj(wbits=31).decompress(data, 4)
    except zlib.error:
        return b""


def _text(data: bytes) -> str | None:
    start = data.removeprefix(b"\xef\xbb\xbf").lstrip()
    if start.lower().startswith(_HTML):
        return "an HTML or XML page: a login or error page instead of the file?"
    try:
        # The last character may be cut in two, which an incremental decoder waits for.
        text = codecs.getincrementaldecoder("utf-8")().decode(start)
    except UnicodeDecodeError:
        return None
    if not text or any(c < " " and c not in "\t\r\n\x1b" for c in text):
        return None
    kind = "JSON" if text[0] in "{[" else "text"
    return f"{kind} that begins '{printable(text, 40)}'"
