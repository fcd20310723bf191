"""Sequential reading of a GGUF header from any `read(n)`, within bounds.

No length found in a file is ever allocated: what is kept is small, the rest is walked over
chunk by chunk. The limits are several times what the largest known header needs (16 MB,
0.8 million strings), so that a hostile one ends in an error within two seconds.
"""

import struct
from collections.abc import Callable
from typing import Any

from tokcast.predictor.errors import InputError
from tokcast.predictor.gguf_format import DEFAULT_ALIGNMENT
from tokcast.predictor.text import printable

CHUNK_BYTES = 1 << 18
MAX_HEADER_BYTES = 1 << 28
MAX_KEPT_BYTES = 1 << 25
MAX_STRINGS = 1 << 22


class Cursor:
    """A position in a stream; every read says what it is for, which an error repeats.

    `order` is `<` or `>`, `length_format` is `Q`, or `I` in version 1; `alignment` is that of the
    data. They have the usual values until the caller reads others and sets them.
    """

    __slots__ = (
        "_at",
        "_base",
        "_buffer",
        "_kept",
        "_read",
        "_strings",
        "alignment",
        "length_format",
        "order",
        "size",
        "source",
    )

    def __init__(self, read: Callable[[int], bytes], source: str, size: int | None) -> None:
        self._read = read
        self.source = source
        self.size = size
        self.order = "<"
        self.length_format = "Q"
        self.alignment = DEFAULT_ALIGNMENT
        self._buffer = b""
        self._base = 0
        self._at = 0
        self._kept = 0
        self._strings = 0

    @property
    def position(self) -> int:
        """Return the offset of the next byte."""
        return self._base + self._at

    @property
    def room(self) -> int:
        """Return how many more bytes a header can have here."""
        end = MAX_HEADER_BYTES if self.size is None else min(self.size, MAX_HEADER_BYTES)
        return end - self.position

    def fail(self, expected: str, found: str, at: int | None = None) -> InputError:
        """Return the error to raise, at byte `at` or else here."""
        where = self.position if at is None else at
        source = printable(self.source, 1000)
        return InputError(f"{source}: byte {where}: expected {expected}, found {found}")

    def peek(self, n: int) -> bytes:
        """Return the next `n` bytes, fewer where the stream ends, and stay here."""
        while len(self._buffer) - self._at < n and (more := self._read(CHUNK_BYTES)):
            self._buffer += more
        return self._buffer[self._at : self._at + n]

    def unpack(self, layout: str, what: str) -> tuple[Any, ...]:
        """Return numbers by their `struct` characters, in the file's byte order."""
        layout = self.order + layout
        n = struct.calcsize(layout)
        self._need(n, what)
        values = struct.unpack_from(layout, self._buffer, self._at)
        self._at += n
        return values

    def length(self, what: str) -> int:
        """Return a count or length, as wide as the version has it."""
        n: int = self.unpack(self.length_format, what)[0]
        return n

    def text(self, n: int, what: str) -> str:
        """Return `n` bytes as text; what is not UTF-8 shows as backslash escapes."""
        self._need(n, what)
        raw = self._buffer[self._at : self._at + n]
        text = raw.decode("utf-8", "backslashreplace")
        self.keep(128 + 4 * len(text))
        self._at += n
        return text

    def keep(self, n: int) -> None:
        """Count `n` bytes, at most, of memory in use; raise InputError past what headers need."""
        self._kept += n
        if self._kept > MAX_KEPT_BYTES:
            expected = f"names and short values of at most {MAX_KEPT_BYTES} bytes in memory"
            raise self.fail(expected, "more")

    def skip(self, n: int, what: str) -> None:
        """Walk over `n` bytes."""
        self._check_room(n, what)
        start = self.position
        self._at += n
        self._settle(what, start)

    def skip_strings(self, n: int, what: str) -> None:
        """Walk over `n` strings, each a length and as many bytes."""
        layout = struct.Struct(self.order + self.length_format)
        self._check_room(n * layout.size, what)
        self._strings += n
        if self._strings > MAX_STRINGS:
            expected = f"{what}: at most {MAX_STRINGS} strings in all arrays"
            raise self.fail(expected, f"{self._strings}")
        while n:
            start = self.position
            n = self._skip_buffered_strings(n, layout, what)
            self._settle(what, start)
            if n:
                self._need(layout.size, what)

    def _skip_buffered_strings(self, n: int, layout: struct.Struct, what: str) -> int:
        """Return how many of `n` strings start beyond what is buffered."""
        unpack_from, width = layout.unpack_from, layout.size
        buffer, at, left = self._buffer, self._at, 0
        try:
            # Half of the time to read a header goes into these two lines.
            for left in range(n, 0, -1):  # noqa: B007
                at += width + unpack_from(buffer, at)[0]
            left = 0
        except (struct.error, OverflowError):
            pass  # `at` is past the last length that is buffered
        if at - self._at > self.room:
            end, at = at, self._at
            while (after := at + width + unpack_from(buffer, at)[0]) < end:
                at = after
            self._at = at
            self._check_room(end - at, f"a string of {what}")
        self._at = at
        return left

    def _check_room(self, n: int, what: str) -> None:
        if n <= self.room:
            return
        if self.size is not None and self.position + n > self.size:
            raise self.fail(f"{what} ({n} bytes)", f"the end of the file at byte {self.size}")
        raise self.fail(
            f"{what} in the first {MAX_HEADER_BYTES} bytes", f"one that ends at {self.position + n}"
        )

    def _need(self, n: int, what: str) -> None:
        """Make the next `n` bytes available in the buffer."""
        have = len(self._buffer) - self._at
        if have >= n:
            return
        self._check_room(n, what)
        parts = [self._buffer[self._at :]]
        self._base, self._at = self.position, 0
        while have < n:
            parts.append(self._more(what, self._base, self._base + have))
            have += len(parts[-1])
        self._buffer = b"".join(parts)

    def _settle(self, what: str, start: int) -> None:
        """Read on until the position lies in the buffer."""
        while self._at > len(self._buffer):
            self._at -= len(self._buffer)
            self._base += len(self._buffer)
            self._buffer = b""
            self._buffer = self._more(what, start, self._base)

    def _more(self, what: str, start: int, end: int) -> bytes:
        chunk = self._read(CHUNK_BYTES)
        if not chunk:
            raise self.fail(what, f"the end of the file at byte {end}", start)
        return chunk
