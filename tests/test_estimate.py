"""The estimator recovers what made the data, shrinks what nothing supports, and shrugs off lies."""

import numpy as np
import pytest
from scipy import sparse

from tokcast.fits.estimate import Design, Prior, Settings, fit, linearise, predict_log_rate
from tokcast.fits.priors import Belief, prior_of

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
WIDE = Prior(np.zeros(3), np.full(3, 10.0))


def test_known_effects_are_recovered_exactly_from_clean_data() -> None:
    assert fit(make(TRUTH), WIDE).theta == pytest.approx(TRUTH, abs=1e-3)


def test_standard_errors_have_the_size_of_the_errors() -> None:
    z = []
    for seed in range(40):
        estimate = fit(make(TRUTH, noise=0.08, seed=seed), WIDE, errors=True)
        z.append((estimate.theta - TRUTH) / estimate.stderr)
    assert 0.7 < np.sqrt(np.mean(np.square(z))) < 1.4


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
    narrow = Prior(np.zeros(3), np.array([10.0, 0.01, 10.0]))
    tight = fit(make(TRUTH, noise=0.1), narrow).theta
    assert abs(tight[1]) < abs(free[1])


def test_the_derivative_is_that_of_the_prediction() -> None:
    design, step = make(TRUTH), 1e-6
    _, jacobian = linearise(design, TRUTH)
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


def test_an_effect_falls_back_on_its_prior_mean() -> None:
    believed = Prior(np.array([0.0, 0.7, 0.0]), np.full(3, 10.0))
    first = np.flatnonzero(np.arange(200) % 2 == 0)
    assert fit(make(TRUTH).take(first), believed).theta[1] == pytest.approx(0.7)


def test_the_width_of_a_group_is_estimated() -> None:
    rng = np.random.default_rng(3)
    n_groups, n = 60, 600
    truth = np.concatenate([[0.5], rng.normal(0, 0.2, n_groups)])
    names = ("memory", *(f"chip={i}" for i in range(n_groups)))
    cells = np.zeros((n_groups, n_groups + 1))
    cells[:, 0] = 1
    cells[np.arange(n_groups), 1 + np.arange(n_groups)] = 1
    parts = np.zeros((n, n_groups))
    parts[np.arange(n), np.arange(n) % n_groups] = rng.uniform(1e-3, 1e-1, n)
    empty = Design(
        names,
        sparse.csr_array(cells),
        sparse.csr_array(parts),
        sparse.csr_array(sparse.eye_array(n)),
        np.zeros(n),
        np.ones(n),
    )
    rates = predict_log_rate(empty, truth) + 0.05 * rng.standard_normal(n)
    design = Design(names, empty.cells, empty.parts, empty.average, rates, empty.weight)
    chips = np.arange(1, n_groups + 1)
    prior = Prior(np.zeros(n_groups + 1), np.full(n_groups + 1, 0.7), (chips,))
    estimate = fit(design, prior)
    assert estimate.prior.sd[1] == pytest.approx(0.2, rel=0.35)
    assert estimate.scale == pytest.approx(0.05, rel=0.4)
    assert estimate.converged


def test_the_fit_is_deterministic() -> None:
    design = make(TRUTH, noise=0.1)
    assert (fit(design, WIDE).theta == fit(design, WIDE).theta).all()


def test_it_says_when_it_did_not_converge() -> None:
    assert not fit(make(TRUTH), WIDE, settings=Settings(n_iterations=1)).converged


def test_beliefs_are_the_first_mark_found_and_groups_share_a_width() -> None:
    beliefs = (Belief("|chip=", 0.1, shared=True), Belief("", 3.0, 0.5))
    prior = prior_of(["decode/weights", "decode|chip=x", "decode|chip=y"], beliefs)
    assert prior.sd.tolist() == [3.0, 0.1, 0.1]
    assert prior.mean.tolist() == [0.5, 0.0, 0.0]
    assert [g.tolist() for g in prior.groups] == [[1, 2]]
