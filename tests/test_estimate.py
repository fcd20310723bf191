"""The estimator recovers what made the data, shrinks what nothing supports, and shrugs off lies."""

import numpy as np
import pytest
from scipy import sparse

from tokcast.fits.estimate import Design, fit, predict_log_rate, prior_of

NAMES = ("memory", "memory|b", "launch")


def make(theta: np.ndarray, n: int = 200, noise: float = 0.0, seed: int = 1) -> Design:
    """Rates of two backends: a memory term (doubly scaled on the second) and a launch term."""
    rng = np.random.default_rng(seed)
    cells = sparse.csr_array(np.array([[1.0, 0, 0], [1, 1, 0], [0, 0, 1]]))
    memory_s = rng.uniform(1e-3, 1e-1, n)
    launch_s = rng.uniform(1e-4, 1e-2, n)
    parts = np.zeros((n, 3))
    second = np.arange(n) % 2
    parts[np.arange(n), second] = memory_s
    parts[:, 2] = launch_s
    design = Design(
        NAMES,
        cells,
        sparse.csr_array(parts),
        sparse.csr_array(sparse.eye_array(n)),
        np.zeros(n),
        np.ones(n),
    )
    truth = predict_log_rate(design, theta) + noise * rng.standard_normal(n)
    return Design(NAMES, cells, design.parts, design.average, truth, design.weight)


TRUTH = np.array([0.4, -0.3, 1.1])
WIDE = np.full(3, 10.0)


def test_known_effects_are_recovered_exactly_from_clean_data() -> None:
    assert fit(make(TRUTH), WIDE).theta == pytest.approx(TRUTH, abs=1e-3)


def test_standard_errors_cover_the_truth() -> None:
    misses = 0
    for seed in range(20):
        estimate = fit(make(TRUTH, noise=0.08, seed=seed), WIDE, errors=True)
        misses += int(np.sum(np.abs(estimate.theta - TRUTH) > 3 * estimate.stderr))
    assert misses <= 2


def test_a_tenth_of_absurd_rows_hardly_moves_the_fit() -> None:
    clean = make(TRUTH, noise=0.05)
    lied = clean.log_rate.copy()
    lied[::10] += 3.0
    poisoned = Design(NAMES, clean.cells, clean.parts, clean.average, lied, clean.weight)
    moved = fit(poisoned, WIDE).theta - fit(clean, WIDE).theta
    assert np.abs(moved).max() < 0.05


def test_an_effect_without_rows_stays_at_its_prior() -> None:
    design = make(TRUTH)
    first = np.flatnonzero(np.arange(200) % 2 == 0)
    assert fit(design.take(first), WIDE).theta[1] == 0.0


def test_a_tight_prior_shrinks_towards_zero() -> None:
    free = fit(make(TRUTH, noise=0.1), WIDE).theta
    tight = fit(make(TRUTH, noise=0.1), np.array([10.0, 0.01, 10.0])).theta
    assert abs(tight[1]) < abs(free[1])


def test_the_derivative_is_that_of_the_prediction() -> None:
    from tokcast.fits.estimate import _linearise

    design, step = make(TRUTH), 1e-6
    _, jacobian = _linearise(design, TRUTH)
    for j in range(3):
        moved = TRUTH.copy()
        moved[j] += step
        slope = (predict_log_rate(design, moved) - predict_log_rate(design, TRUTH)) / step
        assert jacobian.toarray()[:, j] == pytest.approx(slope, abs=1e-4)


def test_a_mean_of_rates_is_a_mean_of_rates() -> None:
    design = make(TRUTH, n=2)
    both = Design(
        NAMES,
        design.cells,
        design.parts,
        sparse.csr_array(np.array([[0.5, 0.5]])),
        np.zeros(1),
        np.ones(1),
    )
    rates = np.exp(predict_log_rate(design, TRUTH))
    assert np.exp(predict_log_rate(both, TRUTH))[0] == pytest.approx(rates.mean())


def test_priors_are_the_first_mark_found() -> None:
    table = (("|chip=", 0.1), ("", 3.0))
    assert prior_of(["decode/weights", "decode|chip=x"], table).tolist() == [3.0, 0.1]
