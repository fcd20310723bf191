"""How far to read: a guess where a header ends, from the part that has arrived.

Nothing is read from these guesses; a wrong one costs a request more or some bytes too many.
"""

import struct

MIB = 1 << 20
_MARGIN = MIB // 2
_LEAST_STEP = MIB // 4
_LARGEST_STEP = 16 * MIB
# Two dimensions, a name of some 28 bytes, type and offset.
_TENSOR_BYTES = 72
_U64 = struct.Struct("<Q")
_STRINGS = struct.pack("<II", 9, 8)
_MODEL_WITH_SCORES = b"tokenizer.ggml.model" + struct.pack("<IQ", 8, 5) + b"llama"


def gguf_target(data: bytes | bytearray) -> int:
    """Return up to which byte to ask for, when `data` was not enough of a GGUF file.

    The vocabulary makes up nearly all of a header and gives its length away: strings go on
    as long as those seen so far, scores and token types take four bytes a token. On 19 real
    vocabularies of 0.6 to 16 MB and a whole model, one to four requests reach the end, at
    most 0.6 MiB too far (`tests/test_sources_extent.py`).
    Where that says nothing, the amount doubles.
    """
    have = len(data)
    expected = _expected_end(data)
    if not expected or expected + _MARGIN <= have:
        return have + min(max(have, _LEAST_STEP), _LARGEST_STEP)
    target = expected + _MARGIN + (expected - have) * 3 // 100
    return min(max(target, have + _LEAST_STEP), have + 2 * _LARGEST_STEP)


def _expected_end(data: bytes | bytearray) -> int:
    if len(data) < 24 or data[4] not in (2, 3):
        return 0
    tokens_end, n_tokens = strings_end(data, b"tokenizer.ggml.tokens")
    merges_end, _ = strings_end(data, b"tokenizer.ggml.merges")
    end = max(tokens_end, merges_end)
    if not end:
        return 0
    for key in (b"tokenizer.ggml.scores", b"tokenizer.ggml.token_type"):
        at = data.find(key)
        if at >= 0:
            end = max(end, at + len(key) + 16 + 4 * n_tokens)
        elif key.endswith(b"type") or data.find(_MODEL_WITH_SCORES) >= 0:
            end += 4 * n_tokens
    n_tensors: int = _U64.unpack_from(data, 8)[0]
    return end + n_tensors * _TENSOR_BYTES


def strings_end(data: bytes | bytearray, key: bytes) -> tuple[int, int]:
    """Return where an array of strings ends, guessed unless it is there, and their number."""
    start = _U64.pack(len(key)) + key + _STRINGS
    begin = data.find(start) + len(start)
    if begin < len(start) or begin + 8 > len(data):
        return 0, 0
    n: int = _U64.unpack_from(data, begin)[0]
    begin = at = begin + 8
    n_seen, end, unpack_from = 0, len(data), _U64.unpack_from
    while n_seen < n and at + 8 <= end:
        after = at + 8 + unpack_from(data, at)[0]
        if after > end:
            break
        at, n_seen = after, n_seen + 1
    return at + (n - n_seen) * (at - begin) // max(n_seen, 1), n


def safetensors_target(data: bytes | bytearray) -> int:
    """Return where a safetensors header ends, by the length it starts with."""
    have = len(data)
    if have < 8:
        return have + 8
    end: int = 8 + _U64.unpack_from(data)[0]
    return end if have < end < have + 2 * _LARGEST_STEP else have + _LARGEST_STEP
