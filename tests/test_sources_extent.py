"""How far a header is read: four requests and a mebibyte, whatever the vocabulary."""

import itertools
import struct

import pytest
from gguf_bytes import Build
from model_files import large_vocabulary, small_gguf
from oracles import GEMMA, VOCABULARIES, real

from tokcast.predictor.gguf import read_gguf_file
from tokcast.predictor.sources.extent import MIB, gguf_target, safetensors_target

N_DATA = 32 * MIB


def _requests(body: bytes, n_header: int) -> list[int]:
    """Return where each request ends until the header is there."""
    ends = [MIB]
    while ends[-1] < n_header:
        ends.append(min(gguf_target(body[: ends[-1]]), len(body)))
        assert ends[-1] > ends[-2]
    return ends


@pytest.mark.parametrize(
    ("n_tokens", "n_merges", "n_tensors"),
    [
        (8_000, 0, 0),
        (32_000, 0, 300),
        (64_000, 64_000, 300),
        (128_256, 280_147, 1200),
        (152_000, 151_387, 0),
        (262_144, 0, 1200),
    ],
)
def test_four_requests_and_a_mebibyte_do(n_tokens: int, n_merges: int, n_tensors: int) -> None:
    header, n_header = large_vocabulary(n_tokens, n_merges, n_tensors)
    ends = _requests(header + bytes(N_DATA), n_header)
    assert len(ends) <= 4
    assert ends[-1] <= n_header + MIB


@pytest.mark.parametrize("name", [GEMMA, *VOCABULARIES])
def test_real_headers_take_four_requests_and_a_mebibyte(name: str) -> None:
    path = real(name)
    known = read_gguf_file(path)
    with path.open("rb") as file:
        body = file.read(known.n_header_bytes)
    n_header = len(body)
    if not known.tensors:  # a vocabulary alone: as it would be with the tensors of a model
        n_tensors = 300
        body = body[:8] + struct.pack("<Q", n_tensors) + body[16:]
        n_header += n_tensors * 65
    ends = _requests(body + bytes(N_DATA), n_header)
    assert len(ends) <= 4
    assert ends[-1] <= n_header + MIB


def test_without_a_vocabulary_the_amount_doubles() -> None:
    body = small_gguf() + bytes(64 * MIB)
    sizes = [MIB // 16]
    for _ in range(6):
        sizes.append(gguf_target(body[: sizes[-1]]))
    assert sizes == [MIB * n // 16 for n in (1, 5, 10, 20, 40, 80, 160)]


@pytest.mark.parametrize("n_bytes", [0, 3, 23, 24, 200, 5000])
def test_whatever_has_arrived_more_is_asked_for_within_bounds(n_bytes: int) -> None:
    header, _ = large_vocabulary(1000)
    for body in (header, b"GGUF" + b"\xff" * 6000, bytes(6000), _hostile(2**63), _hostile(0)):
        n = len(body[:n_bytes])
        assert n < gguf_target(body[:n_bytes]) <= n + 32 * MIB
        assert n < safetensors_target(body[:n_bytes]) <= n + 32 * MIB


def _hostile(count: int) -> bytes:
    build = Build(n_tensors=2**64 - 1).string(b"tokenizer.ggml.model", b"llama")
    for key, n in itertools.product((b"tokens", b"merges"), (count, 2**64 - 1)):
        texts = struct.pack("<Q", 2**64 - 1) + bytes(100)
        build.entry(b"tokenizer.ggml." + key, 9, build.array(8, n, texts))
    return build.header()


def test_a_safetensors_header_tells_its_length() -> None:
    assert safetensors_target(b"") == 8
    assert safetensors_target(struct.pack("<Q", 500_000)) == 500_008
    assert safetensors_target(struct.pack("<Q", 500_000) + bytes(131_064)) == 500_008
