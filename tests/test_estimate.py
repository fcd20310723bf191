"""The estimator recovers what made the data, shrinks what nothing supports, and shrugs off lies."""

from dataclasses import replace

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
    rows = np.arange(n)
    design = Design(
        NAMES,
        cells,
        seconds=np.concatenate([memory_s, launch_s]),
        cell=np.concatenate([rows % 2, np.full(n, 2)]),
        group=np.arange(2 * n),
        part=np.concatenate([rows, rows]),
        average=sparse.csr_array(sparse.eye_array(n)),
        log_rate=np.zeros(n),
        weight=np.ones(n),
        noise=np.zeros(n, dtype=np.intp),
    )
    truth = predict_log_rate(design, theta) + noise * rng.standard_normal(n)
    return replace(design, log_rate=truth)


TRUTH = np.array([0.4, -0.3, 1.1])
WIDE = Prior(np.zeros(3), np.full(3, 10.0))


def test_known_effects_are_recovered_exactly_from_clean_data() -> None:
    assert fit(make(TRUTH), WIDE).theta == pytest.approx(TRUTH, abs=2e-3)


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
    poisoned = replace(clean, log_rate=lied)
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


def assert_derivative_is_the_slope(design: Design, step: float = 1e-6) -> None:
    _, jacobian = linearise(design, TRUTH)
    for j in range(3):
        moved = TRUTH.copy()
        moved[j] += step
        slope = (predict_log_rate(design, moved) - predict_log_rate(design, TRUTH)) / step
        assert jacobian.toarray()[:, j] == pytest.approx(slope, abs=1e-4)


def test_the_derivative_is_that_of_the_prediction() -> None:
    assert_derivative_is_the_slope(make(TRUTH))


def test_a_mean_of_rates_is_a_mean_of_rates() -> None:
    design = make(TRUTH, n=2)
    both = replace(
        design,
        average=sparse.csr_array(np.array([[0.5, 0.5]])),
        log_rate=np.zeros(1),
        weight=np.ones(1),
    )
    rates = np.exp(predict_log_rate(design, TRUTH))
    assert np.exp(predict_log_rate(both, TRUTH))[0] == pytest.approx(rates.mean())


def test_an_effect_falls_back_on_its_prior_mean() -> None:
    believed = Prior(np.array([0.0, 0.7, 0.0]), np.full(3, 10.0))
    first = np.flatnonzero(np.arange(200) % 2 == 0)
    assert fit(make(TRUTH).take(first), believed).theta[1] == pytest.approx(0.7)


def one_group(truth: np.ndarray, noise: float, seed: int) -> Design:
    """Return rows of `truth.size - 1` chips under one base effect, the first of `truth`."""
    rng = np.random.default_rng(seed)
    n_groups = truth.size - 1
    n = 10 * n_groups
    cells = np.zeros((n_groups, n_groups + 1))
    cells[:, 0] = 1
    cells[np.arange(n_groups), 1 + np.arange(n_groups)] = 1
    empty = Design(
        ("memory", *(f"chip={i}" for i in range(n_groups))),
        sparse.csr_array(cells),
        seconds=rng.uniform(1e-3, 1e-1, n),
        cell=np.arange(n) % n_groups,
        group=np.arange(n),
        part=np.arange(n),
        average=sparse.csr_array(sparse.eye_array(n)),
        log_rate=np.zeros(n),
        weight=np.ones(n),
        noise=np.zeros(n, dtype=np.intp),
    )
    rates = predict_log_rate(empty, truth) + noise * rng.standard_normal(n)
    return replace(empty, log_rate=rates)


def test_the_width_of_a_group_is_estimated() -> None:
    truth = np.concatenate([[0.5], np.random.default_rng(3).normal(0, 0.2, 60)])
    chips = np.arange(1, 61)
    prior = Prior(np.zeros(61), np.full(61, 0.7), (chips,))
    estimate = fit(one_group(truth, 0.12, seed=3), prior)
    assert estimate.prior.sd[1] == pytest.approx(0.2, rel=0.35)
    assert estimate.scale.item() == pytest.approx(0.1, rel=0.3)
    assert estimate.converged


def test_throttled_chips_do_not_drag_those_with_a_tailed_prior_along() -> None:
    """Of 40 chips four take 7 times as long; the others' centre is the base effect."""
    others = np.random.default_rng(4).normal(0, 0.05, 40)
    truth = np.concatenate([[0.5], others])
    truth[1:5] = 2.0
    rows = one_group(truth, 0.02, seed=4)
    chips = np.arange(1, 41)
    gaussian = Prior(np.zeros(41), np.full(41, 0.3), (chips,))
    tailed = replace(gaussian, tailed=np.arange(41) > 0)
    base = {name: fit(rows, p).theta[0] for name, p in (("g", gaussian), ("t", tailed))}
    assert base["t"] == pytest.approx(0.5, abs=0.05)
    assert base["g"] > 0.6
    assert fit(rows, tailed).theta[1] == pytest.approx(2.0, abs=0.1)


def test_each_class_of_noise_has_its_own_scale() -> None:
    """Rows of two backends, the second four times as noisy; a wide scale lets its rows off."""
    noisy = np.arange(2000) % 2
    quiet = make(TRUTH, n=2000)
    wobble = np.where(noisy, 0.4, 0.1) * np.random.default_rng(5).standard_normal(2000)
    design = replace(quiet, noise=noisy, log_rate=quiet.log_rate + wobble)
    found = fit(design, WIDE)
    assert found.scale[1] / found.scale[0] == pytest.approx(4.0, rel=0.15)
    one = fit(replace(design, noise=np.zeros(2000, dtype=np.intp)), WIDE)
    assert abs(found.theta[0] - TRUTH[0]) < abs(one.theta[0] - TRUTH[0])


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


def test_overlapping_terms_take_the_norm_of_both() -> None:
    """3 and 4 seconds: 7 in a sum, 5 as a 2-norm, 4 as the longer; shares add up to it."""
    for power, seconds in ((1.0, 7.0), (2.0, 5.0), (50.0, 4.0)):
        design = Design(
            ("a", "b"),
            sparse.csr_array(np.eye(2)),
            seconds=np.array([3.0, 4.0]),
            cell=np.array([0, 1]),
            group=np.array([0, 0]),
            part=np.array([0]),
            average=sparse.csr_array(np.eye(1)),
            log_rate=np.zeros(1),
            weight=np.ones(1),
            noise=np.zeros(1, dtype=np.intp),
            power=power,
        )
        total, shares = design.times(np.zeros(2))
        assert total[0] == pytest.approx(seconds, rel=1e-3)
        assert shares.sum() == pytest.approx(total[0])


def test_the_derivative_of_the_norm_is_that_of_the_prediction() -> None:
    base = make(TRUTH)
    assert_derivative_is_the_slope(
        replace(base, group=base.group % 200, part=np.arange(200), power=3.0)
    )
