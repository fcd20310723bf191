"""The fit of placements: rows as they were placed, files as they were published, effects found."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tokcast.fits.estimate import fit, predict_log_rate
from tokcast.fits.offload import PlacedFit, fit_placed, interval_of, released_form
from tokcast.fits.placed_design import BELIEFS, Timed, design, timed
from tokcast.fits.placed_files import GIB, inventory
from tokcast.fits.placed_released import PATH, released_placed
from tokcast.fits.placed_rows import PlacedRows, options_of, placed_rows, published
from tokcast.fits.placed_scores import orders, placed_scores
from tokcast.fits.priors import prior_of
from tokcast.fits.released import released
from tokcast.measurements.schema import Measurement, packaged
from tokcast.predictor.errors import InputError
from tokcast.predictor.placement.company import from_json, read


@cache
def _rows() -> PlacedRows:
    return placed_rows(published())


@cache
def _some() -> tuple[Timed, ...]:
    """Return a few decode runs of each machine that offloads."""
    found: dict[tuple[str, str], list[Timed]] = {}
    for row in timed(_rows().runs, released()):
        if row.run.workload.phase == "decode" and row.kind == "cpu":
            found.setdefault((row.run.machine, row.run.model), []).append(row)
    return tuple(row for rows in found.values() for row in rows[:: max(len(rows) // 6, 1)])


def _row(**changes: object) -> Measurement:
    first = next(m for m in packaged() if "cpu-offload" in m.flags and m.source.startswith("ghost"))
    return replace(first, **changes)  # type: ignore[arg-type]


def test_the_release_stands_upon_the_released_coefficients() -> None:
    assert released_placed().base == released().digest, "run tokcast fit --part offload --save"


def test_no_machine_is_in_the_release() -> None:
    assert not [name for name in released_placed().effects if "machine=" in name]


@pytest.mark.parametrize("key", released_placed().intervals)
def test_released_ranges_hold_their_centre_and_grow(key: str) -> None:
    ends = released_placed().intervals[key]
    assert ends["0.95"][0] <= ends["0.8"][0] < 0 < ends["0.8"][1] <= ends["0.95"][1]


def test_another_schema_is_refused() -> None:
    with pytest.raises(InputError, match="placement coefficients of schema 9; expected 1"):
        from_json({"schema": 9})
    with pytest.raises(InputError, match="expected placement coefficients"):
        read(PATH.with_name("nothing.json"))


def test_how_a_row_was_placed_is_read_from_its_text() -> None:
    def read_as(placement: str, ngl: str = "99") -> object:
        return options_of(_row(placement=placement, ngl=ngl), 4)

    assert read_as("n_cpu_moe=16").n_cpu_moe == 16  # type: ignore[attr-defined]
    assert read_as("-ncmoe 64").n_cpu_moe == 64  # type: ignore[attr-defined]
    assert read_as("", "12.0").n_gpu_layers == 12  # type: ignore[attr-defined]
    # The experts of the last two of four layers.
    assert read_as("2").overrides == (  # type: ignore[attr-defined]
        (r"blk\.(2|3)\.ffn_(up|down|gate_up|gate)_(ch|)exps", "CPU"),
    )
    assert read_as(r'-ot "blk\.1.*=CPU" -ot exps=CUDA0').overrides == (  # type: ignore[attr-defined]
        (r"blk\.1.*", "CPU"),
        ("exps", "CUDA0"),
    )
    assert read_as("-ot </summary> exps=CPU") is None


def test_rows_left_out_are_counted_by_reason() -> None:
    rows = [_row(), _row(flags=frozenset({"cpu-offload", "uvm-experiment"})), _row(chip="other")]
    found = placed_rows(rows)
    assert len(found.runs) == 1
    assert dict(found.rejected) == {
        "the driver pages to main memory": 1,
        "the machine is not known, or its cards are not alike": 1,
    }


def test_every_row_is_used_or_counted() -> None:
    rows = [m for m in published() if "cpu-offload" in m.flags or m.n_devices > 1]
    assert len(_rows().runs) + sum(_rows().rejected.values()) == len(rows)


@pytest.mark.parametrize(
    ("model_id", "file_type", "file", "size_gib", "experts", "attention"),
    [
        ("qwen3.5-122b-a10b", "Q4_K_M", "unsloth Qwen3.5-122B-A10B Q4_K_M", 71.27, "Q4_K", "Q8_0"),
        (
            "qwen3.5-122b-a10b",
            "IQ4_XS",
            "AesSedai Qwen3.5-122B-A10B IQ4_XS",
            56.29,
            "IQ3_S",
            "Q8_0",
        ),
        ("qwen3.5-35b-a3b", "Q5_K_M", "AesSedai Qwen3.6-35B-A3B Q5_K_M", 24.44, "Q5_K", "Q8_0"),
        ("qwen3.5-35b-a3b", "Q8_0", "bartowski Qwen3.6-35B-A3B Q8_0", 34.37, "Q8_0", "Q8_0"),
    ],
)
def test_a_published_file_has_its_publishers_types_and_size(
    model_id: str, file_type: str, file: str, size_gib: float, experts: str, attention: str
) -> None:
    made = inventory(model_id, file_type, file, size_gib)
    by_name = {i.tensor.name: i.tensor.type for i in made.items}
    assert by_name["blk.3.ffn_up_exps.weight"] == experts
    assert by_name["blk.3.attn_q.weight"] == attention
    assert made.spec.n_bytes / GIB == pytest.approx(size_gib, abs=0.01)


def test_a_known_mix_needs_little_to_be_the_printed_size() -> None:
    for model_id, file_type, file, size_gib in (
        ("qwen3.5-122b-a10b", "Q4_K_S", "unsloth Qwen3.5-122B-A10B Q4_K_S", 66.77),
        ("qwen3.5-122b-a10b", "IQ4_XS", "unsloth Qwen3.5-122B-A10B UD-IQ4_XS", 56.08),
        ("qwen3.5-35b-a3b", "Q4_K_M", "AesSedai Qwen3.6-35B-A3B Q4_K_M", 20.61),
    ):
        made = inventory(model_id, file_type, file, None)
        assert made.spec.n_bytes / GIB == pytest.approx(size_gib, rel=0.02)


def test_known_effects_are_found_again() -> None:
    rows = _some()
    d = design(rows)
    rng = np.random.default_rng(5)
    truth = rng.normal(prior_of(d.names, BELIEFS).mean, 0.2)
    d = replace(d, log_rate=predict_log_rate(d, truth), weight=np.full(len(rows), 100.0))
    found = fit(d, prior_of(d.names, BELIEFS)).theta
    error = predict_log_rate(d, found) - d.log_rate
    assert np.abs(error).max() < 0.02


@cache
def _fitted() -> PlacedFit:
    return fit_placed(_some(), lambda _: None)["decode"][0]


def test_a_machine_left_out_has_no_say_in_its_prediction() -> None:
    rows = _some()
    name = rows[0].run.machine
    poisoned = [
        replace(r, run=replace(r.run, tok_per_s=r.run.tok_per_s * 7))
        if r.run.machine == name
        else r
        for r in rows
    ]
    other = fit_placed(poisoned, lambda _: None)["decode"][0]
    own = np.array([r.run.machine == name for r in rows])
    assert other.by_machine[own] - _fitted().by_machine[own] == pytest.approx(np.log(7))


def test_ranges_of_few_machines_are_wider_than_what_they_show() -> None:
    one = _fitted()
    ends = interval_of(one, one.of("cpu"))
    assert ends["0.8"][1] == -ends["0.8"][0]
    means = [
        one.by_machine[[r.run.machine == m for r in one.rows]].mean()
        for m in {r.run.machine for r in one.rows}
    ]
    assert ends["0.8"][1] > np.std(means)


def test_the_released_form_has_a_digest_of_what_it_says() -> None:
    fits = {"decode": [_fitted()]}
    a, b = released_form(fits, "x"), released_form(fits, "y")  # type: ignore[arg-type]
    assert a["effects"] == b["effects"]
    assert a["digest"] != b["digest"]
    assert from_json(a).interval("decode", "cpu", 0.8) == a["intervals"]["decode/cpu"]["0.8"]


def test_scores_stand_beside_simpler_predictors_and_the_order_of_plans() -> None:
    (score,) = [s for s in placed_scores("decode", _fitted(), released()) if s.rows.endswith("any")]
    assert score.ours.n == len(_some())
    assert score.ours.mape < score.baselines["peaks"].mape
    assert 0 < score.held["0.8"] <= score.held["0.95"] < 100.01
    (order,) = [o for o in orders("decode", _fitted()) if o.rows.endswith("any")]
    assert 0.9 * order.n_pairs <= order.n_right <= order.n_pairs
