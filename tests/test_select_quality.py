"""Published figures: medians worked by hand, and blanks where nothing was published."""

import pytest

from tokcast.predictor.select.quality import METRICS, Loss, band_of, cache_loss, loss_of


@pytest.mark.parametrize(
    ("n_params", "band"),
    [(2.9e9, "<3B"), (3e9, "3-6B"), (8e9, "6-16B"), (16e9, "16-50B"), (70e9, ">50B")],
)
def test_bands(n_params: float, band: str) -> None:
    assert band_of(n_params) == band


@pytest.mark.parametrize(
    ("n_params", "file_type", "imatrix", "expected"),
    [
        # median (models: min - max), as a spreadsheet gives them from the same rows
        (8e9, "Q4_K_M", True, (1.007, 5, 1.001, 1.024)),
        (8e9, "Q4_K_M", False, (1.013, 6, 0.999, 1.033)),
        (1e9, "Q2_K", False, (4.395, 4, 1.108, 10.001)),
        (70e9, "Q8_0", False, (1.000, 10, 0.999, 1.002)),
        (4e9, "UD-Q4_K_XL", True, (1.029, 2, 1.019, 1.039)),
    ],
)
def test_a_band_s_figure_is_the_median_over_models(
    n_params: float, file_type: str, imatrix: bool, expected: tuple[float, int, float, float]
) -> None:
    figure = loss_of("", n_params, file_type, imatrix).ppl_ratio
    assert figure is not None
    found = (figure.value, figure.n, figure.low, figure.high)
    assert found == pytest.approx(expected, abs=6e-4)
    assert (figure.of, figure.imatrix) == (f"{band_of(n_params)} models", imatrix)
    assert figure.sources
    assert figure.reference == "16-bit"
    assert figure.text == "wikitext-2"


def test_a_model_s_own_figure_goes_before_its_band_s() -> None:
    loss = loss_of("llama-3-8b", 8e9, "Q4_K_M", False)
    assert loss.ppl_ratio is not None
    assert loss.ppl_ratio.of == "LLaMA 3 8b"
    assert (loss.ppl_ratio.n, round(loss.ppl_ratio.value, 3)) == (1, 1.028)
    # llama.cpp's table prints 91.901 % and 0.031273 for this file.
    assert loss.same_top_pct is not None
    assert loss.same_top_pct.value == 91.901
    assert loss.kld_mean is not None
    assert loss.kld_mean.value == 0.031273


def test_without_knowing_how_a_file_was_made_more_models_decide() -> None:
    unknown = loss_of("", 8e9, "Q4_K_M", None).ppl_ratio
    assert unknown is not None
    assert (unknown.imatrix, unknown.n) == (False, 6)
    only_with = loss_of("", 8e9, "IQ1_M", None).ppl_ratio
    assert only_with is not None
    assert only_with.imatrix


def test_blank_where_nothing_was_published() -> None:
    assert loss_of("", 8e9, "TQ1_0", None) == Loss()
    assert loss_of("", 8e9, "mlx-4bit", None).ppl_ratio is None
    assert Loss().figures == ()


def test_mlx_is_beside_eight_bits_and_says_so() -> None:
    figure = loss_of("", 30e9, "mlx-4bit", None).ppl_ratio
    assert figure is not None
    assert (figure.reference, figure.text) == ("8-bit", "tulu-3")


def test_cache_types_have_figures_of_their_own() -> None:
    eight = cache_loss("Q8_0", "Q8_0")
    assert eight.kld_mean is not None
    assert eight.kld_mean.value == pytest.approx((0.00098 + 0.001549) / 2)
    assert cache_loss("F16", "F16") == Loss()
    assert cache_loss("IQ4_NL", "Q4_1") == Loss()


def test_spreads_hold_their_medians() -> None:
    for n_params in (1e9, 4e9, 8e9, 30e9, 70e9):
        for file_type in ("Q2_K", "Q4_0", "Q4_K_M", "IQ4_XS", "Q6_K", "Q8_0"):
            for imatrix in (True, False, None):
                for figure in loss_of("", n_params, file_type, imatrix).figures:
                    assert figure.low <= figure.value <= figure.high
                    assert figure.metric in METRICS
                    assert figure.n >= 1
