"""A file on a web server, read from its start and no further than needed."""

import re
import time
from collections.abc import Callable, Iterator

from tokcast.predictor.errors import InputError
from tokcast.predictor.sources.http_errors import BrokenConnectionError, HttpError, shown
from tokcast.predictor.sources.session import Answer, Session

MAX_BREAKS = 5
# No known header is a quarter as long; what is longer is neither kept nor cached.
KEPT_BYTES = 64 << 20
LONG_STEP_BYTES = 16 << 20
LEAST_BYTES = 1 << 16
_RANGE = re.compile(r"bytes ([0-9]{1,18})-[0-9]{1,18}/([0-9]{1,18}|\*)")
_EXPIRED = frozenset({401, 403, 404, 410})


class ChangedError(InputError):
    """Another file came to lie at the address while it was read."""


class RemoteFile:
    """Bytes of a file in order, by growing ranges; `read` is made for a parser.

    `first_bytes` is the length of the first range, `target(bytes so far)` the end of each further
    one. A server that ignores ranges is read as a stream. A broken connection goes on where
    it stopped, `MAX_BREAKS` times. `known(bytes so far)` may tell what follows the first range,
    which is then not asked for. `known_etag` is what a cache has: `is_known` says after
    `open` that it is still right.
    """

    def __init__(
        self,
        session: Session,
        url: str,
        first_bytes: int,
        target: Callable[[bytearray], int],
        known_etag: str = "",
        known: Callable[[bytearray], bytes] | None = None,
    ) -> None:
        self._session = session
        self._url = url
        self._at_url = url
        self._end = first_bytes
        self._target = target
        self._known_etag = known_etag
        self._known = known
        self._stop_at = time.monotonic() + session.settings.patience_seconds
        self._answer: Answer | None = None
        self._chunks: Iterator[bytes] = iter(())
        self._validator = ""
        self._in_ranges = False
        self._n_breaks = 0
        self._asked_from = 0
        self._data = bytearray()
        self._n_dropped = 0
        self._position = 0
        self.size: int | None = None
        self.etag = ""

    @property
    def is_known(self) -> bool:
        """Return whether the server confirmed `known_etag`; there is nothing to read then."""
        return self._answer is not None and self._answer.status == 304

    @property
    def consumed(self) -> bytes | None:
        """Return what was read so far; None where that is more than is kept."""
        return None if self._n_dropped else bytes(memoryview(self._data)[: self._position])

    def open(self) -> None:
        """Ask for the first range; raise HttpError where the server refuses."""
        headers = {"If-None-Match": f'"{self._known_etag}"'} if self._known_etag else {}
        self._request(headers)

    def close(self) -> None:
        """Stop the transfer."""
        if self._answer is not None:
            self._answer.close()

    def read(self, n: int) -> bytes:
        """Return 1 to `n` bytes as they arrive, none at the end of the file."""
        while self._position == len(self._data):
            if self._is_complete or not self._receive():
                return b""
        start = self._position
        self._position = min(start + n, len(self._data))
        return bytes(memoryview(self._data)[start : self._position])

    @property
    def _n_received(self) -> int:
        return self._n_dropped + len(self._data)

    @property
    def _is_complete(self) -> bool:
        return self.size is not None and self._n_received >= self.size

    def _receive(self) -> bool:
        """Add what arrives next; return whether there can be more."""
        if time.monotonic() > self._stop_at:
            patience_s = self._session.settings.patience_seconds
            raise HttpError(
                f"{shown(self._url)}: not read within {patience_s:.0f} s; try again later",
                is_passing=True,
            )
        try:
            chunk = next(self._chunks, b"")
        except BrokenConnectionError as error:
            self._resume(error)
            return True
        if chunk:
            self._keep(chunk)
            return True
        if not self._in_ranges:
            self.size = self._n_received
            return False
        if self._n_received == self._asked_from:
            raise HttpError(f"{shown(self._url)}: nothing sent from byte {self._n_received}")
        if self._fill_in():
            return True
        if self._n_received >= self._end:
            is_long = self._n_dropped > 0
            self._end = self._end + LONG_STEP_BYTES if is_long else self._target(self._data)
        self._request({})
        return True

    def _fill_in(self) -> bool:
        """Add what is known to come next, once; return whether that was anything."""
        more = self._known(self._data) if self._known is not None else b""
        self._known = None
        if more:
            self._keep(more)
        return bool(more)

    def _keep(self, chunk: bytes) -> None:
        if self._n_dropped or len(self._data) >= KEPT_BYTES:
            self._n_dropped += self._position
            del self._data[: self._position]
            self._position = 0
        self._data += chunk

    def _resume(self, error: BrokenConnectionError) -> None:
        self._n_breaks += 1
        if self._n_breaks > MAX_BREAKS:
            raise error
        self._session.settings.sleep(0.25 * 2**self._n_breaks)
        self._request({})

    def _request(self, headers: dict[str, str]) -> None:
        start = self._asked_from = self._n_received
        self._end = max(self._end, start + LEAST_BYTES)
        headers["Range"] = f"bytes={start}-{self._end - 1}"
        if start and self._validator.startswith('"') and self._validator.isascii():
            headers["If-Range"] = self._validator
        self.close()
        answer = self._answer = self._send(headers)
        if answer.status == 304:
            return
        self._at_url = answer.url
        self._chunks = answer.chunks()
        if answer.status == 206:
            self._check(answer, self._size_of_range(answer, start))
            self._in_ranges = True
            return
        length = answer.response.headers.get("Content-Length", "")
        if self._in_ranges:
            raise self._changed()
        self._check(answer, int(length) if length.isdecimal() else None)
        self._chunks = _after(self._chunks, start)

    def _size_of_range(self, answer: Answer, start: int) -> int | None:
        """Return the file's size; raise HttpError for another range than from `start` on."""
        match = _RANGE.fullmatch(answer.response.headers.get("Content-Range", ""))
        if match is None or int(match[1]) != start:
            raise HttpError(f"{shown(self._url)}: expected bytes from {start}, got other bytes")
        return None if match[2] == "*" else int(match[2])

    def _send(self, headers: dict[str, str]) -> Answer:
        try:
            return self._session.send(self._at_url, headers)
        except HttpError as error:
            # Where a redirect led to may be signed for minutes only.
            if self._at_url == self._url or error.status not in _EXPIRED:
                raise
            return self._session.send(self._url, headers)

    def _check(self, answer: Answer, size: int | None) -> None:
        """Note what identifies the content, or raise ChangedError if it differs from before."""
        validator = answer.response.headers.get("ETag", "")
        if not self._n_received:
            self._validator, self.size, self.etag = validator, size, answer.etag
        elif (validator, size) != (self._validator, self.size):
            raise self._changed()

    def _changed(self) -> ChangedError:
        return ChangedError(f"{shown(self._url)}: changed while it was read; try again")


def _after(chunks: Iterator[bytes], n_skipped: int) -> Iterator[bytes]:
    """Yield what comes after the first `n_skipped` bytes."""
    for chunk in chunks:
        rest = chunk[n_skipped:] if n_skipped else chunk
        n_skipped = max(0, n_skipped - len(chunk))
        if rest:
            yield rest
