"""File types beside each other on the same models: effects that a hand can work out."""

import math
import statistics

import numpy as np
import pytest

from tokcast.predictor.select.quality import published
from tokcast.predictor.select.types import (
    LEAST_LOSS,
    MOST_BITS,
    preference,
    standing,
    two_way,
    type_loss,
)


def test_effects_add_up_where_they_do() -> None:
    """Two models that differ by 1, types that differ by 2: from three of the four cells."""
    cells = [(("a", True), "x", 1.0), (("a", True), "y", 3.0), (("b", False), "y", 4.0)]
    rows, columns = two_way(cells)
    assert columns["y"] - columns["x"] == pytest.approx(2.0, abs=1e-4)
    assert rows["b", False] - rows["a", True] == pytest.approx(1.0, abs=1e-4)
    assert rows["a", True] + columns["x"] == pytest.approx(1.0, abs=1e-4)
    assert sum(columns.values()) == pytest.approx(0.0)


def test_a_type_measured_on_lossy_models_alone_is_not_taken_for_a_lossy_type() -> None:
    """Of y the mean is higher than of x, yet on the model that has both it loses less."""
    cells = [(("easy", True), "x", 1.0), (("hard", True), "x", 5.0), (("hard", True), "y", 4.5)]
    _, columns = two_way(cells)
    assert columns["y"] - columns["x"] == pytest.approx(-0.5, abs=1e-4)


def _cells() -> dict[tuple[tuple[str, bool], str], float]:
    found: dict[tuple[tuple[str, bool], str], list[float]] = {}
    for row in published():
        kind = (row.metric, row.reference, row.text, row.kv_type)
        if kind == ("ppl_ratio", "16-bit", "wikitext-2", ""):
            loss = math.log(max(math.log(row.value), LEAST_LOSS))
            place = ((row.model, row.imatrix == "yes"), row.file_type)
            found.setdefault(place, []).append(loss)
    return {place: statistics.median(v) for place, v in found.items()}


def test_the_packaged_types_are_least_squares() -> None:
    """The same normal equations solved by numpy; and all cells hang together."""
    cells = _cells()
    blocks = sorted({b for b, _ in cells})
    names = sorted({t for _, t in cells})
    a = np.zeros((len(cells), len(blocks) + len(names)))
    for i, (b, t) in enumerate(cells):
        a[i, blocks.index(b)] = a[i, len(blocks) + names.index(t)] = 1.0
    assert np.linalg.matrix_rank(a) == a.shape[1] - 1
    found, *_ = np.linalg.lstsq(a, np.array(list(cells.values())), rcond=None)
    effect = dict(zip(names, found[len(blocks) :], strict=True))
    shown = {t: known for t in names if (known := type_loss(t)) is not None}
    first = shown["Q4_K_M"]
    for name, known in shown.items():
        ratio = math.log(known.ratio) / math.log(first.ratio)
        assert math.log(ratio) == pytest.approx(effect[name] - effect["Q4_K_M"], abs=1e-3)


def test_types_of_a_family_lose_less_with_more_bits() -> None:
    for family in (
        ("Q8_0", "Q6_K", "Q5_K_M", "Q5_K_S", "Q4_K_M", "Q4_K_S", "Q3_K_L", "Q3_K_M", "Q3_K_S"),
        ("IQ4_NL", "IQ4_XS", "IQ3_M", "IQ3_XXS", "IQ2_M", "IQ2_XS", "IQ1_M", "IQ1_S"),
        ("Q8_0", "Q5_1", "Q5_0", "Q4_1", "Q4_0"),
    ):
        ratios = [known.ratio for t in family if (known := type_loss(t)) is not None]
        assert len(ratios) == len(family)
        assert ratios == sorted(ratios)


def test_few_models_say_nothing() -> None:
    assert type_loss("mlx-4bit") is None
    assert type_loss("UD-IQ1_M") is None
    known = type_loss("Q4_K_M")
    assert known is not None
    assert known.n_models > 20
    sixteen = type_loss("F16")
    assert sixteen is not None
    assert sixteen.ratio == 1.0


def test_preference() -> None:
    assert preference("Q6_K", 6.6) < preference("Q5_K_M", 5.7) < preference("Q4_K_M", 4.9)
    assert preference("Q8_0", 8.5) < preference("F16", 16.0)
    # Nothing published: more bits first, up to what 8-bit blocks take.
    assert preference("mlx-8bit", 8.5) < preference("mlx-6bit", 6.5)
    assert preference("mlx-8bit", 8.5) < preference("strange", MOST_BITS + 1)
    assert [standing("Q4_K_M", 4.9), standing("mlx-4bit", 4.5), standing("Q2_K", 3.0)] == [0, 1, 2]
    assert standing("strange", 2.0) == 3


def test_a_model_is_best_in_the_type_it_was_published_in() -> None:
    """gpt-oss was trained to MXFP4 experts; wider weights around them add bytes alone."""
    published = preference("MXFP4_MOE", 4.6, "gpt-oss")
    assert published < preference("F32", 6.6, "gpt-oss")
    assert published < preference("Q8_0", 4.6, "gpt-oss")
    assert preference("MXFP4_MOE", 4.6, "qwen3moe") > preference("Q8_0", 8.5, "qwen3moe")
