"""A few rows of a host: its own effects are learnt, nothing else moves, and the curve falls."""

from dataclasses import replace

import numpy as np
import pytest
from cohort import small

from tokcast.fits.design import design
from tokcast.fits.estimate import predict_log_rate
from tokcast.fits.few_shot import calibrate, error_curve, host_design
from tokcast.fits.observations import Observation
from tokcast.fits.released import released
from tokcast.fits.scoring import predicted_log_rate

EFFECTS = released().effects


def host_rows(n: int = 14) -> list[Observation]:
    name = max((o.host.name for o in small()), key=lambda h: sum(o.host.name == h for o in small()))
    return [o for o in small() if o.host.name == name][:n]


def made(rows: list[Observation], factor: float) -> list[Observation]:
    """Return the rows as a host would measure them that is slower by a factor throughout."""
    rates = np.exp(predicted_log_rate(rows, released())) / factor
    return [replace(o, tok_per_s=float(r)) for o, r in zip(rows, rates, strict=True)]


def test_at_zero_the_design_predicts_what_the_release_does() -> None:
    rows = host_rows()
    d = host_design(rows, EFFECTS)
    zero = predict_log_rate(d, np.zeros(len(d.names)))
    assert zero == pytest.approx(predicted_log_rate(rows, released()), abs=1e-9)
    assert d.log_rate == pytest.approx(design(rows).log_rate)


def test_a_host_as_predicted_stays_as_it_is() -> None:
    assert max(abs(v) for v in calibrate(made(host_rows(), 1.0), EFFECTS).values()) < 1e-6


def test_a_slow_host_is_learnt_from_a_few_rows() -> None:
    rows = made(host_rows(), 1.5)
    own = calibrate(rows[:3], EFFECTS)
    d = host_design(rows[3:], EFFECTS)
    theta = np.array([own.get(name, 0.0) for name in d.names])
    before = d.log_rate - predict_log_rate(d, np.zeros(len(d.names)))
    after = d.log_rate - predict_log_rate(d, theta)
    assert before == pytest.approx(-np.log(1.5))
    assert np.abs(after).max() < 0.1


def test_only_this_hosts_effects_are_returned() -> None:
    rows = host_rows()
    assert all(rows[0].host.name in name for name in calibrate(rows, EFFECTS))


def test_the_curve_falls_where_hosts_differ_from_their_family() -> None:
    rows = []
    for i, name in enumerate(dict.fromkeys(o.host.name for o in small())):
        rows += made([o for o in small() if o.host.name == name], (0.6, 1.6)[i % 2])
    curve = error_curve(rows, [EFFECTS] * len(rows), shots=(0, 1, 3))
    assert [s.k for s in curve] == [0, 1, 3]
    errors = [s.host_mean_mape for s in curve]
    assert errors[0] > 30
    assert errors[0] > 3 * errors[1] > 3 * errors[2]
    assert error_curve(rows, [EFFECTS] * len(rows), shots=(0, 1, 3)) == curve


def test_hosts_without_rows_to_spare_are_left_out() -> None:
    rows = host_rows(3)
    assert [s.k for s in error_curve(rows, [EFFECTS] * 3)] == [0, 1]
    assert error_curve(rows[:1], [EFFECTS]) == []


def test_a_machine_is_an_authors() -> None:
    rows = host_rows(6)
    mine = [replace(o, sources=frozenset({f"me@{i}"})) for i, o in enumerate(rows[:3])]
    yours = [replace(o, sources=frozenset({f"you#{i}"})) for i, o in enumerate(rows[3:])]
    runs = [replace(o, run=rows[0].run) for o in (*mine, *yours)]
    chips = error_curve(runs, [EFFECTS] * 6, shots=(0, 1))
    machines = error_curve(runs, [EFFECTS] * 6, shots=(0, 1), host="machine")
    assert [s.n_hosts for s in chips] == [1, 1]
    assert [s.n_hosts for s in machines] == [2, 2]
