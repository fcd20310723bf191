"""Reading GGUF headers: metadata and tensor table, without weights and without vocabularies.

Versions 1 to 3, little and big endian. Decisions where files and readers disagree: a bool other
than 0 is true and text that is not UTF-8 shows as backslash escapes, as llama.cpp and most
tools have it; a duplicate key, an array of arrays and a value type above 12 are errors, as in
llama.cpp; a number that is infinite or not a number is dropped with a warning, so that nothing
after this can come out as such.
"""

import math
import os
import stat
import struct
from collections.abc import Callable
from pathlib import Path

from tokcast.predictor.errors import InputError
from tokcast.predictor.gguf_cursor import Cursor
from tokcast.predictor.gguf_format import (
    ALIGNMENT_KEY,
    ARRAY,
    NUMBERS,
    STRING,
)
from tokcast.predictor.gguf_split import join_splits, split_names
from tokcast.predictor.gguf_tensors import read_infos, size_tensors
from tokcast.predictor.header import Header, SkippedArray, Value
from tokcast.predictor.identify import identify
from tokcast.predictor.text import listing, printable

MAX_ENTRIES = 1 << 16
MAX_KEY_BYTES = (1 << 16) - 1
MAX_ALIGNMENT = 1 << 20
# What is longer is walked over: only tokenizers and chat templates are.
KEPT_TEXT_BYTES = 1 << 16
KEPT_NUMBERS = 1 << 16
KEPT_TEXTS = 1 << 10


def read_gguf_file(path: Path) -> Header:
    """Return the header of a GGUF file, of all its parts if it is one of `-00001-of-000NN`.

    Raises InputError, one line, for what is not there, not a file, or not sound GGUF.
    """
    try:
        return join_splits([_read_part(part) for part in _parts(path)], str(path))
    except OSError as error:
        raise _unreadable(path, f"cannot be read: {error.strerror}") from None


def _parts(path: Path) -> list[Path]:
    names = split_names(path.name) or [path.name]
    missing = [name for name in names if name != path.name and not path.with_name(name).exists()]
    if missing:
        expected = f"all {len(names)} parts of the model in one folder"
        raise _unreadable(path, f"expected {expected}, found no {listing(missing)}")
    return [path.with_name(name) for name in names]


def _read_part(path: Path) -> Header:
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        found = "a directory" if stat.S_ISDIR(mode) else "a device"
        raise _unreadable(path, f"expected a GGUF file, found {found}")
    with path.open("rb", buffering=0) as file:
        return read_gguf(file.read, str(path), os.fstat(file.fileno()).st_size)


def _unreadable(path: Path, problem: str) -> InputError:
    return InputError(f"{printable(str(path), 1000)}: {problem}")


def read_gguf(read: Callable[[int], bytes], source: str, size: int | None = None) -> Header:
    """Return the header of the one GGUF file that `read(n)` gives from its first byte on.

    `read` returns 1 to `n` bytes, none at the end; it is asked for chunks of 256 KiB and no
    more of them than the header reaches into. `size` is the length of the whole file, where known:
    it catches false lengths early and tells missing weights, which is only a warning. Long texts,
    long arrays and all arrays under `tokenizer.` come back as `SkippedArray`, a long text
    as one of bytes. Raises InputError with byte offset and expectation.
    """
    cursor = Cursor(read, source, size)
    version, n_tensors, n_entries = _read_preamble(cursor)
    metadata, warnings = _read_metadata(cursor, n_entries, version)
    infos = read_infos(cursor, n_tensors, version)
    if infos:
        cursor.skip(-cursor.position % cursor.alignment, "padding before the data")
    tensors, more_warnings = size_tensors(cursor, infos)
    if cursor.order == ">":
        warnings.append("big-endian: llama.cpp loads it on big-endian machines only")
    if version == 1:
        warnings.append("GGUF version 1: llama.cpp no longer loads it")
    return Header(
        format="gguf",
        metadata=metadata,
        tensors=tensors,
        source=source,
        n_header_bytes=cursor.position,
        warnings=(*warnings, *more_warnings),
    )


def _read_preamble(cursor: Cursor) -> tuple[int, int, int]:
    """Return version, number of tensors and number of metadata entries."""
    start = cursor.peek(512)
    if start[:4] != b"GGUF":
        if start and b"GGUF".startswith(start):
            raise cursor.fail("GGUF and a version", f"the end of the file at byte {len(start)}")
        found = identify(start) or f"a file that begins {start[:4]!r}"
        raise cursor.fail("a GGUF file", found)
    cursor.skip(4, "magic")
    (version,) = cursor.unpack("I", "the version")
    if version and not version & 0xFFFF:
        cursor.order = ">"
        version = int.from_bytes(version.to_bytes(4, "little"), "big")
    if version not in (1, 2, 3):
        raise cursor.fail("GGUF version 1, 2 or 3", f"version {version}", 4)
    if version == 1:
        cursor.length_format = "I"
    width = struct.calcsize(cursor.length_format)
    n_tensors = _read_count(cursor, "tensors", width + 1 + 4 + 4 + 8)
    n_entries = _read_count(cursor, "metadata entries", width + 1 + 4 + 1)
    return version, n_tensors, n_entries


def _read_count(cursor: Cursor, what: str, least_bytes: int) -> int:
    """Return a count that the limit and the rest of the file have room for."""
    start = cursor.position
    count = cursor.length(f"the number of {what}")
    most = min(MAX_ENTRIES, max(cursor.room, 0) // least_bytes)
    if count > most:
        raise cursor.fail(f"at most {most} {what}", f"a count of {count}", start)
    return count


def _read_metadata(
    cursor: Cursor, n_entries: int, version: int
) -> tuple[dict[str, Value], list[str]]:
    """Return the metadata, and a warning that names what was dropped."""
    metadata: dict[str, Value] = {}
    for index in range(n_entries):
        start = cursor.position
        key = _read_key(cursor, f"the key of metadata entry {index + 1} of {n_entries}")
        if version == 1 and key.startswith("\0\0\0\0"):
            expected = "32-bit string lengths, as llama.cpp wrote version 1"
            raise cursor.fail(expected, "64-bit ones", start)
        if key in metadata:
            raise cursor.fail("metadata keys to differ", f"{printable(key)} again", start)
        metadata[key] = _read_value(cursor, key)
    dropped = [key for key, value in metadata.items() if not _is_finite(value)]
    for key in dropped:
        del metadata[key]
    return metadata, [f"ignored, not a finite number: {listing(dropped)}"] if dropped else []


def _is_finite(value: Value) -> bool:
    numbers = value if isinstance(value, tuple) else (value,)
    return all(math.isfinite(n) for n in numbers if isinstance(n, float))


def _read_key(cursor: Cursor, what: str) -> str:
    start = cursor.position
    n = cursor.length(f"the length of {what}")
    if not 1 <= n <= MAX_KEY_BYTES:
        raise cursor.fail(f"{what}: 1 to {MAX_KEY_BYTES} bytes", f"{n}", start)
    return cursor.text(n, what)


def _read_value(cursor: Cursor, key: str) -> Value:
    what = f"the value of {printable(key)}"
    start = cursor.position
    (type_id,) = cursor.unpack("I", f"{what}: its type")
    if key == ALIGNMENT_KEY:
        cursor.alignment = _read_alignment(cursor, type_id, start)
        return cursor.alignment
    if type_id in NUMBERS:
        number: int | float | bool = cursor.unpack(NUMBERS[type_id][1], what)[0]
        return number
    if type_id == STRING:
        return _read_text(cursor, what)
    if type_id == ARRAY:
        return _read_array(cursor, what, is_kept=not key.startswith("tokenizer."))
    raise cursor.fail(f"{what}: a type from 0 to 12", f"type {type_id}", start)


def _read_alignment(cursor: Cursor, type_id: int, start: int) -> int:
    if NUMBERS.get(type_id) != ("u32", "I"):
        raise cursor.fail(f"{ALIGNMENT_KEY} to be a u32", f"value type {type_id}", start)
    alignment: int = cursor.unpack("I", ALIGNMENT_KEY)[0]
    if alignment.bit_count() != 1 or alignment > MAX_ALIGNMENT:
        expected = f"{ALIGNMENT_KEY} to be a power of two up to {MAX_ALIGNMENT}"
        raise cursor.fail(expected, f"{alignment}", start)
    return alignment


def _read_text(cursor: Cursor, what: str) -> str | SkippedArray:
    n = cursor.length(f"the length of {what}")
    if n <= KEPT_TEXT_BYTES:
        return cursor.text(n, what)
    cursor.skip(n, what)
    return SkippedArray("byte", n)


def _read_array(cursor: Cursor, what: str, *, is_kept: bool) -> Value:
    start = cursor.position
    (type_id,) = cursor.unpack("I", f"{what}: the type of its elements")
    if type_id == STRING:
        return _read_texts(cursor, what, is_kept=is_kept)
    if type_id not in NUMBERS:
        found = "an array of arrays" if type_id == ARRAY else f"type {type_id}"
        raise cursor.fail(f"{what}: elements of a type from 0 to 12", found, start)
    name, letter = NUMBERS[type_id]
    n = cursor.length(f"{what}: its length")
    if is_kept and n <= KEPT_NUMBERS:
        cursor.keep(40 * n)
        return cursor.unpack(f"{n}{letter}", what)
    cursor.skip(n * struct.calcsize("=" + letter), what)
    return SkippedArray(name, n)


def _read_texts(cursor: Cursor, what: str, *, is_kept: bool) -> Value:
    n = cursor.length(f"{what}: its length")
    if not is_kept or n > KEPT_TEXTS:
        cursor.skip_strings(n, what)
        return SkippedArray("string", n)
    texts = [_read_text(cursor, f"element {index + 1} of {what}") for index in range(n)]
    kept = tuple(text for text in texts if isinstance(text, str))
    return kept if len(kept) == n else SkippedArray("string", n)
