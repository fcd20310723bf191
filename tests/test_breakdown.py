"""Errors by kind, their bootstrap, and how often intervals hold."""

import numpy as np
import pytest
from cohort import small

from tokcast.fits.breakdown import KEYS, bootstrap, breakdown, depth_band, kind_of, size_band
from tokcast.fits.coverage import coverage
from tokcast.fits.intervals import LeftOut, has_relatives, intervals_of, left_out_of
from tokcast.fits.scores import score
from tokcast.fits.splits import CHIP_OUT, FAMILY_OUT


def test_the_bootstrap_is_seeded_and_brackets_the_score() -> None:
    rng = np.random.default_rng(1)
    hosts = [f"h{i % 30}" for i in range(600)]
    residual = 0.1 * rng.standard_normal(600)
    found = bootstrap(residual, hosts)
    assert found == bootstrap(residual, hosts)
    s = score(residual, hosts)
    for (low, high), value in (
        (found.median_ape, s.median_ape),
        (found.mape, s.mape),
        (found.host_mean_mape, s.host_mean_mape),
    ):
        assert low < value < high
        assert high - low < value


def test_rows_of_a_host_are_drawn_together() -> None:
    """Ten hosts, one of them wrong: its share of the mean moves as a host's does, not a row's."""
    residual = np.where(np.arange(1000) < 100, np.log(2.0), 0.0)
    by_host = bootstrap(residual, [f"h{i // 100}" for i in range(1000)])
    by_row = bootstrap(residual, [str(i) for i in range(1000)])
    assert by_host.mape[1] - by_host.mape[0] > 3 * (by_row.mape[1] - by_row.mape[0])


def test_one_host_has_no_range() -> None:
    found = bootstrap(np.array([0.1, 0.2, 0.3]), ["a"] * 3)
    assert found.mape[0] == pytest.approx(found.mape[1])


def test_every_row_falls_into_one_class_of_each_key() -> None:
    rows = small()
    residual = np.zeros(len(rows))
    residual[0] = np.nan
    for key, classes in breakdown(rows, residual).items():
        assert key in KEYS
        assert sum(s.n for s in classes.values()) <= len(rows) - 1
        assert all(s.n >= 10 for s in classes.values())
    assert {kind_of(o) for o in rows} <= {"dense", "MoE"}
    assert all(depth_band(o) and size_band(o) for o in rows)


def test_bands_name_their_rows() -> None:
    suite = next(o for o in small() if o.is_suite)
    assert depth_band(suite) == "LocalScore's nine lengths"
    single = next(o for o in small() if not o.is_suite and o.workloads[0].n_depth < 1000)
    assert depth_band(single) == "0 to 1k"
    eight = next(o for o in small() if o.model_id == "llama-3.1-8b")
    assert size_band(eight) == "5 to 10 B"


def test_intervals_hold_on_folds_that_had_no_part_in_them() -> None:
    rows = small()
    residual = 0.2 * np.random.default_rng(2).standard_normal(len(rows))
    left = left_out_of(rows, {FAMILY_OUT: residual})
    by_level = {c.level: c for c in coverage(left)}
    assert 65 < by_level[0.8].host_mean < 95
    assert by_level[0.95].host_mean > 85
    assert by_level[0.95].width > by_level[0.8].width > 1


def test_a_host_far_off_is_not_covered_by_its_own_errors() -> None:
    rows = small()
    hosts = np.array([o.host.name for o in rows])
    residual = 0.01 * np.random.default_rng(2).standard_normal(len(rows))
    far = hosts == hosts[0]
    residual[far] += 3.0
    covered = next(c for c in coverage(left_out_of(rows, {FAMILY_OUT: residual})) if c.level == 0.8)
    assert covered.rows <= 100 * (1 - far.mean()) + 1e-9


def test_a_backend_that_scatters_more_has_a_wider_interval() -> None:
    """Forty chips a backend, the second twice as far off: two fifths of five chips' worth short."""
    rng = np.random.default_rng(4)
    n = 4000
    vulkan = np.arange(n) % 2 == 1
    left = LeftOut(
        np.clip(rng.standard_normal(n), -2, 2) * np.where(vulkan, 0.2, 0.1),
        tuple(f"h{i % 80}" for i in range(n)),
        ("same host",) * n,
        tuple("Vulkan" if v else "CUDA" for v in vulkan),
    )
    ends = intervals_of(left)
    wide, narrow = (np.ptp(ends[f"same host/{b}"]["0.8"]) for b in ("Vulkan", "CUDA"))
    assert wide / narrow == pytest.approx(2.0, rel=0.12)
    # A backend without a row lies between.
    assert narrow < np.ptp(ends["same host/SYCL"]["0.8"]) < wide


def test_a_chip_without_relatives_says_nothing_of_its_family() -> None:
    rows = small()
    alone = ~has_relatives(rows)
    left = left_out_of(rows, {CHIP_OUT: np.zeros(len(rows)), FAMILY_OUT: np.zeros(len(rows))})
    assert left.of("same chip family").residual.size == len(rows) - alone.sum()
    assert left.of("spec sheet only").residual.size == len(rows)
