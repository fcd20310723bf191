"""Floors and triage: hand-worked steps, limits, and inputs that must be wrong."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokcast.fits.observations import observe
from tokcast.hosts.match import find
from tokcast.measurements.schema import packaged
from tokcast.predictor.catalogue import header
from tokcast.predictor.errors import InputError
from tokcast.predictor.ledger import Workload, ledger
from tokcast.predictor.model import model_spec
from tokcast.predictor.roofline import ceiling_tok_per_s, tokens_of
from tokcast.predictor.roofs.floor import Floor, floor_of, floor_of_works, peaks_of, ridge
from tokcast.predictor.roofs.resources import Peaks, Resources
from tokcast.predictor.roofs.suspects import suspects
from tokcast.predictor.roofs.triage import growth, triage
from tokcast.predictor.spec import ModelSpec

RTX = find("RTX 4090")
PEAKS = Peaks(1e12, 100e12, 50e9, 10e-6)


def llama(file_type: str = "Q4_K_M") -> ModelSpec:
    return model_spec(header("llama-3.1-8b", file_type))


def test_a_step_by_hand() -> None:
    """2 ms of memory, 1 ms of compute, 0.5 ms of network, 100 messages of 10 us."""
    floor = floor_of(Resources(2e9, 100e9, 25e6, 100), PEAKS)
    assert list(floor.by_resource.values()) == pytest.approx([2e-3, 1e-3, 0.5e-3, 1e-3])
    assert floor.optimistic == pytest.approx(2e-3)
    assert floor.pessimistic == pytest.approx(4.5e-3)
    assert floor.binding == "memory"


def test_demands_add_up_within_a_resource() -> None:
    both = Resources(1, 2, 3, 4, 5) + Resources(10, 20, 30, 40, 50)
    assert both == Resources(11, 22, 33, 44, 55)


def test_at_the_ridge_memory_and_compute_take_equally_long() -> None:
    n_bytes = 7e9
    floor = floor_of(Resources(n_bytes, n_bytes * ridge(100e12, 1e12)), PEAKS)
    assert floor.by_resource["memory"] == pytest.approx(floor.by_resource["compute"])


def test_the_floor_is_the_ceiling_of_a_prediction() -> None:
    works = ledger(llama(), Workload("decode", n_depth=4096))
    assert 1 / floor_of_works(works, RTX).optimistic == pytest.approx(
        ceiling_tok_per_s(works, RTX, 1)
    )


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan])
def test_peaks_are_above_zero(value: float) -> None:
    for name in ("bytes_per_s", "flops_per_s", "network_bytes_per_s"):
        given_ = {"bytes_per_s": 1.0, "flops_per_s": 1.0, name: value}
        with pytest.raises(InputError, match=rf"^{name} is .*; expected a peak above 0"):
            Peaks(**given_)
    with pytest.raises(InputError, match=r"^flops_per_s is"):
        ridge(value, 1.0)
    with pytest.raises(InputError, match=r"^bytes_per_s is"):
        ridge(1.0, value)


def test_a_message_takes_no_negative_time() -> None:
    with pytest.raises(InputError, match=r"^message_seconds is -1; expected 0 or more"):
        Peaks(1.0, 1.0, 1.0, -1.0)


def test_a_host_without_a_compute_rate_has_no_floor() -> None:
    bare = replace(
        RTX,
        matrix_fp16_flops_per_s=None,
        matrix_fp32acc_flops_per_s=None,
        fp16_flops_per_s=None,
        fp32_flops_per_s=None,
        int8_ops_per_s=None,
    )
    with pytest.raises(InputError, match=r"no compute rate is known; give --tflops"):
        peaks_of(bare)


WIDE = Floor({"memory": 2.0, "compute": 1.0})


@pytest.mark.parametrize(
    ("seconds", "place", "words"),
    [
        (1.99, "below", ""),
        (2.0, "inside", "well overlapped"),
        (2.5, "inside", "partly overlapped"),
        (3.0, "inside", "serialised"),
        (3.7, "near", ""),
        (3.8, "above", ""),
    ],
)
def test_places(seconds: float, place: str, words: str) -> None:
    found = triage(WIDE, seconds)
    assert (found.place, found.overlap_words) == (place, words)


def test_overlap_runs_from_one_to_zero() -> None:
    assert triage(WIDE, 2.0).overlap == 1
    assert triage(WIDE, 2.25).overlap == 0.75
    assert triage(WIDE, 3.0).overlap == 0


def test_a_narrow_interval_says_nothing_of_overlap() -> None:
    found = triage(Floor({"memory": 2.0, "compute": 0.1}), 2.05)
    assert found.place == "inside"
    assert found.overlap is None


@given(st.floats(0.5, 100), st.floats(0, 2))
def test_a_larger_threshold_never_calls_for_a_profiler_sooner(seconds: float, more: float) -> None:
    strict, lenient = triage(WIDE, seconds, 0.1), triage(WIDE, seconds, 0.1 + more)
    assert lenient.place != "above" or strict.place == "above"


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.inf, math.nan])
def test_a_time_must_be_one(seconds: float) -> None:
    with pytest.raises(InputError, match=r"expected a measured time above 0"):
        triage(WIDE, seconds)


def test_a_step_of_nothing_has_no_floor() -> None:
    with pytest.raises(InputError, match=r"^the step needs nothing"):
        triage(floor_of(Resources(), PEAKS), 1.0)
    with pytest.raises(InputError, match=r"^threshold -1"):
        triage(WIDE, 1.0, -1.0)


def test_growth_recovers_a_line() -> None:
    """0.5 s of excess at depth 0, a millisecond more for each token."""
    points = tuple((d, 0.5 + 1e-3 * d) for d in (0, 100, 500))
    line = growth(points)
    assert line is not None
    assert line.at_zero == pytest.approx(0.5)
    assert line.per_token == pytest.approx(1e-3)
    assert line.share(500) == pytest.approx(0.5)
    assert growth(points[:1]) is None


def _below(depth: int, asked: Workload, file_type: str, taken: str) -> dict[str, str]:
    """Return the suspects where a model in one type at a depth was taken for another."""
    real = floor_of_works(ledger(llama(file_type), replace(asked, n_depth=depth)), RTX)
    spec = llama(taken)
    floor = floor_of_works(ledger(spec, asked), RTX)
    found = suspects(spec, asked, RTX, floor, real.optimistic)
    return {s.name: s.needed for s in found}


def test_a_cache_that_was_not_filled_is_found() -> None:
    asked = Workload("decode", n_depth=16384)
    found = _below(2048, asked, "Q4_K_M", "Q4_K_M")
    assert found["depth, middle token"] in ("at most 2047", "at most 2048")
    assert next(iter(found)) == "depth, middle token"


def test_a_smaller_file_than_said_is_found() -> None:
    found = _below(0, Workload("decode"), "Q4_0", "Q8_0")
    needed = float(found["type of the weights"].split()[0])
    real = llama("Q4_0")
    read = [g for g in real.groups if g.read_fraction]
    bits = 8 * sum(g.n_bytes for g in read) / sum(g.n_params for g in read)
    assert needed == pytest.approx(bits, rel=0.01)


def test_no_type_is_blamed_that_does_not_exist() -> None:
    asked = Workload("decode")
    spec = llama("Q4_0")
    floor = floor_of_works(ledger(spec, asked), RTX)
    found = {s.name: s for s in suspects(spec, asked, RTX, floor, floor.optimistic / 10)}
    assert "type of the weights" not in found
    assert found["tokens a step"].needed.startswith("10.00")
    assert found["devices"].needed.startswith("10 ")
    assert found["memory bandwidth"].needed == "10,080 GB/s"


def test_uncertain_figures_and_caches_come_first() -> None:
    asked = Workload("decode")
    spec = llama("Q4_0")
    host = replace(RTX, confidence="low", cache_bytes=1e11)
    floor = floor_of_works(ledger(spec, asked), host)
    names = [s.name for s in suspects(spec, asked, host, floor, floor.optimistic / 1.1)]
    assert names[:2] == ["last-level cache", "the chip's figures"]


def test_a_prompt_that_is_too_fast_blames_the_rate() -> None:
    asked = Workload("prefill", n_prompt=4096, n_ubatch=4096)
    spec = llama("F16")
    floor = floor_of_works(ledger(spec, asked), RTX)
    assert floor.binding == "compute"
    names = [s.name for s in suspects(spec, asked, RTX, floor, floor.optimistic / 2)]
    assert names == ["devices", "compute rate"]


def test_no_clean_packaged_measurement_lies_below_its_floor() -> None:
    observations, _ = observe(packaged())
    places = [
        triage(floor_of_works(o.works[0], o.host), tokens_of(o.workloads[0]) / o.tok_per_s).place
        for o in observations
        if len(o.works) == 1
    ]
    assert len(places) > 5000
    assert "below" not in places
