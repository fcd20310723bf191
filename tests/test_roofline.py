"""Predictions obey the roof, the ledger and their own interval."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcast.fits.released import released
from tokcast.hosts.registry import chip
from tokcast.predictor.catalogue import header
from tokcast.predictor.coefficients import Coefficients
from tokcast.predictor.curve import decode_curve
from tokcast.predictor.effects import chip_effect, family_effect, model_effect
from tokcast.predictor.host import Host
from tokcast.predictor.ledger import Work, Workload, ledger
from tokcast.predictor.model import model_spec
from tokcast.predictor.roofline import Question, ceiling_tok_per_s, predict, shape_of
from tokcast.predictor.terms import TILE_ROWS, Run, terms
from tokcast.predictor.traits import traits_of

LLAMA = model_spec(header("llama-3.1-8b", "Q4_K_M"))
MOE = model_spec(header("qwen3-30b-a3b", "Q4_K_M"))
HOST = Host(
    name="Round Numbers",
    vendor="Test",
    kind="discrete_gpu",
    architecture="None",
    bytes_per_s=1e12,
    matrix_fp16_flops_per_s=1e14,
    fp32_flops_per_s=1e13,
    confidence="high",
)
# No fitted effects at all: every term takes exactly its time at the nameplate peaks.
NAMEPLATE = Coefficients(
    digest="none",
    effects={},
    intervals={
        f"{phase}/spec sheet only, new model/CUDA": {"0.8": (-0.2, 0.2)}
        for phase in ("prefill", "decode")
    },
    n_observations={},
    deepest={},
)


def question(phase: str, **load: object) -> Question:
    return Question(Workload(phase, **load), HOST, Run(backend="CUDA"))  # type: ignore[arg-type]


def test_without_effects_decode_is_the_roofline_of_each_component_added_up() -> None:
    """A component's bytes at 1 TB/s and operations at 10 TFLOPS overlap as a 2-norm."""
    q = question("decode", n_depth=100)
    by_hand = 0.0
    for w in ledger(LLAMA, q.workload):
        memory, compute = w.bytes / 1e12, w.flops / 1e13
        if w.component in ("attention_op", "kv_read"):
            by_hand += memory + compute
        elif w.component in ("norm", "embedding", "activations", "kv_write"):
            by_hand += memory
        else:
            by_hand += (memory**2 + compute**2) ** (1 / 2)
        by_hand += 1e-6 * w.n_launches
    assert predict(LLAMA, q, NAMEPLATE).seconds == pytest.approx(by_hand)


def test_weights_are_read_once_a_token() -> None:
    q = question("decode")
    read = sum(g.n_bytes * g.read_fraction for g in LLAMA.groups)
    weights = ("attention", "ffn", "head", "norm", "other")
    times = predict(LLAMA, q, NAMEPLATE).components
    assert sum(t.bytes for t in times if t.component in weights) == pytest.approx(read)


@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_no_prediction_is_above_the_ceiling_even_with_absurd_effects(phase: str) -> None:
    effects = {f"{phase}|architecture=llama": -9.0}
    fast = replace(NAMEPLATE, effects=effects)
    q = question(phase)
    result = predict(LLAMA, q, fast)
    n_tokens = 1 if phase == "decode" else 512
    assert result.tok_per_s <= ceiling_tok_per_s(ledger(LLAMA, q.workload), HOST, n_tokens)
    assert result.high <= result.ceiling_tok_per_s


def test_a_guessed_roof_does_not_cut_a_prediction() -> None:
    effects = {"decode|architecture=llama": -9.0}
    fast = replace(NAMEPLATE, effects=effects)
    q = question("decode")
    guessed = predict(LLAMA, replace(q, host=replace(HOST, confidence="low")), fast)
    assert guessed.tok_per_s > guessed.ceiling_tok_per_s


@given(depth=st.integers(0, 100_000), more=st.integers(1, 100_000))
@settings(deadline=None, max_examples=60)
def test_decode_slows_with_depth(depth: int, more: int) -> None:
    near = predict(LLAMA, question("decode", n_depth=depth), NAMEPLATE)
    far = predict(LLAMA, question("decode", n_depth=depth + more), NAMEPLATE)
    assert far.tok_per_s < near.tok_per_s


@given(factor=st.floats(1.01, 8))
@settings(deadline=None, max_examples=40)
def test_more_bandwidth_never_slows_decode(factor: float) -> None:
    q = question("decode")
    wider = replace(q, host=replace(HOST, bytes_per_s=HOST.bytes_per_s * factor))
    slow, fast = predict(MOE, q, NAMEPLATE), predict(MOE, wider, NAMEPLATE)
    assert fast.tok_per_s > slow.tok_per_s


@pytest.mark.parametrize("spec", [LLAMA, MOE], ids=["dense", "moe"])
@pytest.mark.parametrize("depth", [0, 1, 777, 40_000])
def test_the_curve_and_the_prediction_agree(spec: object, depth: int) -> None:
    q = Question(Workload("decode", n_depth=depth), chip("NVIDIA GeForce RTX 4090"), Run())
    single = predict(spec, q, released())  # type: ignore[arg-type]
    rate, low, high = decode_curve(spec, q, released()).at(depth)  # type: ignore[arg-type]
    assert rate == pytest.approx(single.tok_per_s, rel=1e-9)
    assert (low, high) == pytest.approx((single.low, single.high), rel=1e-9)


def test_a_generic_model_never_gets_a_confident_number() -> None:
    generic = replace(LLAMA, confidence="generic")
    sure = predict(LLAMA, question("decode"), NAMEPLATE)
    unsure = predict(generic, question("decode"), NAMEPLATE)
    assert unsure.low == pytest.approx(sure.low / 2)
    # The ceiling caps the upper end; the width still doubles.
    assert unsure.high / unsure.low >= 2 * sure.high / sure.low


def test_evidence_is_named_by_what_was_measured() -> None:
    effects = {
        chip_effect("decode", HOST, "CUDA"): 0.0,
        family_effect("decode", HOST, "Vulkan"): 0.0,
    }
    known = replace(
        NAMEPLATE,
        effects=effects,
        intervals={
            f"decode/{e}, new model/{backend}": {"0.8": (-0.1, 0.1)}
            for backend in ("CPU", "CUDA", "Vulkan")
            for e in ("same host", "same chip family", "spec sheet only")
        },
    )
    q = question("decode")
    assert predict(LLAMA, q, known).evidence == "same host"
    vulkan = replace(q, run=Run(backend="Vulkan"))
    assert predict(LLAMA, vulkan, known).evidence == "same chip family"
    cpu = replace(q, run=Run(backend="CPU"))
    assert predict(LLAMA, cpu, known).evidence == "spec sheet only"


def test_a_model_that_was_measured_has_an_interval_of_its_own() -> None:
    q = question("decode")
    name = model_effect("decode", shape_of(LLAMA, q.workload).model)
    narrow = {"decode/spec sheet only/CUDA": {"0.8": (-0.1, 0.1)}}
    known = replace(NAMEPLATE, effects={name: 0.0}, intervals={**NAMEPLATE.intervals, **narrow})
    assert predict(LLAMA, q, known).low > predict(LLAMA, q, NAMEPLATE).low


def test_depth_beyond_the_data_is_said() -> None:
    seen = replace(NAMEPLATE, n_observations={"decode/CUDA": 5}, deepest={"decode/CUDA": 4096})
    assert predict(LLAMA, question("decode", n_depth=4096), seen).warnings == ()
    (warning,) = predict(LLAMA, question("decode", n_depth=8192), seen).warnings
    assert "beyond the deepest" in warning


def test_terms_account_for_every_byte_and_launch() -> None:
    works = ledger(MOE, Workload("prefill", n_prompt=700, n_depth=50))
    found = terms(works, HOST, Run(), "prefill")
    moved = sum(t.seconds for t in found if t.kind in ("memory", "cache", "activation"))
    assert moved == pytest.approx(sum(w.bytes for w in works) / HOST.bytes_per_s)
    done = sum(t.seconds for t in found if t.kind in ("compute", "attention"))
    flops = sum(w.flops for w in works if w.component not in ("norm", "embedding"))
    assert done == pytest.approx(flops / 1e13)
    launch = next(t for t in found if t.kind == "launch")
    assert launch.seconds == pytest.approx(1e-6 * sum(w.n_launches for w in works))


def test_components_add_up_to_the_prediction() -> None:
    p = predict(MOE, question("prefill"), NAMEPLATE)
    assert sum(c.seconds for c in p.components) == pytest.approx(p.seconds)
    assert len({(c.component, c.type) for c in p.components}) == len(p.components)


def test_an_unknown_type_is_predicted_as_a_byte_a_weight() -> None:
    odd = Work("ffn", "TYPE_99", 1e9, 2e9, 1.0)
    tile = next(t for t in terms([odd], HOST, Run(), "prefill") if t.kind == "tile")
    assert tile.seconds == pytest.approx(2 * TILE_ROWS * 1e9 / 1e13)


def test_dual_issue_is_not_counted_as_fp32_rate() -> None:
    card = replace(HOST, vendor="AMD", architecture="RDNA3")
    assert traits_of(card).fp32_flops_per_s == HOST.fp32_flops_per_s / 2  # type: ignore[operator]
    assert traits_of(HOST).fp32_flops_per_s == HOST.fp32_flops_per_s


def test_the_interval_is_in_log_space() -> None:
    p = predict(LLAMA, question("decode"), NAMEPLATE)
    assert p.low == pytest.approx(p.tok_per_s * math.exp(-0.2))


def test_half_the_threads_take_twice_the_arithmetic_and_the_same_memory() -> None:
    cpu = replace(HOST, kind="cpu", n_cores=8)
    works = ledger(LLAMA, Workload("decode"))
    whole, half, more = (
        terms(works, cpu, Run(backend="CPU", n_threads=n), "decode") for n in (8, 4, 16)
    )
    assert whole == more
    for a, b in zip(whole, half, strict=True):
        factor = 2 if a.kind in ("compute", "attention") else 1
        assert b.seconds == pytest.approx(factor * a.seconds)


@pytest.mark.parametrize(
    ("architecture", "family"),
    [
        ("Cortex-A72 (BCM2711)", "a72"),
        ("Cortex-A76 (BCM2712)", "neon"),
        ("8x Cortex-A720 + 4x A520", "i8mm"),
        ("Neoverse-N1", "neon"),
        ("Neoverse-V2", "i8mm"),
        ("P550 (RISC-V, no vector unit)", "scalar"),
        ("Zen 4", "zen4"),
        ("Zen+", "zen1"),
    ],
)
def test_a_processors_family_is_of_its_instructions(architecture: str, family: str) -> None:
    """An A720 multiplies 8-bit matrices (I8MM), an A72 has not even dot products."""
    core = replace(HOST, kind="cpu", vendor="Arm", architecture=architecture)
    assert traits_of(core).family == family
