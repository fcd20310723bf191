"""Fits of training cost: a law is found again, rows are read as published, bad rows are named."""

import gzip
import math
from dataclasses import replace
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from tokcast.fits.scores import host_quantiles
from tokcast.fits.training import fit_boards, fit_sweep, left_out
from tokcast.fits.training_observations import TrainObservation, of_published, of_sweep
from tokcast.fits.training_release import exponents, released_laws, sweep_host
from tokcast.fits.training_scores import around_zero, few_groups, within
from tokcast.measurements.energy_rows import packaged_energy
from tokcast.measurements.training_published import SHAPES, runs
from tokcast.measurements.training_runs import (
    COLUMNS,
    TrainPoint,
    TrainRun,
    append,
    packaged,
    read,
)
from tokcast.predictor.errors import InputError
from tokcast.predictor.training.layout import Layout, Link, efficiency
from tokcast.predictor.training.work import Step

SWEEP = packaged()
ROWS = of_sweep(SWEEP, sweep_host(SWEEP[0]))
BOARDS = of_published(runs())


def made_with(rows: list[TrainObservation], noise: float, link: Link) -> list[TrainObservation]:
    """Return the rows with times that a known law makes, with noise of a stated seed."""
    rng = np.random.default_rng(5)

    def cost(row: TrainObservation) -> float:
        found = row.found(1.0)
        alone = math.exp(0.8 * found["compute"] + 0.95 * found["size"])
        at = efficiency(alone, row.shape, row.step, row.layout, link)
        return alone / at * math.exp(noise * rng.standard_normal())

    return [replace(row, device_seconds=cost(row)) for row in rows]


def test_a_known_law_and_link_are_found_again() -> None:
    link = Link(5e8, 2e-3, overlaps=False)
    fitted = fit_sweep(made_with(ROWS, 0.01, link))
    found = exponents(fitted)
    assert found["alpha"][0] == pytest.approx(0.8, abs=0.02)
    assert found["alpha"][0] + found["beta"][0] == pytest.approx(0.95, abs=0.02)
    assert found["gamma"][0] == pytest.approx(-1, abs=0.03)
    assert fitted.link is not None
    assert fitted.link.bytes_per_s == pytest.approx(5e8, rel=0.15)
    assert fitted.link.latency_s == pytest.approx(2e-3, rel=0.15)


def test_a_lie_does_not_pull_the_law() -> None:
    link = Link(5e8, 2e-3, overlaps=False)
    rows = made_with(ROWS, 0.01, link)
    rows[0] = replace(rows[0], device_seconds=rows[0].device_seconds * 100)
    assert exponents(fit_sweep(rows))["alpha"][0] == pytest.approx(0.8, abs=0.02)


def test_a_row_left_out_is_not_seen() -> None:
    rows = [row for row in ROWS if row.layout.n_devices == 1][:30]
    rows[0] = replace(rows[0], device_seconds=rows[0].device_seconds * 50, group="lie")
    residual = left_out(rows, [row.group for row in rows], "seconds", fit_sweep)
    assert residual[0] == pytest.approx(math.log(50), abs=0.5)


def test_without_a_row_of_one_process_there_is_no_law() -> None:
    with pytest.raises(ValueError, match="no row of one process"):
        fit_sweep([row for row in ROWS if row.layout.n_devices > 1])


def test_targets_on_what_the_fit_did_not_see() -> None:
    """Published rows with their configuration left out, the sweep with its points left out."""
    boards = left_out(BOARDS, [b.group for b in BOARDS], "joules", fit_boards)
    assert np.abs(np.expm1(-boards)).mean() < 0.15
    sweep = left_out(ROWS, [r.group for r in ROWS], "seconds", fit_sweep)
    assert np.abs(np.expm1(-sweep)).mean() < 0.10


def test_the_least_joules_are_below_the_rated_power() -> None:
    """A100 at 300 W: the source's own optimum is 225 or 250 W for every model (global limits)."""
    fitted = fit_boards(BOARDS, "joules")
    row = next(b for b in BOARDS if b.host == "NVIDIA A100 PCIe 80GB")
    limits = range(175, 301, 5)
    costs = {
        w: fitted.log_cost(replace(row, device=replace(row.device, watts=float(w)))) for w in limits
    }
    assert 205 <= min(costs, key=lambda w: costs[w]) <= 260


def test_released_laws_are_of_the_packaged_rows() -> None:
    laws = released_laws()
    assert laws.machine == SWEEP[0].cpu
    again = dict(zip(*(lambda e: (e.names, e.theta))(fit_sweep(ROWS).estimate), strict=True))
    for name, value in laws.laws["processor", "seconds"].effects.items():
        assert again[name] == pytest.approx(value, abs=0.01), name
    assert set(laws.measured) == {
        "NVIDIA A100 PCIe 80GB/tf32",
        "NVIDIA Quadro RTX 6000/fp32",
        "NVIDIA Tesla P100 PCIe 16GB/fp32",
        "NVIDIA Tesla V100 PCIe 32GB/fp32",
    }


def test_ranges_of_normal_errors_cover_what_they_say() -> None:
    rng = np.random.default_rng(3)
    inside = 0
    for _ in range(400):
        chips = [name for name in "abcd" for _ in range(20)]
        means = dict(zip("abcde", rng.normal(0.1, 0.2, 5), strict=True))
        residual = np.array([means[c] + 0.05 * rng.standard_normal() for c in chips])
        low, high = few_groups(residual, chips, 0.8)
        inside += low <= means["e"] + 0.05 * rng.standard_normal() <= high
    assert 0.75 <= inside / 400 <= 0.87
    inside = 0
    for _ in range(2000):
        means = dict(zip("abc", rng.normal(0.0, 0.2, 3), strict=True))
        residual = np.array([means[c] for c in "aabb"])
        low, high = around_zero(residual, list("aabb"), 0.8)
        inside += low <= means["c"] <= high
    assert inside / 2000 == pytest.approx(0.8, abs=0.03)
    inside_own = within(rng.normal(0, 1, 500), [str(i) for i in range(500)], host_quantiles)
    assert inside_own.mean() == pytest.approx(0.8, abs=0.03)


def test_published_models_have_their_published_sizes() -> None:
    # The training code's own counts in millions (ml-energy/zeus, merak/examples/README.md).
    counts = {"gpt3-xl": 1313.63, "gpt3-2.7b": 2648.93, "bert-huge-uncased": 1276.40}
    for name, millions in counts.items():
        assert SHAPES[name].n_params / 1e6 == pytest.approx(millions, rel=0.005)


def test_published_rows_are_read_as_their_notes_say() -> None:
    found = {r.configuration: r for r in runs()}
    run = found["NVIDIA A100 PCIe 80GB / gpt3-xl / text / 1024 / pp4"]
    assert run.layout == Layout(pp=4)
    assert run.step == Step(1024, 1024, 128, "tf32", recomputes=True, is_fused=False)
    of_squad = "NVIDIA Tesla V100 PCIe 32GB / bert_base_uncased / squad / 12 / none"
    squad = [r for r in runs() if r.configuration == of_squad]
    assert {r.n_steps for r in squad} == {88524 / 12}
    assert [r.limit_watts for r in squad] == [100, 125, 150, 175, 200, 225, 250]


@pytest.mark.parametrize(
    "change", [{"energy_j": -1.0}, {"duration_s": 0.0}, {"power_kind": "wall"}, {"batch": None}]
)
def test_a_row_that_cannot_be_is_not_fitted(change: dict[str, object]) -> None:
    row = next(r for r in packaged_energy() if r.model == "gpt3-xl")
    assert len(runs([row])) == 1
    assert runs([replace(row, **change)]) == ()  # type: ignore[arg-type]


POINT = TrainPoint("bert", 128, 2, 32, 4)
RUN = TrainRun(POINT, 0.5, 0.4, 0.6, 7, 1, "CPU (Zen)", 2, 1e11, 7e10, "2.6", "2026-01-01")


def test_runs_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "sweep.csv"
    two = replace(RUN, point=replace(POINT, n_devices=2, strategy="tp"))
    append(path, RUN)
    append(path, two)
    assert read(path) == (RUN, two)


@pytest.mark.parametrize(
    ("column", "text", "said"),
    [
        ("seconds", "-1", r"line 2: seconds is '-1', expected a number above 0"),
        ("seconds", "nan", r"line 2: seconds is 'nan', expected a number above 0"),
        ("seconds", "9", r"line 2: seconds is not between fastest and slowest"),
        ("width", "wide", r"line 2: invalid literal"),
        ("family", "t5", r"line 2: family is 't5', expected bert or llama"),
        ("strategy", "ddp", r"line 2: strategy is 'ddp', expected none, fsdp or tp"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, column: str, text: str, said: str) -> None:
    path = tmp_path / "sweep.csv"
    append(path, RUN)
    header, row = path.read_text().splitlines()
    cells = dict(zip(COLUMNS, row.split(","), strict=True)) | {column: text}
    path.write_text(f"{header}\n{','.join(cells.values())}\n")
    with pytest.raises(InputError, match=said):
        read(path)


def test_a_file_that_is_no_sweep(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"header lacks family; expected a CSV of tokcast energy"):
        read(path)
    path.write_bytes(gzip.compress(b"x"))
    with pytest.raises(InputError, match="expected a CSV of tokcast energy sweep"):
        read(path)
    with pytest.raises(InputError, match="expected a CSV of tokcast energy sweep"):
        read(tmp_path / "missing.csv")


def test_the_packaged_sweep_says_where_it_was_taken() -> None:
    assert len({r.point for r in SWEEP}) >= 150
    assert {r.point.strategy for r in SWEEP} == {"none", "fsdp", "tp"}
    assert all(r.cpu and r.torch and r.date for r in SWEEP)
    data = resources.files("tokcast.measurements").joinpath("data/training_sweep.csv")
    assert data.read_text(encoding="utf-8").splitlines()[0].split(",") == list(COLUMNS)
