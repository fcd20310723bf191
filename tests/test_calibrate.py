"""A host's own effects from a few measurements, and what predictions make of them."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from measured import CHIP
from measured import run as measured_run

from tokcast.fits.calibrate import Point, mape, own_design, update
from tokcast.fits.calibrated import apply, fingerprint, merge
from tokcast.fits.calibration import at_least, judged, make, points_of_rows, points_of_runs
from tokcast.fits.estimate import predict_log_rate
from tokcast.fits.released import released
from tokcast.hosts.registry import chips
from tokcast.measurements.importers import read_file
from tokcast.measurements.plan import make as make_plan
from tokcast.measurements.plan import parse_budget
from tokcast.measurements.record import Task
from tokcast.measurements.synthetic_shape import Shape, shaped
from tokcast.predictor.coefficients import Coefficients
from tokcast.predictor.effects import Shape as EffectShape
from tokcast.predictor.effects import own_effects
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.ledger import Workload, ledger
from tokcast.predictor.model import model_spec
from tokcast.predictor.roofline import Question, predict
from tokcast.predictor.spec import ModelSpec
from tokcast.predictor.terms import Run, Term

RUN = Run("llama.cpp", "CPU")
SHAPES = {
    "small": Shape("Q4_K", 8, 1024, 4096, 16, 4),
    "q8": Shape("Q8_0", 8, 1024, 4096, 16, 4),
    "deep": Shape("Q4_K", 28, 512, 1536, 8, 4),
    "wide": Shape("Q4_K", 10, 2048, 5632, 32, 8),
    "wide q8": Shape("Q8_0", 6, 2048, 5632, 32, 8),
    "moe": Shape("Q4_K", 12, 768, 512, 12, 4, n_expert=32, n_expert_used=4),
    "new": Shape("Q4_K", 16, 1536, 4096, 12, 4, head_type="Q8_0"),
}
SPECS = {name: model_spec(shaped(s)) for name, s in SHAPES.items()}


def own(kind: str, component: str = "ffn", type_name: str = "Q4_K") -> list[str]:
    term = Term(kind, component, type_name, 1.0)  # type: ignore[arg-type]
    found = own_effects(term, "decode", CHIP, RUN, EffectShape("m", "llama", 1024))
    return [name for name, _ in found]


def true_host(effects: Mapping[str, float]) -> Coefficients:
    base = released()
    return replace(base, effects={**base.effects, **effects})


TRUE = true_host(
    {
        "decode|chipCPU=Test Chip|CPU": 0.5,
        own("launch")[0]: 0.4,
        own("attention")[0]: -0.5,
        own("compute")[1]: 0.3,
        "prefill|chipCPU=Test Chip|CPU": -0.4,
    }
)
LOADS = (
    Workload("decode", 1, 8),
    Workload("decode", 1, 1032),
    Workload("prefill", 128, 0),
    Workload("prefill", 128, 1024),
)


def rate(name: str, load: Workload, coefficients: Coefficients, host: Host = CHIP) -> float:
    return predict(SPECS[name], Question(load, host, RUN), coefficients).tok_per_s


def points(names: list[str], noise: float = 0.0) -> list[Point]:
    random = np.random.default_rng(3)
    return [
        Point(n, SPECS[n], load, rate(n, load, TRUE) * math.exp(noise * random.standard_normal()))
        for n in names
        for load in LOADS
    ]


KNOWN = [name for name in SHAPES if name != "new"]


def test_the_design_is_the_prediction() -> None:
    """Without own effects the update predicts what the release does."""
    found = [p for p in points(KNOWN) if p.workload.phase == "decode"]
    design = own_design(found, CHIP, RUN, released())
    expected = [math.log(rate(p.model, p.workload, released())) for p in found]
    zero = np.zeros(len(design.names))
    assert predict_log_rate(design, zero) == pytest.approx(expected, abs=1e-9)


def test_a_host_unlike_its_family_is_learnt_and_a_new_model_predicted() -> None:
    made = make(points(KNOWN, noise=0.02), CHIP, RUN, released(), {}, "test")
    after = merge(released(), made)
    for load in LOADS:
        true = rate("new", load, TRUE)
        assert abs(math.log(rate("new", load, after) / true)) < 0.08
    assert abs(math.log(rate("new", LOADS[0], released()) / rate("new", LOADS[0], TRUE))) > 0.2


def test_a_slow_kernel_for_one_key_length_is_learnt_apart_from_the_others() -> None:
    """A host whose attention over keys of 128 takes three times as long, and no other's."""
    slow = Term("attention", "attention_op", "", 1.0)
    (_, (name, _), _) = own_effects(
        slow, "decode", CHIP, RUN, EffectShape("m", "llama", 1024, head_length=128)
    )
    true = true_host({name: math.log(3.0)})
    heads = {n: Shape("Q4_K", 12, 768, 2048, 16, 8, head_length=n) for n in (64, 128)}
    specs = SPECS | {f"keys of {n}": model_spec(shaped(s)) for n, s in heads.items()}
    loads = LOADS[:2]

    def speed(spec: ModelSpec, load: Workload, c: Coefficients) -> float:
        return predict(spec, Question(load, CHIP, RUN), c).tok_per_s

    seen = [Point(n, s, load, speed(s, load, true)) for n, s in specs.items() for load in loads]
    after = merge(released(), make(seen, CHIP, RUN, released(), {}, "test"))
    fresh = model_spec(shaped(Shape("Q4_K", 20, 1536, 4096, 24, 8, head_length=128)))
    before, learnt = (
        speed(fresh, loads[1], c) / speed(fresh, loads[1], true) for c in (released(), after)
    )
    assert before > 1.3
    assert learnt == pytest.approx(1.0, abs=0.12)
    known = speed(specs["small"], loads[1], after) / speed(specs["small"], loads[1], true)
    assert known == pytest.approx(1.0, abs=0.08)


def test_left_out_models_are_predicted_better_than_before_and_the_range_narrows() -> None:
    found = update(points(KNOWN, noise=0.03), CHIP, RUN, released())
    for phase, u in found.items():
        assert mape(u.after) < 0.5 * mape(u.before)
        low, high = u.interval(0.8, frozenset(KNOWN))
        was = released().intervals[f"{phase}/same chip family/CPU"]["0.8"]
        assert high - low < was[1] - was[0]
        assert u.interval(0.95, frozenset(KNOWN))[1] > high


def test_only_the_phases_measured_are_updated() -> None:
    decode = [p for p in points(KNOWN) if p.workload.phase == "decode"]
    made = make(decode, CHIP, RUN, released(), {}, "test")
    assert list(made["phases"]) == ["decode"]
    assert not any(name.startswith("prefill") for name in made["effects"])


def test_an_update_that_does_not_help_is_not_used() -> None:
    """The host is as released, but half of each kind of model is twice as fast and half as slow."""
    factor = {"small": 2, "deep": 0.5, "wide": 2, "moe": 0.5, "q8": 2, "wide q8": 0.5}
    wild = [
        Point(n, SPECS[n], load, f * rate(n, load, released()))
        for n, f in factor.items()
        for load in LOADS
    ]
    with pytest.raises(InputError, match="no better than before; nothing is changed"):
        make(wild, CHIP, RUN, released(), {}, "test")
    mixed = [p for p in wild if p.workload.phase == "decode"]
    mixed += [p for p in points(KNOWN) if p.workload.phase == "prefill"]
    made = make(mixed, CHIP, RUN, released(), {}, "test")
    assert [p for p, data in made["phases"].items() if data["is_used"]] == ["prefill"]
    assert list(made["intervals"]) == ["prefill"]
    assert not any(name.startswith("decode") for name in made["effects"])


def test_two_models_give_a_wide_range_but_not_a_boundless_one() -> None:
    found = update(points(["small", "q8"]), CHIP, RUN, released())
    for u in found.values():
        low, high = u.interval(0.8, frozenset(u.models))
        assert -1.0 < low < -0.1
        assert high == -low


def test_one_model_is_too_few() -> None:
    with pytest.raises(InputError, match="figures of 1 model; expected at least 2 models"):
        make(points(["small"]), CHIP, RUN, released(), {}, "test")


def test_models_judge_whose_types_another_has() -> None:
    assert judged(points(KNOWN)) == frozenset(KNOWN)
    odd = Point("odd", model_spec(shaped(Shape("Q6_K", 2, 256, 512, 4, 2))), LOADS[0], 1.0)
    assert judged([*points(KNOWN), odd]) == frozenset(KNOWN)
    assert judged([*points(["q8", "moe"]), odd]) == {"q8", "moe", "odd"}


def test_measured_rates_lift_the_roof() -> None:
    low = replace(CHIP, bytes_per_s=1e9, fp32_flops_per_s=1e9, int8_ops_per_s=None)
    fast = points(["small"])
    facts = at_least({"bytes_per_s": 2e9}, fast, low)
    load = fast[0].workload
    moved = sum(w.bytes for w in ledger(SPECS["small"], load))
    assert facts["bytes_per_s"] >= moved * fast[0].tok_per_s
    assert facts["int8_ops_per_s"] > 1e9
    assert at_least({}, fast, replace(CHIP, bytes_per_s=1e13)) == {}


# --- put to use


def calibration(host: Host = CHIP) -> dict[str, object]:
    return make(points(KNOWN), host, RUN, released(), {"bytes_per_s": 9e10}, "test")


def test_a_calibration_is_used_for_its_machine_runtime_and_release_only() -> None:
    made = calibration()
    applied = apply(CHIP, RUN, released(), [made])
    assert applied.is_calibrated
    assert applied.host.bytes_per_s == 9e10
    assert "measured here" in applied.host.source["bytes_per_s"]
    assert applied.coefficients.digest == released().digest
    assert applied.summary.endswith("from 6 models measured here")
    assert not apply(replace(CHIP, n_cores=4), RUN, released(), [made]).is_calibrated
    assert not apply(CHIP, Run("llama.cpp", "CUDA"), released(), [made]).is_calibrated
    assert not apply(CHIP, RUN, released(), []).is_calibrated
    other = replace(released(), digest="000")
    aside = apply(CHIP, RUN, other, [made])
    assert not aside.is_calibrated
    assert "tokcast calibrate --refit" in aside.note


def test_the_newest_calibration_of_a_machine_counts() -> None:
    newest, oldest = calibration(), calibration()
    assert apply(CHIP, RUN, released(), [newest, oldest]).calibration is newest


def test_evidence_is_the_same_host_afterwards() -> None:
    applied = apply(CHIP, RUN, released(), [calibration()])
    q = Question(LOADS[0], applied.host, RUN)
    after = predict(SPECS["new"], q, applied.coefficients)
    before = predict(SPECS["new"], Question(LOADS[0], CHIP, RUN), released())
    assert after.evidence == "same host"
    assert after.high / after.low < before.high / before.low


def test_hosts_are_told_apart_by_cores_and_memory() -> None:
    assert fingerprint(CHIP) == {"name": "Test Chip", "n_cores": 8, "memory_gib": 32}


# --- from runs and rows


def test_points_of_runs_join_launches() -> None:
    tg = Task("decode", 16, 512)
    found = points_of_runs([measured_run({tg: 20.0}), measured_run({tg: 22.0})])
    assert len(found) == 1
    assert found[0].tok_per_s == 21.0
    assert found[0].workload == Workload("decode", 1, 520)
    assert found[0].weight == 1.0


def test_a_disturbed_launch_gives_way_to_clean_ones() -> None:
    tg = Task("decode", 16)
    clean, dirty = measured_run({tg: 20.0}), measured_run({tg: 2.0}, disturbed=("load",))
    (point,) = points_of_runs([clean, dirty])
    assert point.tok_per_s == 20.0
    (point,) = points_of_runs([dirty])
    assert (point.tok_per_s, point.weight) == (2.0, 0.25)


def test_rows_that_do_not_fit_are_named() -> None:
    rows = read_file(Path(__file__).parent / "data" / "bench" / "gemma.json").rows
    epyc = replace(CHIP, name="Elsewhere")
    usable = points_of_rows([replace(m, chip="Elsewhere") for m in rows], epyc, "CPU")
    assert {p.model for p in usable.points} == {"gemma-3-270m@Q4_K_M"}
    assert len(usable.points) == 4
    aside = points_of_rows([replace(m, chip="Other") for m in rows], epyc, "CPU").left_aside
    assert aside == {"of another chip (Other)": 4}
    unknown = [replace(m, model_id="", model="x", chip="") for m in rows]
    assert "not in the catalogue (x)" in next(iter(points_of_rows(unknown, epyc, "CPU").left_aside))


# --- the plan


def test_more_time_means_more_models_or_launches() -> None:
    plans = [make_plan(b, 70e9, 5e11, 16e9, "x") for b in (60, 300, 1200)]
    assert [p.expected_seconds <= p.budget_seconds for p in plans] == [True] * 3
    sizes = [len(p.launches) for p in plans]
    assert sizes == sorted(sizes)
    assert sizes[0] >= 5
    assert all(p.disk_bytes < 2e9 for p in plans)
    kinds = {(i.shape.type, bool(i.shape.n_expert)) for i in plans[1].items}
    assert {("Q4_K", True), ("Q4_K", False), ("Q8_0", False)} <= kinds
    assert len({t.n_depth for i in plans[1].items for t in i.tests}) >= 3


def test_a_plan_fits_the_free_memory() -> None:
    small = make_plan(300, 70e9, 5e11, 0.5e9, "x")
    assert small.disk_bytes < 0.13e9
    with pytest.raises(InputError, match="too little to calibrate"):
        make_plan(300, 70e9, 5e11, 1e6, "x")


def test_a_fast_card_gets_larger_models() -> None:
    slow, fast = (make_plan(300, b, 5e13, 64e9, "x") for b in (70e9, 1000e9))
    assert fast.disk_bytes > 2 * slow.disk_bytes


def test_plans_are_told_apart() -> None:
    one, same, other = (make_plan(60, 70e9, 5e11, 16e9, s) for s in ("x", "x", "y"))
    assert one.digest == same.digest != other.digest


def test_budgets() -> None:
    assert [parse_budget(t) for t in ("60s", "5m", "1h", "90")] == [60, 300, 3600, 90]
    with pytest.raises(InputError, match="--budget '5 days': expected a time such as"):
        parse_budget("5 days")
    with pytest.raises(InputError, match="expected 20s to 24h"):
        parse_budget("1s")


def test_the_registry_has_no_host_of_this_name() -> None:
    assert CHIP.name not in {h.name for h in chips()}
