"""The energy roofline by hand: sums, limits, what follows time, evidence."""

import math
from dataclasses import replace

import pytest

from tokcast.fits.energy_released import released_energy
from tokcast.fits.released import released
from tokcast.hosts.match import find
from tokcast.predictor.catalogue import header
from tokcast.predictor.energy import cap_curve, energy_of, from_json, limited
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.ledger import Workload
from tokcast.predictor.model import model_spec
from tokcast.predictor.power import (
    BEND,
    Activity,
    PowerTerms,
    features_of,
    meter_of,
    power_of,
    reference_watts,
    roofline_of,
)
from tokcast.predictor.power_cap import CapCurve, CapTerms, curve_of, nearest
from tokcast.predictor.prediction import Prediction
from tokcast.predictor.roofline import Question, predict
from tokcast.predictor.terms import Run

HOST = Host(
    name="Test card",
    vendor="NVIDIA",
    kind="discrete_gpu",
    architecture="Test",
    bytes_per_s=1e12,
    fp32_flops_per_s=10e12,
    tdp_w=200.0,
    launch_year=2022,
)
TERMS = PowerTerms(0.2, 0.4, 5.0, 0.5, 0.3, 1.0)
# Half the bandwidth and a hundredth of the rate: 0.2 + 0.2 + 0.05 of 200 W.
DECODE = Activity(1.0, 0.0, 0.5e12, 0.1e12, 0.0)


def test_shares_add_up_by_hand() -> None:
    assert features_of(DECODE, HOST) == (1.0, 0.5, 0.01, 0.0, 0.0)
    base, moving = TERMS.drawn(features_of(DECODE, HOST))
    assert (base, moving) == pytest.approx((0.2, 0.25))
    power = power_of(DECODE, HOST, TERMS)
    assert power is not None
    assert power.watts == pytest.approx(200 * (0.45**-BEND + 1) ** (-1 / BEND))
    assert not power.is_capped


def test_far_above_what_it_sustains_the_chip_draws_that_and_energy_follows_time() -> None:
    power = power_of(replace(DECODE, n_bytes=50e12), HOST, TERMS)
    assert power is not None
    assert power.watts == pytest.approx(200.0, rel=1e-4)
    assert power.is_capped
    assert power.time_share == pytest.approx(1.0, abs=1e-3)


def test_far_below_it_the_terms_add_up_and_only_the_base_follows_time() -> None:
    small = replace(TERMS, cap=100.0)
    power = power_of(DECODE, HOST, small)
    assert power is not None
    assert power.watts == pytest.approx(90.0)
    assert power.time_share == pytest.approx(0.2 / 0.45)


def test_time_share_is_the_slope_of_energy_in_time() -> None:
    def joules(seconds: float) -> float:
        power = power_of(replace(DECODE, decode_seconds=seconds), HOST, TERMS)
        assert power is not None
        return power.watts * seconds

    slope = (math.log(joules(1.001)) - math.log(joules(0.999))) / math.log(1.001 / 0.999)
    power = power_of(DECODE, HOST, TERMS)
    assert power is not None
    assert power.time_share == pytest.approx(slope, rel=1e-5)


def test_the_roofline_is_in_joules() -> None:
    roof = roofline_of(HOST, TERMS, "decode")
    assert roof is not None
    assert roof.base_watts == pytest.approx(40.0)
    assert roof.joules_per_byte == pytest.approx(80e-12)
    assert roof.joules_per_flop == pytest.approx(100e-12)
    assert roof.balance_flops_per_byte == pytest.approx(0.8)


def test_a_limit_is_never_exceeded() -> None:
    busy = replace(DECODE, n_bytes=2e12)
    for watts in (80.0, 120.0, 160.0):
        power = power_of(busy, HOST, TERMS, ends=(-0.1, 0.5), limit_w=watts)
        assert power is not None
        assert power.watts <= watts
        assert power.high <= watts + 1e-9


def test_no_published_power_is_no_energy() -> None:
    unknown = replace(HOST, tdp_w=None)
    assert reference_watts(unknown) is None
    assert power_of(DECODE, unknown, TERMS) is None
    assert roofline_of(unknown, TERMS, "decode") is None


def test_a_laptop_card_with_a_larger_limit_is_judged_by_it() -> None:
    laptop = replace(HOST, name="Test Laptop GPU")
    assert reference_watts(laptop, 190.0) == 200.0
    assert reference_watts(laptop, 300.0) == 300.0
    assert reference_watts(HOST, 300.0) == 200.0


@pytest.mark.parametrize(
    ("name", "meter"),
    [
        ("RTX 4090", "gpu_board"),
        ("GB10", "gpu_part"),
        ("M4 Max 40-core", "soc"),
        ("Ryzen AI Max+ 395", "package"),
    ],
)
def test_meters_are_by_kind_of_chip(name: str, meter: str) -> None:
    assert meter_of(find(name)) == meter


def _predicted(host: Host) -> tuple[Prediction, Run]:
    spec = model_spec(header("llama-3.1-8b", "Q4_K_M"))
    run = Run(backend="CUDA" if host.vendor == "NVIDIA" else "Vulkan", year=2026.0)
    return predict(spec, Question(Workload("decode", n_depth=64), host, run), released()), run


def test_evidence_and_its_width() -> None:
    widths = {}
    for name in ("RTX 4090", "RTX 4070", "Arc B580", "Ryzen 9 7950X"):
        host = find(name)
        p, run = _predicted(host)
        e = energy_of(p, host, run.backend, released_energy())
        assert e is not None
        assert e.low < e.joules_per_token < e.high
        assert e.joules_per_token == pytest.approx(e.power.watts / p.tok_per_s)
        widths[e.evidence] = math.log(e.high / e.low)
    assert set(widths) == {"same host", "other hosts, same meter", "data sheet only"}
    assert widths["data sheet only"] > widths["other hosts, same meter"]


def test_coefficients_of_another_schema_are_refused() -> None:
    with pytest.raises(InputError, match=r"energy coefficients of schema 9; expected 1"):
        from_json({"schema": 9})


CURVE = CapCurve(base_watts=100.0, knee_watts=200.0, drawn_watts=400.0, speed_at_knee=0.8)


def test_speed_under_a_limit_by_hand() -> None:
    assert CURVE.speed(500.0) == 1.0
    assert CURVE.speed(400.0) == 1.0
    assert CURVE.speed(200.0) == pytest.approx(0.8)
    assert CURVE.speed(150.0) == pytest.approx(0.4)
    # Half way in logs, half the loss in logs.
    assert CURVE.speed(math.sqrt(200 * 400)) == pytest.approx(math.sqrt(0.8))
    speeds = [CURVE.speed(w) for w in range(110, 420, 10)]
    assert speeds == sorted(speeds)


def test_energy_is_least_at_the_knee() -> None:
    best = CURVE.best(100.0, 400.0)
    assert best == 200.0
    assert all(CURVE.energy(w) >= CURVE.energy(best) for w in range(110, 400, 10))
    assert CURVE.best(250.0, 400.0) == 250.0


def test_a_busier_workload_has_a_higher_knee() -> None:
    terms = CapTerms(0.2, 0.6, None, 0.9, 2022)
    knees = []
    for share in (0.2, 0.4, 0.6):
        curve = curve_of(HOST, terms, "decode", share, 400.0)
        assert curve is not None
        knees.append(curve.knee_watts)
    assert knees == pytest.approx([64.0, 88.0, 112.0])
    assert curve_of(HOST, terms, "prefill", 0.5, 400.0) is None


def test_an_unswept_chip_takes_the_nearest_in_years() -> None:
    known = {
        "old": CapTerms(0.3, 1.0, 0.4, 0.9, 2018),
        "new": CapTerms(0.1, 0.7, None, 0.9, 2023),
    }
    assert nearest(HOST, "decode", known) == "new"
    assert nearest(HOST, "prefill", known) == "old"
    assert nearest(replace(HOST, kind="cpu"), "decode", known) is None


def test_a_limited_prediction_is_slower_as_a_whole() -> None:
    host = find("RTX 4090")
    p, run = _predicted(host)
    energy = energy_of(p, host, run.backend, released_energy())
    assert energy is not None
    found = cap_curve(p, energy, host, released_energy())
    assert found is not None
    slow = limited(p, found[0], 200.0)
    left = found[0].speed(200.0)
    assert left < 1
    assert slow.tok_per_s == pytest.approx(left * p.tok_per_s)
    assert sum(c.seconds for c in slow.components) == pytest.approx(slow.seconds, rel=1e-6)
