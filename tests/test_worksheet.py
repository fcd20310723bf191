"""A worksheet gives the prediction, and what follows from edited inputs by hand."""

import json
import math
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcast.cli.scene import Scene, Setting
from tokcast.cli.worksheet import (
    OWNERS,
    Input,
    Worksheet,
    document,
    edited,
    invariants,
    recalculated,
    rows,
    work_out,
)
from tokcast.cli.worksheet_inputs import inputs_of, is_capped
from tokcast.hosts.custom import from_numbers
from tokcast.hosts.match import find
from tokcast.predictor.catalogue import header
from tokcast.predictor.errors import InputError
from tokcast.predictor.model import model_spec
from tokcast.predictor.terms import Run


def hand_made(**changes: float) -> tuple[Input, ...]:
    """Ten bytes a second against a hundred operations: everything countable by hand."""
    values = {
        "bytes_per_s": 10.0,
        "peak_flops_per_s": 100.0,
        "vector_flops_per_s": 50.0,
        "decode.n_tokens": 1.0,
        "decode.weights.bytes": 20.0,
        "decode.weights.memory_multiple": 1.5,
        "decode.weights.flops": 40.0,
        "decode.weights.compute_multiple": 0.5,
        "decode.overhead_s": 0.6,
        "prefill.n_tokens": 4.0,
        "prefill.weights.bytes": 20.0,
        "prefill.weights.memory_multiple": 1.0,
        "prefill.weights.flops": 800.0,
        "prefill.weights.compute_multiple": 0.75,
        **changes,
    }
    return tuple(Input(k, k, "", v, "assumed", "by hand") for k, v in values.items())


def scene(model: str, file_type: str, host: str, backend: str, **setting: int) -> Scene:
    spec = model_spec(header(model, file_type))
    runtime = "mlx" if backend == "MLX" else "llama.cpp"
    return Scene(spec, find(host), Run(runtime, backend), Setting(**setting))  # type: ignore[arg-type]


SCENES = (
    ("llama-3.1-8b", "Q4_K_M", "RTX 4090", "CUDA"),
    ("qwen3-30b-a3b", "mlx-4bit", "M4 Max 40-core", "MLX"),
    ("gemma-3-27b", "Q4_K_M", "RTX 3090", "Vulkan"),
    ("llama-3.2-3b", "Q8_0", "Ryzen 9 7950X", "CPU"),
)


def test_by_hand() -> None:
    sheet = work_out(hand_made())
    decode, prefill = sheet.results
    assert decode.intensity == 2.0
    assert decode.ridge == 10.0
    assert decode.ceiling_flops_per_s == 20.0
    assert decode.bound_seconds == 2.0
    # 1.5 x 20 / 10 + 0.5 x 40 / 50 + 0.6
    assert decode.seconds == pytest.approx(4.0)
    assert decode.tok_per_s == pytest.approx(0.25)
    assert decode.side == "memory"
    # 20 / 10 + 0.75 x 800 / 50
    assert prefill.seconds == pytest.approx(14.0)
    assert prefill.tok_per_s == pytest.approx(4 / 14)
    assert prefill.side == "compute"
    assert all(invariants(sheet).values())


def test_no_faster_than_a_sure_roof() -> None:
    quick = hand_made(**{"decode.weights.memory_multiple": 0.1, "decode.overhead_s": 1e-9})
    assert work_out(quick).results[0].seconds == 2.0
    assert work_out(quick, is_capped=False).results[0].seconds < 1.0


@pytest.mark.parametrize(("flops", "side"), [(400.0, ""), (170.0, ""), (160.0, "memory")])
def test_a_label_is_withheld_near_the_ridge(flops: float, side: str) -> None:
    sheet = work_out(hand_made(**{"decode.weights.flops": flops, "decode.weights.bytes": 20.0}))
    ratio = flops / 20 / 10
    expected = side if not 0.8 <= ratio <= 1.25 else ""
    assert sheet.results[0].side == (expected if ratio < 1.2 else "compute")


def test_sensitivity_is_one_input_at_a_time_and_ranked() -> None:
    sheet = work_out(hand_made())
    mine = [s for s in sheet.sensitivities if s.phase == "decode"]
    by_key = {s.key: s for s in mine}
    low, middle, high = by_key["bytes_per_s"].tok_per_s
    assert (low, middle, high) == pytest.approx((1 / 4.75, 1 / 4, 1 / 3.5))
    assert by_key["bytes_per_s"].effect == pytest.approx(1 - 4 / 4.75)
    assert [s.effect for s in mine] == sorted((s.effect for s in mine), reverse=True)
    assert "decode.n_tokens" not in by_key
    assert not any(s.key.startswith("prefill") for s in mine)


@pytest.mark.parametrize("asked", SCENES)
@pytest.mark.parametrize("depth", [0, 8192])
def test_unedited_it_is_the_prediction(asked: tuple[str, str, str, str], depth: int) -> None:
    s = scene(*asked, n_depth=depth, n_prompt=1024)
    sheet = work_out(inputs_of(s), is_capped(s))
    for result in sheet.results:
        told = s.predict(result.phase)  # type: ignore[arg-type]
        assert result.tok_per_s == pytest.approx(told.tok_per_s, rel=1e-9)
        assert result.bytes == pytest.approx(sum(c.bytes for c in told.components))
        assert result.flops == pytest.approx(sum(c.flops for c in told.components))
    assert all(invariants(sheet).values())


def test_every_input_says_where_it_comes_from() -> None:
    found = inputs_of(scene(*SCENES[0], n_depth=4096))
    assert all(i.unit and i.label and i.source for i in found)
    origins = {i.key: i.origin for i in found}
    assert origins["bytes_per_s"] == "published"
    assert origins["decode.weights.bytes"] == "counted"
    assert origins["decode.overhead_s"] == "fitted"
    owners = {i.key.split(".")[1] for i in found if i.key.endswith(".bytes")}
    assert owners <= {o.name for o in OWNERS}
    own = replace(scene(*SCENES[0]), host=from_numbers(100e9, 10e12))
    assert {i.origin for i in inputs_of(own) if "." not in i.key} == {"assumed"}


def test_a_host_without_arithmetic_has_no_roof() -> None:
    own = replace(scene(*SCENES[0]), host=from_numbers(100e9))
    with pytest.raises(InputError, match="no rate of arithmetic is known"):
        inputs_of(own)


def test_edits_replace_value_and_origin() -> None:
    found = edited(hand_made(), {"bytes_per_s": (20.0, "measured")})
    (changed,) = [i for i in found if i.source == "edited by hand"]
    assert (changed.key, changed.value, changed.origin) == ("bytes_per_s", 20.0, "measured")
    with pytest.raises(InputError, match="nope: no input of this worksheet"):
        edited(hand_made(), {"nope": (1.0, "assumed")})


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_inputs_are_finite_and_positive(value: float) -> None:
    with pytest.raises(InputError, match="expected a finite number above 0"):
        work_out(hand_made(bytes_per_s=value))


def test_inputs_are_whole_and_once() -> None:
    with pytest.raises(InputError, match="is given twice"):
        work_out((*hand_made(), hand_made()[0]))
    with pytest.raises(InputError, match="peak_flops_per_s is missing"):
        work_out([i for i in hand_made() if i.key != "peak_flops_per_s"])


def keys() -> Iterator[str]:
    return (i.key for i in hand_made())


@settings(deadline=None, max_examples=100)
@given(st.dictionaries(st.sampled_from(list(keys())), st.floats(1e-6, 1e15), max_size=14))
def test_invariants_hold_whatever_is_edited(changes: dict[str, float]) -> None:
    sheet = work_out(hand_made(**changes))
    assert all(invariants(sheet).values())
    for phase, result in zip(("decode", "prefill"), sheet.results, strict=True):
        assert result.phase == phase


@settings(deadline=None, max_examples=50)
@given(st.floats(1.01, 100))
def test_more_bandwidth_never_slows(factor: float) -> None:
    base = work_out(hand_made()).results
    more = work_out(hand_made(bytes_per_s=10.0 * factor)).results
    assert all(b.tok_per_s <= m.tok_per_s for b, m in zip(base, more, strict=True))


def sheet_of() -> Worksheet:
    s = scene(*SCENES[0])
    return work_out(inputs_of(s), is_capped(s))


def test_the_document_can_be_recalculated() -> None:
    data = json.loads(json.dumps(document(sheet_of(), {"software": "tokcast"})))
    assert recalculated(data)
    data["inputs"][0]["value"] *= 2
    assert not recalculated(data)
    with pytest.raises(InputError, match="inputs or results are missing"):
        recalculated({"inputs": [{"key": "x"}], "results": []})


def test_the_table_has_every_number() -> None:
    sheet = sheet_of()
    found = rows(sheet)
    assert {len(row) for row in found} == {7}
    assert sum(row[0] == "input" for row in found) == len(sheet.inputs)
    assert sum(row[0] == "sensitivity" for row in found) == 3 * len(sheet.sensitivities)
    speeds = {row[1]: row[3] for row in found}
    assert float(speeds["decode.tok_per_s"]) == sheet.results[0].tok_per_s
