"""What fused attention kernels move, by hand, by limits and beside what was published."""

from dataclasses import replace

import pytest

from tokcast.hosts.match import find
from tokcast.hosts.rates import rates_of
from tokcast.predictor.errors import InputError
from tokcast.predictor.precision import toolkit
from tokcast.predictor.precision.attention import (
    KERNELS,
    Attention,
    kernel_of,
    newest_for,
    traffic,
    unfused_bytes,
    usable,
)
from tokcast.predictor.precision.formats import format_of

F16, F8 = format_of("FP16"), format_of("FP8")
ONE = Attention(32, 8, 1, 4096, 128)
MANY = Attention(32, 8, 4096, 4096, 128)


def test_one_query_reads_the_cache_once_but_for_the_first_kernel() -> None:
    """4,096 keys and values of 8 heads, or of the 32 that share them."""
    cache = 2 * 8 * 4096 * 128 * 2
    moved = {k.name: traffic(k, ONE, F16, F16) for k in KERNELS}
    assert moved["fa1"].cache_bytes == 4 * cache
    assert [moved[n].cache_bytes for n in ("fa2", "fa3", "fa4")] == [cache] * 3
    # Queries, output in and output out for each of 32 tiles of keys; once in and out later.
    assert moved["fa1"].query_bytes == 32 * 3 * 32 * 128 * 2
    assert moved["fa2"].query_bytes == 2 * 32 * 128 * 2
    assert ONE.flops == 4 * 128 * 32 * 4096


def test_a_prompt_reads_the_cache_once_a_tile_of_queries() -> None:
    dense = replace(MANY, is_causal=False)
    cache = 2 * 8 * 4096 * 128 * 2
    found = {k.name: traffic(k, dense, F16, F16).cache_bytes / cache for k in KERNELS}
    # 32 tiles of 128 queries for each of 4 heads; the same rows packed; tiles of 256.
    assert found == {"fa1": 4, "fa2": 128, "fa3": 128, "fa4": 64}
    masked = traffic(kernel_of("fa2"), MANY, F16, F16).cache_bytes / cache
    assert masked == pytest.approx(64, rel=1e-3)


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_no_kernel_moves_less_than_everything_once_or_more_than_unfused(kernel: object) -> None:
    for a in (ONE, MANY, replace(MANY, n_head_kv=32), replace(MANY, n_batch=3)):
        t = traffic(kernel, a, F16, F16)  # type: ignore[arg-type]
        assert t.n_bytes >= t.least_bytes
        if a.n_query > 1:
            assert t.n_bytes < unfused_bytes(a, F16)


def test_eight_bits_halve_the_traffic_of_kernels_that_multiply_them() -> None:
    three = kernel_of("fa3")
    half = traffic(three, ONE, F8, F8).cache_bytes / traffic(three, ONE, F16, F16).cache_bytes
    assert half == 0.5
    assert usable(three, F8) is F8
    assert usable(kernel_of("fa2"), F8).name == "FP16"


def test_sparse_blocks_save_in_proportion() -> None:
    kept = replace(MANY, kept=0.5)
    assert kept.flops == MANY.flops / 2
    assert kept.exponentials == MANY.exponentials / 2
    four = kernel_of("fa4")
    assert traffic(four, kept, F16, F16).cache_bytes == (
        traffic(four, MANY, F16, F16).cache_bytes / 2
    )


def test_a_causal_mask_leaves_half() -> None:
    pairs = 32 * 4096 * 4097 / 2
    assert MANY.pairs == pairs
    assert ONE.pairs == 32 * 4096


def test_which_kernel_is_written_for_which_chip() -> None:
    found = {c: newest_for(c).name for c in ("7.5", "8.6", "8.9", "9.0", "10.0", "12.1", "")}
    assert found == {
        "7.5": "fa1",
        "8.6": "fa2",
        "8.9": "fa2",
        "9.0": "fa3",
        "10.0": "fa4",
        "12.1": "fa2",
        "": "fa2",
    }


def test_published_shares_are_those_of_the_chips_peaks() -> None:
    """740 TFLOP/s in FP16 on an H100 and 1,613 in BF16 on a B200, as the abstracts say."""
    found = {kernel.name: kernel.share for kernel in KERNELS}
    hopper, blackwell = rates_of(find("H100 SXM")), rates_of(find("B200"))
    assert found["fa3"] == pytest.approx(740e12 / hopper.flops_of("fp16"), abs=0.011)
    assert found["fa4"] == pytest.approx(1613e12 / blackwell.flops_of("fp16"), abs=0.011)


@pytest.mark.parametrize(
    "sizes", [(0, 1, 1, 1, 1), (7, 2, 1, 1, 1), (8, 2, 0, 1, 1), (8, 2, 1, 1, -1)]
)
def test_no_attention(sizes: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match="expected"):
        Attention(*sizes)
    with pytest.raises(InputError, match="kept share 0: expected above 0"):
        replace(ONE, kept=0)
    with pytest.raises(InputError, match="kernel 'fa5': expected one of fa1, "):
        kernel_of("fa5")


# --- the published toolkit


@pytest.mark.parametrize("row", toolkit.STEPS, ids=lambda r: f"{r.what} {r.n_context}")
def test_the_published_steps_come_out(row: toolkit.Published) -> None:
    assert row.reproduced_ms == pytest.approx(row.ms, rel=0.03)


@pytest.mark.parametrize(
    ("kernel", "name", "ms"),
    [("fa1", "FP16", 33.8), ("fa2", "FP16", 29.4), ("fa3", "FP8", 15.4), ("fa4", "FP8", 15.4)],
)
def test_the_published_kernels_come_out(kernel: str, name: str, ms: float) -> None:
    assert toolkit.attention_ms(kernel, 4096, 4096, name, name) == pytest.approx(ms, rel=0.03)


def test_published_bytes_come_out() -> None:
    assert toolkit.cache_mib("FP16", 32768) == 4096
    assert toolkit.cache_mib("NVFP4", 32768) == pytest.approx(1175, rel=0.03)
    assert toolkit.saved_percent("FP8") == 50
    assert toolkit.saved_percent("NVFP4") == pytest.approx(72, rel=0.03)


def test_the_bridge_leads_from_theirs_to_ours() -> None:
    for row in toolkit.STEPS:
        parts = toolkit.bridge(row, 273.1e9, 50.0)
        assert row.reproduced_ms + sum(parts.values()) == pytest.approx(50)
        assert parts["memory no faster than itself"] > 0
        assert parts["K/V of 8 heads, in its format"] < 0


def test_attention_overtakes_the_weights_far_later_than_published() -> None:
    """1.6k tokens are published; what is read of Llama 3 8B are 114k tokens of 128 KiB."""
    read = 2 * (32 * (2 * 4096 * (4096 + 1024) + 3 * 4096 * 14336) + 4096 * 128256)
    found = toolkit.even_context("fp16_baseline", "FP16")
    assert found == pytest.approx(read / 2**17, rel=1e-3)
    assert round(found, -3) == 115_000
