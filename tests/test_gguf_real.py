"""Real files, against committed facts and against `gguf.GGUFReader`."""

import io
from collections import Counter
from pathlib import Path

import gguf
import oracles
import pytest

from tokcast.predictor.gguf import read_gguf, read_gguf_file
from tokcast.predictor.gguf_cursor import CHUNK_BYTES
from tokcast.predictor.gguf_write import header_bytes
from tokcast.predictor.header import Header, SkippedArray, Tensor

# GGUFReader takes seconds for a large vocabulary: these are the smallest, and gemma3 for tensors.
COMPARED = (
    "ggml-vocab-llama-spm.gguf",
    "ggml-vocab-bert-bge.gguf",
    "ggml-vocab-phi-3.gguf",
    "ggml-vocab-deepseek-coder.gguf",
)


def length(header: Header, key: str) -> int | None:
    value = header.metadata.get(key)
    return value.length if isinstance(value, SkippedArray) else None


@pytest.mark.parametrize("name", oracles.FACTS)
def test_facts(name: str) -> None:
    facts = oracles.FACTS[name]
    header = read_gguf_file(oracles.real(name))
    assert header.metadata["general.architecture"] == facts["architecture"]
    assert len(header.metadata) == int(facts["n_entries"])
    assert len(header.tensors) == int(facts["n_tensors"])
    assert length(header, "tokenizer.ggml.tokens") == int(facts["n_tokens"])
    merges = length(header, "tokenizer.ggml.merges")
    assert merges == (int(facts["n_merges"]) if facts["n_merges"] else None)
    assert header.n_header_bytes == min(int(facts["data_start"]), int(facts["n_bytes"]))
    assert header.warnings == ()


@pytest.mark.parametrize("name", COMPARED)
def test_metadata_is_what_the_official_reader_finds(name: str) -> None:
    path = oracles.real(name)
    ours = read_gguf_file(path).metadata
    theirs = {k: f for k, f in gguf.GGUFReader(path).fields.items() if not k.startswith("GGUF.")}
    assert list(ours) == list(theirs)
    for key, value in ours.items():
        if isinstance(value, SkippedArray):
            assert key.startswith("tokenizer.")
            assert value.length == len(theirs[key].data)
        else:
            contents = theirs[key].contents()
            assert value == (tuple(contents) if isinstance(contents, list) else contents)


def test_gemma3_by_hand() -> None:
    """What its publisher and llama.cpp's loader print of it."""
    header = read_gguf_file(oracles.real(oracles.GEMMA))
    figures = ("block_count", "embedding_length", "attention.sliding_window", "context_length")
    assert [header.metadata[f"gemma3.{key}"] for key in figures] == [18, 640, 512, 32768]
    assert sum(t.n_params for t in header.tensors) == 268_098_176
    types = Counter(t.type for t in header.tensors)
    assert types == {"F32": 109, "Q5_0": 81, "Q4_K": 27, "Q8_0": 10, "Q6_K": 9}
    embedding = next(t for t in header.tensors if t.name == "token_embd.weight")
    assert embedding == Tensor("token_embd.weight", (640, 262144), "Q8_0", 640 * 262144 // 32 * 34)
    # All of them and the header fill the file; every size is a multiple of the alignment.
    assert header.n_header_bytes + sum(t.n_bytes for t in header.tensors) == 253_113_024


def test_gemma3_tensor_table_is_what_the_official_reader_finds(tmp_path: Path) -> None:
    """The raw table of the real file, behind a header that has no vocabulary to read slowly."""
    with oracles.real(oracles.GEMMA).open("rb") as file:
        raw = file.read(6_525_120)
    header = read_gguf_file(oracles.real(oracles.GEMMA))
    start = raw.rindex(header.tensors[0].name.encode()) - 8
    empty, _ = header_bytes({"general.architecture": "gemma3"}, [])
    bare = empty[:8] + len(header.tensors).to_bytes(8, "little") + empty[16:].rstrip(b"\0")
    table = raw[start:]
    path = tmp_path / "x.gguf"
    with path.open("wb") as out:
        out.write(bare + table)
        out.truncate(253_113_024)
    assert [
        (t.name, tuple(t.shape.tolist()), t.tensor_type.name, t.n_bytes)
        for t in gguf.GGUFReader(path).tensors
    ] == [(t.name, t.shape, t.type, t.n_bytes) for t in header.tensors]


def test_only_the_header_is_read() -> None:
    path = oracles.real(oracles.GEMMA)
    asked = 0

    with path.open("rb") as file:

        def read(n: int) -> bytes:
            nonlocal asked
            asked += n
            return file.read(n)

        header = read_gguf(read, "x")
    assert asked <= header.n_header_bytes + CHUNK_BYTES


def test_a_header_alone_is_enough() -> None:
    path = oracles.real(oracles.GEMMA)
    whole = read_gguf_file(path)
    with path.open("rb") as file:
        start = file.read(whole.n_header_bytes)
    alone = read_gguf(io.BytesIO(start).read, str(path), len(start))
    assert alone.tensors == whole.tensors
    assert len(alone.warnings) == 1
