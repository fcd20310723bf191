"""Scores mean what they say, and no host outweighs another."""

import numpy as np
import pytest

from tokcast.fits.scores import ape, host_quantiles, score
from tokcast.fits.splits import folds


def test_half_the_measured_speed_is_fifty_percent_off() -> None:
    assert ape(np.log(np.array([2.0]))) == pytest.approx([50.0])


def test_twice_the_measured_speed_is_a_hundred_percent_off() -> None:
    assert ape(np.log(np.array([0.5]))) == pytest.approx([100.0])


def test_the_host_mean_counts_hosts_not_rows() -> None:
    residual = np.log(np.array([1.25] * 9 + [2.0]))
    result = score(residual, ["a"] * 9 + ["b"])
    assert result.mape == pytest.approx(23.0)
    assert result.host_mean_mape == pytest.approx(35.0)


def test_no_residuals_is_an_error() -> None:
    with pytest.raises(ValueError, match="no residuals"):
        score(np.array([]), [])


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_quantiles_hold_the_stated_share_of_new_draws(level: float) -> None:
    rng = np.random.default_rng(0)
    low, high = host_quantiles(rng.standard_normal(2000), [str(i) for i in range(2000)], level)
    fresh = rng.standard_normal(20000)
    assert np.mean((fresh >= low) & (fresh <= high)) == pytest.approx(level, abs=0.02)


def test_a_group_is_never_on_both_sides_and_every_row_is_tested_once() -> None:
    groups = [str(i % 7) for i in range(50)]
    tested = []
    for train, test in folds(groups, 3):
        assert not {groups[i] for i in train} & {groups[i] for i in test}
        tested.extend(test.tolist())
    assert sorted(tested) == list(range(50))
