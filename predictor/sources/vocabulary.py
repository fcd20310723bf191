"""The vocabulary that files of one model share, so that it is fetched once.

A header of a large vocabulary is megabytes long, and all but a hundred thousand bytes of it are the
same in every quantization of a model. What one file has is put into the others' streams where
their first bytes of the vocabulary agree with it, and the request goes on behind it. A file for
which that was wrong does not parse, and is read again as it is.
"""

import struct
import threading

from tokcast.predictor.sources.extent import MIB, gguf_target, strings_end

# So much of a vocabulary has to agree before the rest is taken to.
LEAST_ALIKE = 4096
# What comes behind a vocabulary: a template and the table of tensors.
BEHIND_BYTES = MIB // 8
_TOKENS = struct.pack("<Q", 21) + b"tokenizer.ggml.tokens"
_MERGES = b"tokenizer.ggml.merges"
_NUMBERS = (b"tokenizer.ggml.scores", b"tokenizer.ggml.token_type")


class Vocabulary:
    """What the first file read holds; `lock` is held until `is_settled` says that it was read."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.is_settled = False
        self._bytes = b""

    @property
    def is_known(self) -> bool:
        """Return whether there is a vocabulary to share."""
        return bool(self._bytes)

    def learn(self, data: bytes) -> None:
        """Keep the vocabulary of a whole header, if it has one; nobody need wait any more."""
        self.is_settled = True
        start = data.find(_TOKENS)
        if start < 0 or self._bytes:
            return
        end, n_tokens = strings_end(data, _TOKENS[8:])
        end = max(end, strings_end(data, _MERGES)[0])
        for key in _NUMBERS:
            at = data.find(key, start)
            if at >= 0:
                end = max(end, at + len(key) + 16 + 4 * n_tokens)
        self._bytes = data[start : min(end, len(data))]

    def rest(self, data: bytes | bytearray) -> bytes:
        """Return what follows `data` if it ends inside this vocabulary, else nothing."""
        start = data.find(_TOKENS)
        n_alike = len(data) - start
        if start < 0 or n_alike < LEAST_ALIKE or n_alike >= len(self._bytes):
            return b""
        is_alike = memoryview(data)[start:] == memoryview(self._bytes)[:n_alike]
        return self._bytes[n_alike:] if is_alike else b""


class Filling:
    """How one file is read whose vocabulary another may have; `shared` None is the usual way."""

    def __init__(self, shared: Vocabulary | None) -> None:
        self._shared = shared
        self._is_filled = False

    def rest(self, data: bytearray) -> bytes:
        """Return what need not be asked for."""
        found = b"" if self._shared is None else self._shared.rest(data)
        self._is_filled = bool(found)
        return found

    def target(self, data: bytearray) -> int:
        """Return up to which byte to ask: behind a vocabulary there is little more to come."""
        return len(data) + BEHIND_BYTES if self._is_filled else gguf_target(data)
