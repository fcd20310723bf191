"""The network, and what was fetched from it before."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from io import BytesIO
from typing import TypeVar

from tokcast.predictor.errors import InputError
from tokcast.predictor.header import Header
from tokcast.predictor.sources.cache import Entry, HeaderCache, open_cache
from tokcast.predictor.sources.compact import pack, unpack
from tokcast.predictor.sources.extent import MIB, gguf_target, safetensors_target
from tokcast.predictor.sources.http_errors import HttpError, shown
from tokcast.predictor.sources.remote import ChangedError, RemoteFile
from tokcast.predictor.sources.session import Session
from tokcast.predictor.sources.settings import Settings
from tokcast.predictor.sources.vocabulary import Filling, Vocabulary

T = TypeVar("T")
Parse = Callable[[Callable[[int], bytes], int | None], T]


@dataclass(frozen=True, slots=True)
class Kind:
    """How much of a file to ask for at first, and up to where after that."""

    first_bytes: int
    target: Callable[[bytearray], int]


GGUF = Kind(MIB, gguf_target)
# The vocabulary is in the first part.
LATER_GGUF_PART = Kind(MIB // 16, gguf_target)
SAFETENSORS = Kind(MIB // 8, safetensors_target)


class Web:
    """Files by address: from the cache where that is still right, else from the server.

    `etag` is what a listing says a file's content is; a cached copy of it needs no request. Offline
    and where no server answers, what was fetched before is used, with a warning.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.warnings: dict[str, None] = {}
        self._cache: HeaderCache = open_cache(settings)
        self._session: Session | None = None

    def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            self._session.close()

    def warn(self, sentence: str) -> None:
        """Keep a sentence for the user."""
        self.warnings[sentence] = None

    def parsed(self, url: str, kind: Kind, parse: Parse[T], etag: str = "") -> T:
        """Return what `parse(read, size)` makes of the start of a file."""

        def use(entry: Entry) -> T:
            return parse(BytesIO(entry.data).read, entry.size)

        def fetch(entry: Entry | None) -> T:
            file = RemoteFile(
                self._connected(), url, kind.first_bytes, kind.target, entry.etag if entry else ""
            )
            try:
                file.open()
                if entry is not None and file.is_known:
                    return use(entry)
                result = parse(file.read, file.size)
            finally:
                file.close()
            data = file.consumed
            if data is not None:
                self._cache.store(url, Entry(data, etag or file.etag, file.size))
            return result

        return self._get(url, etag, use, fetch)

    def header(self, url: str, parse: Parse[Header], etag: str, vocabulary: Vocabulary) -> Header:
        """Return the header of a GGUF file that may share its vocabulary with others.

        It is kept as it was read, without the vocabulary.
        """
        key = f"header {url}"

        def read(entry: Entry | None, shared: Vocabulary | None) -> Header:
            fill = Filling(shared)
            file = RemoteFile(
                self._connected(),
                url,
                GGUF.first_bytes if shared is None else LATER_GGUF_PART.first_bytes,
                fill.target,
                entry.etag if entry else "",
                fill.rest,
            )
            try:
                file.open()
                if entry is not None and file.is_known:
                    return unpack(entry.data)
                header = parse(file.read, file.size)
            finally:
                file.close()
                vocabulary.learn(file.consumed or b"")
            packed = pack(header)
            self._cache.store(key, Entry(packed, etag or file.etag, file.size))
            return header

        def fetch(entry: Entry | None) -> Header:
            with nullcontext() if vocabulary.is_settled else vocabulary.lock:
                if not vocabulary.is_settled:
                    return read(entry, None)
            if not vocabulary.is_known:
                return read(entry, None)
            try:
                return read(entry, vocabulary)
            except HttpError:
                raise
            except InputError:
                return read(None, None)

        return self._get(url, etag, lambda entry: unpack(entry.data), fetch, key)

    def body(self, url: str, limit: int, etag: str = "", accept: str = "*/*") -> bytes:
        """Return a small JSON file whole; only what can be one is kept for later."""

        def fetch(entry: Entry | None) -> bytes:
            headers = {"Accept": accept}
            if entry is not None and entry.etag:
                headers["If-None-Match"] = f'"{entry.etag}"'
            data, answer = self._connected().fetch(url, headers, limit)
            if entry is not None and answer.status == 304:
                return entry.data
            if _may_be_json(data):
                self._cache.store(url, Entry(data, etag or answer.etag, len(data)))
            return data

        return self._get(url, etag, lambda entry: entry.data, fetch)

    def page(self, url: str, limit: int) -> tuple[bytes, str]:
        """Return a page of a listing and its Link header, which says where the next one is.

        Pages are kept for when there is no network; their links beside them.
        """
        linked: list[str] = []
        key = f"page {url}"

        def fetch(entry: Entry | None) -> bytes:
            data, answer = self._connected().fetch(url, {"Accept": "*/*"}, limit)
            link = answer.response.headers.get("Link", "")
            linked.append(link)
            stored = link.encode("utf-8", "replace").replace(b"\n", b" ") + b"\n" + data
            if _may_be_json(data):
                self._cache.store(key, Entry(stored, "", len(stored)))
            return data

        def use(entry: Entry) -> bytes:
            link, _, data = entry.data.partition(b"\n")
            linked.append(link.decode("utf-8", "replace"))
            return data

        return self._get(url, "", use, fetch, key), linked[-1]

    def connect(self) -> None:
        """Open the session now, for threads to share."""
        if not self.settings.offline:
            self._connected()

    def _connected(self) -> Session:
        if self._session is None:
            self._session = Session(self.settings)
        return self._session

    def _get(
        self,
        url: str,
        etag: str,
        use: Callable[[Entry], T],
        fetch: Callable[[Entry | None], T],
        key: str = "",
    ) -> T:
        key = key or url
        entry = self._cache.load(key)
        if entry is not None and (self.settings.offline or (etag and entry.etag == etag)):
            try:
                return self._used(entry, use, "offline" if self.settings.offline else "")
            except InputError:  # written by another version, perhaps
                self._cache.discard(key)
                entry = None
        if self.settings.offline:
            raise InputError(f"{shown(url)}: never fetched before, and offline; go online once")
        try:
            return self._fetched(key, entry, fetch)
        except HttpError as error:
            if entry is None or not error.is_passing:
                raise
            return self._used(entry, use, str(error))

    def _used(self, entry: Entry, use: Callable[[Entry], T], doubt: str) -> T:
        result = use(entry)
        if doubt:
            self.warn(f"{doubt}; read as fetched earlier, not checked for changes")
        return result

    def _fetched(self, key: str, entry: Entry | None, fetch: Callable[[Entry | None], T]) -> T:
        try:
            return fetch(entry)
        except ChangedError:
            return fetch(None)
        except HttpError:
            raise
        except InputError:
            if entry is None:
                raise
            self._cache.discard(key)
            return fetch(None)


def _may_be_json(data: bytes) -> bool:
    """Return whether data is no page of a portal or proxy that answered in the server's place."""
    return data.lstrip()[:1] in (b"{", b"[")
