"""Headers fetched earlier, kept by address and etag."""

import contextlib
import hashlib
import json
import os
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path

from tokcast.predictor.sources.settings import Settings

MAX_ENTRY_BYTES = 64 << 20
MAX_CACHE_BYTES = 256 << 20
_SUFFIX = ".header"
_MAX_FACTS_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Entry:
    """The first bytes of a file, the etag it had and its whole length, None where not known."""

    data: bytes
    etag: str
    size: int | None


class HeaderCache:
    """A folder of entries, one an address; the least recently used go when it grows too large.

    A cache that cannot be written or read is an empty one. An entry names its address by a
    hash only: addresses can carry signatures.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._n_bytes_stored = 0
        self._prune_at = 0

    def load(self, url: str) -> Entry | None:
        """Return what was stored for `url`; None without it or where it is damaged."""
        path = self._path(url)
        try:
            with path.open("rb") as file:
                facts = json.loads(file.readline(_MAX_FACTS_BYTES))
                data = file.read(MAX_ENTRY_BYTES + 1)
            if facts["n_bytes"] != len(data) or facts["crc32"] != zlib.crc32(data):
                raise ValueError
            size = facts["size"]
            entry = Entry(data, str(facts["etag"]), None if size is None else int(size))
        except (ValueError, KeyError, TypeError, RecursionError):
            self.discard(url)
            return None
        except OSError:
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return entry

    def store(self, url: str, entry: Entry) -> None:
        """Keep an entry, in place of the one before."""
        if len(entry.data) > MAX_ENTRY_BYTES:
            return
        facts = {
            "etag": entry.etag,
            "size": entry.size,
            "n_bytes": len(entry.data),
            "crc32": zlib.crc32(entry.data),
        }
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(_SUFFIX, dir=self._folder)
            with os.fdopen(handle, "wb") as file:
                file.write(json.dumps(facts).encode() + b"\n")
                file.write(entry.data)
            Path(name).replace(self._path(url))
            # Looking through the folder takes as long as storing an entry or two.
            self._n_bytes_stored += len(entry.data)
            if self._n_bytes_stored > self._prune_at:
                self._prune_at = self._n_bytes_stored + MAX_CACHE_BYTES // 32
                self._prune()

    def discard(self, url: str) -> None:
        """Forget an entry."""
        with contextlib.suppress(OSError):
            self._path(url).unlink(missing_ok=True)

    def _path(self, url: str) -> Path:
        return self._folder / (hashlib.sha256(url.encode()).hexdigest()[:40] + _SUFFIX)

    def _prune(self) -> None:
        found = [(path, path.stat()) for path in self._folder.glob(f"*{_SUFFIX}")]
        total = sum(facts.st_size for _, facts in found)
        for path, facts in sorted(found, key=lambda pair: pair[1].st_mtime):
            if total <= MAX_CACHE_BYTES:
                return
            path.unlink(missing_ok=True)
            total -= facts.st_size


def open_cache(settings: Settings) -> HeaderCache:
    """Return the cache in `TOKCAST_CACHE` or the platform's folder."""
    folder = settings.folder("TOKCAST_CACHE")
    if folder is None:
        import platformdirs

        folder = platformdirs.user_cache_path("tokcast", appauthor=False)
    return HeaderCache(folder / "headers")
