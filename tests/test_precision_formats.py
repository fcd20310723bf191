"""Bits of formats, peaks by arithmetic, and products worked by hand."""

import math

import pytest

from tokcast.hosts.match import find
from tokcast.hosts.rates import capability_of, rates_of
from tokcast.predictor.errors import InputError
from tokcast.predictor.precision.formats import FORMATS, format_of
from tokcast.predictor.precision.kept import kept_by, published
from tokcast.predictor.precision.plans import PLANS, plan_of
from tokcast.predictor.precision.products import Product, time_of
from tokcast.predictor.precision.rates import Rates, multiplied_as
from tokcast.predictor.quants import TYPES_BY_NAME

CHIP = Rates("chip", 1e12, {"fp16": 100e12, "fp8": 200e12})


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("FP32", 32),
        ("TF32", 32),
        ("BF16", 16),
        ("FP8", 8),
        ("MXFP8", 8.25),
        ("MXFP6", 6.25),
        ("MXFP4", 4.25),
        ("NVFP4", 4.5),
        ("INT4", 4 + 20 / 128),
        ("NF4", 4.5),
        ("q4_k", 4.5),
        ("q8_0", 8.5),
    ],
)
def test_bits_have_the_scales_in_them(name: str, bits: float) -> None:
    assert format_of(name).bits == pytest.approx(bits)
    assert format_of(name).bytes == pytest.approx(bits / 8)


def test_ggml_stores_the_same_block_formats() -> None:
    for name in ("MXFP4", "NVFP4", "BF16"):
        assert TYPES_BY_NAME[name].bits_per_weight == FORMATS[name].bits


def test_every_format_has_a_source() -> None:
    assert all(f.source and not f.source.endswith(".") for f in FORMATS.values())


def test_a_product_is_multiplied_as_its_wider_side() -> None:
    four, eight, sixteen = format_of("NVFP4"), format_of("FP8"), format_of("FP16")
    assert multiplied_as(four, sixteen) == "fp16"
    assert multiplied_as(four, eight) == "fp8"
    assert multiplied_as(four, four) == "fp4"
    assert multiplied_as(sixteen, eight) == "fp16"


def test_arithmetic_that_a_chip_lacks_is_widened() -> None:
    assert CHIP.native("fp4") == "fp8"
    assert CHIP.native("int4") == "fp16"
    assert CHIP.flops_of("fp4") == 200e12
    assert Rates("old", 1e9, {"fp32": 1e12}).native("fp8") == "fp32"
    assert CHIP.ridge("fp16") == 100


def test_a_gemv_by_hand() -> None:
    """4,096 x 4,096 in 16 bits: 2 x 2^24 operations, 2^24 + 2 x 2^12 numbers of two bytes."""
    sixteen = format_of("FP16")
    p = Product(1, 4096, 4096, sixteen, sixteen, sixteen)
    assert p.kind == "GEMV"
    assert p.flops == 2**25
    assert p.n_bytes == 2 * (2**24 + 2**13)
    time = time_of(p, CHIP)
    assert time.bound == "memory"
    assert time.seconds == p.n_bytes / 1e12


def test_a_gemm_of_many_rows_is_bound_by_arithmetic_and_a_gemv_by_bytes() -> None:
    sixteen, four = format_of("FP16"), format_of("NVFP4")
    wide = Product(4096, 4096, 4096, sixteen, sixteen, sixteen)
    assert wide.kind == "GEMM"
    assert time_of(wide, CHIP).bound == "compute"
    # Weights of 4 bits beside 16-bit activations save bytes, not arithmetic.
    assert time_of(Product(4096, 4096, 4096, four, sixteen, sixteen), CHIP).seconds == (
        time_of(wide, CHIP).seconds
    )
    thin = [Product(1, 8192, 8192, f, sixteen, sixteen) for f in (sixteen, four)]
    slow, fast = (time_of(p, CHIP).seconds for p in thin)
    assert slow / fast == pytest.approx(16 / 4.5, rel=0.01)


@pytest.mark.parametrize("sizes", [(0, 1, 1), (1, -4, 1), (1, 1, 0)])
def test_a_product_of_nothing(sizes: tuple[int, int, int]) -> None:
    f = format_of("FP16")
    with pytest.raises(InputError, match=r"product of \w = -?\d: expected at least 1"):
        Product(*sizes, f, f, f)


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan])
def test_peaks_that_no_chip_has(value: float) -> None:
    with pytest.raises(InputError, match="expected a rate above 0"):
        Rates("chip", 1e9, {"fp16": value})
    with pytest.raises(InputError, match="bytes/s is"):
        Rates("chip", value, {"fp16": 1e12})
    with pytest.raises(InputError, match="--tflops gives that of 16 bits"):
        Rates("chip", 1e9, {"fp8": 1e12})


def test_a_format_that_is_not() -> None:
    with pytest.raises(InputError, match=r"format 'FP3': expected one of FP32, "):
        format_of("FP3")


def test_peaks_of_the_registry() -> None:
    """GB10: 1 PFLOP sparse, so 500 dense in 4 bits, and 273 GB/s."""
    rates = rates_of(find("GB10"))
    assert rates.bytes_per_s == pytest.approx(273e9, rel=0.01)
    assert (rates.flops_of("fp4"), rates.flops_of("fp8")) == (500e12, 250e12)
    assert capability_of(find("GB10")) == "12.1"
    assert rates_of(find("RTX 3090")).native("fp8") == "fp16"
    assert capability_of(find("M4 Max 40-core")) == ""


def test_what_is_kept_is_what_was_printed() -> None:
    """The printed scores: 70.93 and 71.33 of 72.96, 64.05 and 64.76 of 67.96; medians of two."""
    kept = published()["NVFP4"]
    qwen, llama = (70.93 + 71.33) / 2 / 72.96, (64.05 + 64.76) / 2 / 67.96
    assert (kept.low, kept.high) == pytest.approx((llama, qwen))
    assert kept.share == pytest.approx((qwen + llama) / 2)
    assert kept.n_models == 2
    assert all(k.sources for k in published().values())


def test_a_plan_is_told_by_its_lossiest_format() -> None:
    found = {p.name: kept_by(p) for p in PLANS}
    assert {n: k.format if k else None for n, k in found.items()} == {
        "fp16_baseline": "FP16",
        "fp8_balanced": "FP8_E4M3",
        "w4a16_aggressive": "INT4",
        "nvfp4_blackwell": "NVFP4",
        "hybrid_long_context": "NVFP4",
        "layerwise_gradient": "NVFP4",
    }
    baseline = found["fp16_baseline"]
    assert baseline is not None
    assert baseline.share == 1


def test_a_plan_with_another_cache() -> None:
    plan = plan_of("w4a16_aggressive").with_kv("FP8")
    assert (plan.name, plan.kv.name) == ("w4a16_aggressive+kv_fp8_e4m3", "FP8_E4M3")
    assert plan.with_kv("FP8_E4M3") is plan
    with pytest.raises(InputError, match="plan 'none': expected one of fp16_baseline"):
        plan_of("none")
