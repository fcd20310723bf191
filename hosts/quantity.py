"""Reading sizes, counts and rates as people type them."""

import math
import re
from collections.abc import Mapping

from tokcast.predictor.errors import InputError

_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_NUMBER = r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?|[+-]?(?:nan|inf(?:inity)?))\s*"
_BYTES = re.compile(_NUMBER + r"(?:([kmgt]?)(?:i?b)?)\s*", re.IGNORECASE)
_COUNT = re.compile(_NUMBER + r"([kmg]?)i?\s*", re.IGNORECASE)
_BANDWIDTH = re.compile(_NUMBER + r"(?:([mgt])b/s)?\s*", re.IGNORECASE)
_RATE = re.compile(_NUMBER + r"(?:([gtp])flop(?:s|/s)?)?\s*", re.IGNORECASE)
_SECONDS = re.compile(_NUMBER + r"(ms|s|min)?\s*", re.IGNORECASE)
_SMALLEST_BARE_BYTES = 2**20
_LEAST_BYTES = 1024.0
# In the unit that was typed; less is a slip, and divides by next to nothing.
_LEAST = 1e-6


def parse_bytes(text: str) -> float:
    """Return a memory size in bytes: `24G`, `24GB` and `24GiB` are all 24 x 2^30.

    Memory is sold in powers of two whatever the label says, so all three spellings mean the
    card that is called "24 GB". A number without a suffix counts bytes. Raises InputError
    if the text is not a positive size, or is a bare number too small to be one.
    """
    expected = "a size such as 24G, 512M or 24000000000"
    match = _BYTES.fullmatch(text)
    if match is None:
        raise InputError(f"memory {text!r}: expected {expected}{about_comma(text)}")
    number = _positive(match[1], text, "memory", expected)
    if text.strip().lstrip("+").replace(".", "").isdigit() and number < _SMALLEST_BARE_BYTES:
        raise InputError(f"memory {text!r} means {text.strip()} bytes: write {text.strip()}G")
    n_bytes = number * 1024.0 ** _POWER[match[2].lower()]
    if n_bytes < _LEAST_BYTES:
        raise InputError(f"memory {text!r} is less than any device has: expected {expected}")
    return n_bytes


def parse_count(text: str, *, minimum: int = 0) -> int:
    """Return a whole number of tokens or layers; `32k` is 32 x 1024.

    Context lengths are powers of two, and those who say 32k mean 32768. Raises InputError if
    the text is not a whole number or is below `minimum`.
    """
    expected = f"a whole number from {minimum} up, such as 512 or 64k"
    match = _COUNT.fullmatch(text)
    number = float(match[1]) * 1024 ** _POWER[match[2].lower()] if match else math.nan
    if not math.isfinite(number) or number != int(number) or number < minimum:
        raise InputError(f"count {text!r}: expected {expected}")
    return int(number)


def parse_seconds(text: str) -> float:
    """Return seconds from `3`, `3s`, `500ms` or `2min`; raises InputError for another text."""
    scales = {"": 1.0, "s": 1.0, "ms": 1e-3, "min": 60.0}
    return _scaled(_SECONDS, text, "time", scales, "a time such as 3s, 500ms or 2min")


def parse_bandwidth(text: str) -> float:
    """Return bytes per second from GB/s (`400`, `400GB/s`) or `1.8TB/s`, decimal as published.

    Raises InputError if the text is not a positive rate.
    """
    scales = {"": 1e9, "m": 1e6, "g": 1e9, "t": 1e12}
    expected = "GB/s, such as 400, 400GB/s or 1.8TB/s"
    return _scaled(_BANDWIDTH, text, "bandwidth", scales, expected)


def parse_tflops(text: str) -> float:
    """Return operations per second from TFLOPS (`30`, `30TFLOPS`, `1.2PFLOPS`, `800GFLOPS`).

    Raises InputError if the text is not a positive rate.
    """
    scales = {"": 1e12, "g": 1e9, "t": 1e12, "p": 1e15}
    return _scaled(_RATE, text, "tflops", scales, "TFLOPS, such as 30 or 0.5")


def _scaled(
    pattern: re.Pattern[str], text: str, what: str, scales: Mapping[str, float], expected: str
) -> float:
    """Return a positive number times what its unit, in lower case, stands for."""
    match = pattern.fullmatch(text)
    if match is None:
        raise InputError(f"{what} {text!r}: expected {expected}{about_comma(text)}")
    return _positive(match[1], text, what, expected) * scales[(match[2] or "").lower()]


def about_comma(text: str) -> str:
    """Return what to add to an error where a comma stands for the decimal point, `1,8`."""
    if not re.search(r"\d,\d", text):
        return ""
    return f"; decimals are written with a point: {text.strip().replace(',', '.')}"


def _positive(number: str, text: str, what: str, expected: str) -> float:
    value = float(number)
    if not math.isfinite(value) or value < _LEAST:
        raise InputError(f"{what} {text!r} is not positive and finite: expected {expected}")
    return value
