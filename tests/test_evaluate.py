"""Held-out evaluation: what is left out has no say, what was done is kept, and it runs anywhere."""

import importlib.util
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cohort import small
from joblib import parallel_config

from tokcast.fits import heldout
from tokcast.fits.design import design
from tokcast.fits.evaluate import PhaseEvaluation, evaluate_phase
from tokcast.fits.heldout import Fitter, Held
from tokcast.fits.kept import Store, design_digest
from tokcast.fits.observations import Observation
from tokcast.fits.priors import BELIEFS, prior_of
from tokcast.fits.scores import ape
from tokcast.fits.splits import both_out, by_time, folds

HERE = {"backend": "threading", "n_jobs": 1}


def quiet(_: str) -> None:
    """Say nothing."""


def fitter(
    rows: tuple[Observation, ...],
    store: Store | None = None,
    say: Callable[[str], None] = quiet,
) -> Fitter:
    d = design(rows)
    return Fitter(d, prior_of(d.names, BELIEFS[rows[0].phase]), store or Store(None), say)


def chips_out(rows: tuple[Observation, ...]) -> Held:
    f = fitter(rows)
    with parallel_config(**HERE):
        return f.left_out(f.everything(), list(folds([o.host.name for o in rows], 5)))


@pytest.fixture(scope="module")
def evaluation() -> PhaseEvaluation:
    with parallel_config(**HERE):
        return evaluate_phase(small(), quiet, n_folds=3, before=2025.0)


# --- what is left out has no say


def test_poison_in_a_host_leaves_the_fit_without_it_untouched() -> None:
    rows = small()
    bad = rows[0].host.name
    poisoned = tuple(
        replace(o, tok_per_s=o.tok_per_s * 50) if o.host.name == bad else o for o in rows
    )
    good, evil = fitter(rows), fitter(poisoned)
    start = good.everything()
    train = np.flatnonzero([o.host.name != bad for o in rows])
    test = np.flatnonzero([o.host.name == bad for o in rows])
    with parallel_config(**HERE):
        clean = good.left_out(start, [(train, test)])
        dirty = evil.left_out(start, [(train, test)])
    assert (clean.thetas[0] == dirty.thetas[0]).all()
    assert dirty.residual[test] == pytest.approx(clean.residual[test] + np.log(50))
    assert np.isnan(clean.residual[train]).all()


def test_with_permuted_labels_the_score_collapses() -> None:
    rows = small()
    order = np.random.default_rng(0).permutation(len(rows))
    shuffled = tuple(
        replace(o, tok_per_s=rows[i].tok_per_s) for o, i in zip(rows, order, strict=True)
    )
    true = np.median(ape(chips_out(rows).residual))
    false = np.median(ape(chips_out(shuffled).residual))
    assert true < 25
    assert false > 2 * true


def test_both_sides_share_neither_chip_nor_model() -> None:
    rows = small()
    chips, models = [o.host.name for o in rows], [o.model_id for o in rows]
    tested = []
    for train, test in both_out(chips, models, 3):
        assert not {chips[i] for i in train} & {chips[i] for i in test}
        assert not {models[i] for i in train} & {models[i] for i in test}
        tested += test.tolist()
    assert sorted(tested) == list(range(len(rows)))


def test_time_splits_leave_undated_rows_out() -> None:
    ((train, test),) = by_time([2024.0, None, 2026.5, 2026.0], 2026.0)
    assert (train.tolist(), test.tolist()) == ([0], [2, 3])


# --- kept fits


def test_a_stopped_evaluation_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = small()
    fits = []
    real = heldout.fit
    monkeypatch.setattr(heldout, "fit", lambda *a, **k: (fits.append(1), real(*a, **k))[1])
    splits = list(folds([o.host.name for o in rows], 5))
    store = Store(tmp_path / "fits")

    def stop(text: str) -> None:
        if text == "2/5":
            raise KeyboardInterrupt

    with parallel_config(**HERE):
        first = fitter(rows, store, stop)
        with pytest.raises(KeyboardInterrupt):
            first.left_out(first.everything(), splits)
        kept = len(list(store.folder.glob("*.npz"))) if store.folder else 0
        assert kept == 3
        fits.clear()
        second = fitter(rows, store)
        resumed = second.left_out(second.everything(), splits)
        assert len(fits) == 3
        fits.clear()
        again = second.left_out(second.everything(), splits)
        assert not fits
    whole = chips_out(rows)
    assert np.array_equal(resumed.residual, whole.residual)
    assert np.array_equal(again.residual, whole.residual)


def test_other_data_are_other_fits() -> None:
    rows = small()
    f = fitter(rows)
    faster = replace(rows[0], tok_per_s=rows[0].tok_per_s * 1.001)
    other = design((faster, *rows[1:]))
    assert design_digest(f.design, f.prior) == design_digest(design(rows), f.prior)
    assert design_digest(f.design, f.prior) != design_digest(other, f.prior)
    wider = replace(f.prior, sd=f.prior.sd * 2)
    assert design_digest(f.design, f.prior) != design_digest(f.design, wider)


def test_a_damaged_or_unwritable_store_is_an_empty_one(tmp_path: Path) -> None:
    f = fitter(small())
    found = f.everything()
    store = Store(tmp_path)
    store.save("x", found)
    (tmp_path / "x.npz").write_bytes(b"half")
    assert store.load("x", f.design, f.prior) is None
    file = tmp_path / "file"
    file.write_text("")
    Store(file / "below").save("x", found)
    assert Store(file / "below").load("x", f.design, f.prior) is None
    store.save("y", found)
    loaded = store.load("y", f.design, f.prior)
    assert loaded is not None
    assert np.array_equal(loaded.theta, found.theta)
    assert np.array_equal(loaded.scale, found.scale)
    assert loaded.converged == found.converged


def test_the_oldest_fits_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokcast.fits.kept.MAX_FILES", 2)
    store, found = Store(tmp_path), fitter(small()).everything()
    for name in "abc":
        store.save(name, found)
    assert len(list(tmp_path.glob("*.npz"))) == 2


@pytest.mark.filterwarnings("ignore")
def test_a_local_dask_cluster_finds_the_same() -> None:
    distributed = pytest.importorskip(
        "distributed", reason="dask is not installed: tokcast[cluster]"
    )
    rows = small()
    f = fitter(rows)
    start = f.everything()
    splits = list(folds([o.host.name for o in rows], 3))
    with (
        distributed.Client(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ),
        parallel_config(backend="dask"),
    ):
        there = f.left_out(start, splits)
    with parallel_config(**HERE):
        here = f.left_out(start, splits)
    assert there.residual == pytest.approx(here.residual, abs=1e-12)


# --- the whole of it


def test_every_split_has_its_baselines_and_its_range(evaluation: PhaseEvaluation) -> None:
    names = {s.name for s in evaluation.scores}
    assert names >= {"chip left out", "model left out", "chip and model left out"}
    for s in evaluation.scores:
        assert s.baselines
        low, high = s.sure.host_mean_mape
        assert low <= s.ours.host_mean_mape <= high or s.ours.n_hosts == 1
    assert evaluation.points.shape == (len(small()), 2)
    assert evaluation.shots[0].k == 0


def test_the_page_is_written(evaluation: PhaseEvaluation, tmp_path: Path) -> None:
    from tokcast.cli.accuracy import save, sections

    phases = {"decode": evaluation}
    notes = save(tmp_path, "All", sections(phases, []), phases, {"coefficients": "abc"})
    text = (tmp_path / "accuracy.md").read_text()
    for heading in ("held out", "by kind", "ranges", "a few measurements", "file types by speed"):
        assert f"## Decode: {heading}" in text
    assert "coefficients abc" in text
    plots = sorted(p.name for p in tmp_path.glob("*.svg"))
    if importlib.util.find_spec("matplotlib") is None:
        assert not plots
        assert "matplotlib is missing" in notes[1]
    else:
        assert plots == [f"accuracy-{k}-decode.svg" for k in ("curve", "ladder", "scatter")]
        assert all(name in text for name in plots)


def test_without_matplotlib_there_are_tables(
    evaluation: PhaseEvaluation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tokcast.cli.accuracy import save

    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    notes = save(tmp_path, "All", [], {"decode": evaluation}, {"coefficients": "abc"})
    assert "pip install" in notes[1]
    assert not list(tmp_path.glob("*.svg"))
