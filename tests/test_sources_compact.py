"""Headers kept small, and vocabularies that files share."""

import pytest
from model_files import large_vocabulary

from tokcast.predictor import catalogue
from tokcast.predictor.errors import InputError
from tokcast.predictor.header import Header, SkippedArray, Tensor
from tokcast.predictor.model import model_spec
from tokcast.predictor.sources.compact import pack, unpack
from tokcast.predictor.sources.vocabulary import LEAST_ALIKE, Vocabulary


@pytest.mark.parametrize("name", ["llama-3.1-8b", "gemma-3-27b", "deepseek-v3", "gpt-oss-20b"])
def test_a_header_comes_back_as_it_was(name: str) -> None:
    header = catalogue.header(name, "Q4_K_M")
    assert unpack(pack(header)) == header
    assert model_spec(unpack(pack(header))) == model_spec(header)


def test_arrays_that_were_walked_over_keep_their_length() -> None:
    header = Header(
        format="gguf",
        metadata={
            "tokenizer.ggml.tokens": SkippedArray("string", 151_936),
            "a": (1, 2.5, "x", True),
            "b": "\ud800 \x1b",
            "c": -0.0,
        },
        tensors=(Tensor("t", (4, 2**40), "Q4_0", 7),),
        source="s",
        n_header_bytes=123,
        n_parts=3,
        warnings=("w",),
    )
    assert unpack(pack(header)) == header


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"{}", b'{"format":"gguf"}', b"[" * 10_000, b'{"metadata":{"a":null}}']
)
def test_other_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(InputError, match=r"a kept header cannot be read"):
        unpack(data)


@pytest.mark.parametrize("n_merges", [0, 3000])
def test_what_follows_a_shared_vocabulary_s_start(n_merges: int) -> None:
    data, n_header = large_vocabulary(5000, n_merges, n_tensors=3)
    header = data[:n_header]
    shared = Vocabulary()
    assert not shared.is_known
    assert shared.rest(header[:20_000]) == b""
    shared.learn(header)
    assert shared.is_known
    rest = shared.rest(header[:20_000])
    assert rest
    assert header[:20_000] + rest == header[: 20_000 + len(rest)]
    # What comes behind is not taken to be shared: the chat template and the tensors.
    assert b"chat_template" not in rest


def test_a_vocabulary_that_differs_is_not_taken() -> None:
    data, n_header = large_vocabulary(5000, 0, n_tensors=3)
    shared = Vocabulary()
    shared.learn(data[:n_header])
    at = data.find(b"tokenizer.ggml.tokens")
    other = bytearray(data[:20_000])
    other[at + 5000] ^= 1
    assert shared.rest(other) == b""
    assert shared.rest(data[: at + LEAST_ALIKE // 2]) == b""
    assert shared.rest(data[:at]) == b""
    assert shared.rest(data[:n_header]) == b""


def test_a_file_without_a_vocabulary_teaches_nothing() -> None:
    shared = Vocabulary()
    shared.learn(b"GGUF" + bytes(100))
    assert not shared.is_known
