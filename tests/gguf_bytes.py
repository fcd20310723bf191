"""GGUF files spelled out byte by byte, sound or not, independent of the project's writer."""

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

Entry = tuple[bytes, int, bytes]
Row = tuple[bytes, Sequence[int], int, int]

U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9


@dataclass
class Build:
    """A file in one version and byte order; counts may be false."""

    version: int = 3
    order: str = "<"
    entries: list[Entry] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    n_entries: int | None = None
    n_tensors: int | None = None
    alignment: int = 32
    n_data: int = 0

    @property
    def length(self) -> str:
        return "I" if self.version == 1 else "Q"

    def pack(self, layout: str, *values: float) -> bytes:
        return struct.pack(self.order + layout, *values)

    def text(self, raw: bytes) -> bytes:
        return self.pack(self.length, len(raw)) + raw

    def array(self, type_id: int, n: int, raw: bytes) -> bytes:
        return self.pack("I", type_id) + self.pack(self.length, n) + raw

    def u32(self, key: bytes, value: int) -> "Build":
        return self.entry(key, U32, self.pack("I", value))

    def string(self, key: bytes, value: bytes) -> "Build":
        return self.entry(key, STRING, self.text(value))

    def entry(self, key: bytes, type_id: int, raw: bytes) -> "Build":
        self.entries.append((key, type_id, raw))
        return self

    def tensor(
        self, name: bytes, shape: Sequence[int], type_id: int = 0, offset: int = 0
    ) -> "Build":
        self.rows.append((name, shape, type_id, offset))
        return self

    def header(self) -> bytes:
        """Return everything before the padding."""
        n_tensors = len(self.rows) if self.n_tensors is None else self.n_tensors
        n_entries = len(self.entries) if self.n_entries is None else self.n_entries
        parts = [b"GGUF", self.pack("I", self.version)]
        parts.append(self.pack(2 * self.length, n_tensors, n_entries))
        for key, type_id, raw in self.entries:
            parts += [self.text(key), self.pack("I", type_id), raw]
        for name, shape, type_id, offset in self.rows:
            parts += [self.text(name), self.pack("I", len(shape))]
            parts += [self.pack(self.length * len(shape), *shape)]
            parts += [self.pack("IQ", type_id, offset)]
        return b"".join(parts)

    def bytes(self) -> bytes:
        """Return the file, with zeros for data."""
        header = self.header()
        if self.rows:
            header += bytes(-len(header) % self.alignment)
        return header + bytes(self.n_data)


def small(version: int = 3, order: str = "<") -> Build:
    """Return a file with a value of every kind and two tensors."""
    build = Build(version=version, order=order, n_data=128 + 288)
    build.string(b"general.architecture", b"llama")
    build.u32(b"llama.block_count", 2)
    for type_id, layout, value in (
        (0, "B", 200),
        (1, "b", -5),
        (2, "H", 60000),
        (3, "h", -300),
        (5, "i", -70000),
        (6, "f", 0.5),
        (7, "B", 1),
        (10, "Q", 1 << 40),
        (11, "q", -(1 << 40)),
        (12, "d", 0.1),
    ):
        build.entry(b"kind.%d" % type_id, type_id, build.pack(layout, value))
    build.entry(b"llama.heads", ARRAY, build.array(I32, 2, build.pack("2i", 8, -1)))
    build.entry(b"flags", ARRAY, build.array(BOOL, 2, b"\0\1"))
    build.entry(b"general.tags", ARRAY, build.array(STRING, 2, build.text(b"a") + build.text(b"")))
    tokens = build.text(b"<s>") + build.text(b"") + build.text(b"abc")
    build.entry(b"tokenizer.ggml.tokens", ARRAY, build.array(STRING, 3, tokens))
    build.entry(b"tokenizer.ggml.scores", ARRAY, build.array(F32, 3, build.pack("3f", 0, -1, -2)))
    build.tensor(b"token_embd.weight", (8, 4), 0, 0)
    build.tensor(b"output.weight", (256, 2), 12, 128)
    return build
