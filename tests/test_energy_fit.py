"""Fits of energy: known shares recovered, kinds apart, poisoned rows kept out, sweeps, laws."""

import math
from dataclasses import replace

import numpy as np
import pytest

from tokcast.fits.energy import (
    EnergyDesign,
    energy_design,
    fit_energy,
    is_free,
    predict_log_share,
)
from tokcast.fits.energy_names import file_type_of
from tokcast.fits.energy_observations import EnergyObservation, observe_energy
from tokcast.fits.loading import loading_seconds
from tokcast.fits.power_cap import Sweep, base_watts, cap_terms, score_caps, sweeps
from tokcast.fits.scaling import LawRows, fit_law
from tokcast.fits.scaling_released import released_laws
from tokcast.measurements.energy_rows import packaged_energy
from tokcast.predictor.errors import InputError
from tokcast.predictor.power import BEND, features_of


@pytest.fixture(scope="module")
def observed() -> tuple[EnergyObservation, ...]:
    return tuple(o for o in observe_energy(packaged_energy())[0] if is_free(o))


def _synthetic(terms: np.ndarray, n: int = 400) -> EnergyDesign:
    rng = np.random.default_rng(5)
    decode = np.arange(n) % 2 == 0
    features = np.column_stack(
        [
            np.where(decode, 1.0, 0.0),
            rng.uniform(0.05, 0.9, n),
            np.where(decode, rng.uniform(0.0, 0.06, n), 0.0),
            np.where(decode, 0.0, 1.0),
            np.where(decode, 0.0, rng.uniform(0.05, 1.0, n)),
        ]
    )
    free = features @ terms[:5]
    share = (free**-BEND + terms[5] ** -BEND) ** (-1 / BEND)
    return EnergyDesign(
        features, np.log(share), np.ones(n), ("m",) * n, ("m|f",) * n, ("u|CUDA",) * n
    )


def test_known_shares_are_recovered() -> None:
    terms = np.array([0.2, 0.35, 6.0, 0.5, 0.25, 0.9])
    fitted = fit_energy(_synthetic(terms))
    assert np.exp(fitted.units["u|CUDA"]) == pytest.approx(terms, rel=0.03)


def test_a_wrong_row_hardly_moves_the_others() -> None:
    design = _synthetic(np.array([0.2, 0.35, 6.0, 0.5, 0.25, 0.9]))
    log_share = design.log_share.copy()
    log_share[::40] += 3.0
    fitted = fit_energy(replace(design, log_share=log_share))
    residual = design.log_share - predict_log_share(fitted, design)
    assert np.median(np.abs(residual)) < 0.02


def test_meters_share_nothing(observed: tuple[EnergyObservation, ...]) -> None:
    """Nonsense from one kind of meter leaves the shares of the others as they were."""
    clean = fit_energy(energy_design(observed))
    poisoned = [replace(o, watts=o.watts * 9) if o.kind == "soc" else o for o in observed]
    fitted = fit_energy(energy_design(poisoned))
    for unit, shares in clean.units.items():
        if "Apple" not in unit:
            assert fitted.units[unit] == pytest.approx(shares, abs=0.02)


def test_a_held_out_host_never_reaches_the_fit(observed: tuple[EnergyObservation, ...]) -> None:
    others = [o for o in observed if "GB10" not in o.host.name]
    poisoned = [replace(o, watts=1e5) if "GB10" in o.host.name else o for o in observed]
    rows = np.array([i for i, o in enumerate(poisoned) if "GB10" not in o.host.name])
    left = fit_energy(energy_design(poisoned).take(rows))
    clean = fit_energy(energy_design(others))
    assert all(left.units[u] == pytest.approx(v) for u, v in clean.units.items())


def test_rows_of_training_and_of_limits_below_the_usual_are_not_in_it(
    observed: tuple[EnergyObservation, ...],
) -> None:
    assert {o.phase for o in observed} == {"decode", "prefill", "request"}
    for o in observed:
        tdp = o.host.tdp_w or 0.0
        is_usual = o.limit_w is None or 0.97 * tdp <= o.limit_w <= 1.05 * tdp
        # A limit that a card does not reach holds nothing down; a laptop's is its own.
        assert is_usual or o.watts < 0.97 * (o.limit_w or 0) or "Laptop" in o.host.name
    assert all(
        math.isclose(features_of(o.activity, o.host)[0] + features_of(o.activity, o.host)[3], 1.0)
        for o in observed
    )


@pytest.mark.parametrize(
    ("spelled", "found"),
    [
        ("q4_K_M", "Q4_K_M"),
        ("UD-Q3_K_XL", "Q3_K_L"),
        ("q6_K_L", "Q6_K"),
        ("gguf-q8_0", "Q8_0"),
        ("bf16", "BF16"),
        ("fp8", "Q8_0"),
        ("what", None),
    ],
)
def test_file_types_of_sources(spelled: str, found: str | None) -> None:
    assert file_type_of(spelled) == found


def test_loading_is_told_from_mean_powers() -> None:
    seconds = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]
    watts = [100 - 80 * 3.0 / (3.0 + t) for t in seconds]
    assert loading_seconds(seconds, watts) == pytest.approx(3.0, rel=0.15)
    assert loading_seconds([1, 2, 4, 8], [100, 100, 100, 100.0]) >= 0


def _sweep(name: str, share: float) -> Sweep:
    """A card of 350 W that keeps 105 W at any clock, its knee at 105 + 350 x share W."""
    knee = 105 + 350 * share
    limits = tuple(float(w) for w in range(190, 400, 10))
    speeds = [
        0.9 * (w - 105) / (knee - 105) if w < knee else 0.9 * (w / knee) ** 0.3 for w in limits
    ]
    watts = tuple(min(w, 345.0) for w in limits)
    return Sweep(name, "NVIDIA GeForce RTX 3090", "decode", limits, watts, tuple(speeds), share)


def test_a_sweep_is_predicted_from_another() -> None:
    found = [_sweep("a", 0.3), _sweep("b", 0.5)]
    assert base_watts(found[0]) == pytest.approx(105.0, rel=0.02)
    terms = cap_terms(found)["NVIDIA GeForce RTX 3090"]
    assert terms.base == pytest.approx(0.3, rel=0.03)
    assert all(s.steps <= 1 for s in score_caps(found))


def test_published_sweeps_left_out_are_found_within_a_step() -> None:
    scores = score_caps(sweeps(packaged_energy()))
    assert len(scores) == 8
    assert max(s.steps for s in scores) <= 1
    assert max(s.speed_mape for s in scores) < 5


def test_requests_that_queue_move_no_more_than_one() -> None:
    """Four together at 46 tok/s where one alone has 52 were not computed together."""
    found = {s.name: s for s in sweeps(packaged_energy()) if "4090" in s.chip}
    single, four = (found[f"Qwen3.6-27B-UD-Q3_K_XL.gguf{x}, decode"] for x in ("", " x4"))
    assert four.tok_per_s[four.usual] < single.tok_per_s[single.usual]
    assert four.bandwidth_share == single.bandwidth_share


def test_a_known_law_is_recovered_with_its_interval() -> None:
    rng = np.random.default_rng(11)
    n = 600
    chips = rng.integers(0, 30, n)
    x = np.column_stack(
        [
            rng.uniform(20, 25, n),
            rng.uniform(1.0, 2.8, n),
            rng.uniform(24, 28, 30)[chips],
            rng.uniform(0, 3, n),
        ]
    )
    y = 2.0 - 0.8 * x[:, 0] - 0.7 * x[:, 1] + x[:, 2] - 0.1 * x[:, 3]
    y = y + rng.normal(0, 0.05, n) + rng.normal(0, 0.05, 30)[chips]
    rows = LawRows(
        "tok/s",
        "CUDA",
        y,
        x,
        tuple(map(str, chips)),
        tuple(map(str, chips)),
        x[:, 0] + x[:, 1] - np.log(8) - x[:, 2],
    )
    law = fit_law(rows)
    assert law is not None
    for name, truth in (("active parameters", -0.8), ("bits a weight", -0.7), ("bandwidth", 1.0)):
        e = law.exponents[name]
        assert e.value == pytest.approx(truth, abs=0.04)
        assert e.low < truth < e.high
    assert (law.exponents["active parameters"].p_roofline or 1) < 0.001
    assert (law.exponents["bandwidth"].p_roofline or 0) > 0.05
    assert law.held_out_mape < 10


def test_too_few_rows_have_no_law() -> None:
    rows = LawRows("tok/s", "X", np.ones(5), np.ones((5, 4)), ("a",) * 5, ("b",) * 5, np.ones(5))
    assert fit_law(rows) is None


def test_extrapolation_is_told() -> None:
    law = next(x for x in released_laws() if (x.response, x.group) == ("tok/s", "CUDA"))
    inside = {"active parameters": 8e9, "bits a weight": 4.9, "bandwidth": 1e12, "depth": 1.0625}
    assert law.outside(inside) == ()
    value, low, high = law.predict(inside)
    assert low < value < high
    assert "bandwidth" in law.outside({**inside, "bandwidth": 1e14})[0]
    with pytest.raises(InputError, match=r"the law needs bandwidth; give a number"):
        law.predict({k: v for k, v in inside.items() if k != "bandwidth"})


def test_released_laws_lie_between_launches_and_the_roof() -> None:
    for law in released_laws():
        if law.response == "tok/s":
            assert -1.1 < law.exponents["active parameters"].value < -0.4
