"""Sizes, counts and rates as people type them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcast.hosts.quantity import parse_bandwidth, parse_bytes, parse_count, parse_tflops
from tokcast.predictor.errors import InputError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("24G", 24 * 2**30),
        ("24GiB", 24 * 2**30),
        ("24GB", 24 * 2**30),
        ("24 gb", 24 * 2**30),
        ("23.5g", 23.5 * 2**30),
        ("512M", 512 * 2**20),
        ("1.5T", 1.5 * 2**40),
        ("24000000000", 24e9),
        ("24e9", 24e9),
        ("24000000000B", 24e9),
    ],
)
def test_memory(text: str, expected: float) -> None:
    assert parse_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "G", "24X", "24Gb/s", "twenty", "24G 5"])
def test_what_is_not_a_size_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="expected a size such as 24G"):
        parse_bytes(text)


@pytest.mark.parametrize("text", ["0G", "-1G", "nan", "inf", "-inf", "1e999G"])
def test_a_size_is_positive_and_finite(text: str) -> None:
    with pytest.raises(InputError, match="not positive and finite"):
        parse_bytes(text)


def test_a_forgotten_suffix_is_pointed_out() -> None:
    with pytest.raises(InputError, match="means 24 bytes: write 24G"):
        parse_bytes("24")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0", 0), ("512", 512), ("32k", 32768), ("64K", 65536), ("1M", 2**20), ("1.5k", 1536)],
)
def test_counts_of_tokens(text: str, expected: int) -> None:
    assert parse_count(text) == expected


@pytest.mark.parametrize("text", ["", "k", "1.5", "-1", "nan", "inf", "1e999", "12 tokens", "0x10"])
def test_what_is_not_a_count_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="expected a whole number from 0 up"):
        parse_count(text)


def test_a_count_below_the_minimum_is_refused() -> None:
    assert parse_count("1", minimum=1) == 1
    with pytest.raises(InputError, match="from 1 up"):
        parse_count("0", minimum=1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("400", 400e9), ("400GB/s", 400e9), ("1.8TB/s", 1.8e12), ("900 mb/s", 0.9e9)],
)
def test_bandwidth_is_decimal(text: str, expected: float) -> None:
    assert parse_bandwidth(text) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["0", "-5", "nan", "inf"])
def test_bandwidth_is_positive_and_finite(text: str) -> None:
    with pytest.raises(InputError, match="not positive and finite: expected GB/s"):
        parse_bandwidth(text)


def test_bandwidth_in_another_unit_is_refused() -> None:
    with pytest.raises(InputError, match="expected GB/s, such as 400"):
        parse_bandwidth("400Gbit")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("30", 30e12), ("30 TFLOPS", 30e12), ("1.2PFLOPS", 1.2e15), ("800GFLOP/s", 800e9)],
)
def test_compute_rates(text: str, expected: float) -> None:
    assert parse_tflops(text) == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", "fast", "-1", "0", "nan"])
def test_what_is_not_a_rate_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="expected TFLOPS, such as 30"):
        parse_tflops(text)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=12))
def test_any_text_is_a_number_or_one_line(text: str) -> None:
    for parse in (parse_bytes, parse_count, parse_bandwidth, parse_tflops):
        message = ""
        try:
            assert parse(text) >= 0
        except InputError as error:
            message = str(error)
        assert "\n" not in message
