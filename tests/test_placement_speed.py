"""A placed model's speed: whole models unchanged, hand-overs counted, copies from 32 tokens up."""

import math
from dataclasses import replace

import pytest

from tokcast.fits.placed_released import released_placed
from tokcast.fits.released import released
from tokcast.hosts.machine import machine
from tokcast.predictor.catalogue import header
from tokcast.predictor.ledger import Workload, ledger, total
from tokcast.predictor.placement.company import PlacedCoefficients
from tokcast.predictor.placement.gather import Times, gather
from tokcast.predictor.placement.inventory import Inventory
from tokcast.predictor.placement.plan import Placement, PlacementOptions, place
from tokcast.predictor.placement.route import route
from tokcast.predictor.placement.speed import compile_speed, speed
from tokcast.predictor.placement.units import Timer, passes
from tokcast.predictor.prediction import Prediction
from tokcast.predictor.roofline import Question, predict
from tokcast.predictor.terms import Run

LAPTOP = "RTX 4070 Laptop + 64G DDR5-5600"
RUN = Run(year=2026.4)
MOE = Inventory(header("qwen3-30b-a3b", "Q4_K_M"))
DENSE = Inventory(header("llama-3.1-8b", "Q4_K_M"))
# Nothing added to the released times, and no error known.
NOTHING = PlacedCoefficients(
    "none",
    "none",
    {},
    {
        f"{phase}/{kind}": {"0.8": (0.0, 0.0)}
        for phase in ("decode", "prefill")
        for kind in ("cpu", "cards", "rows")
    },
    {},
)


def _placed(
    model: Inventory, host: str, options: PlacementOptions | None = None
) -> tuple[Placement, Question]:
    devices = machine(host).devices
    load = Workload("decode", n_depth=64)
    return place(model, devices, options), Question(load, devices[0].host, RUN)


def _said(
    model: Inventory,
    host: str,
    options: PlacementOptions | None = None,
    load: Workload | None = None,
    run: Run = RUN,
) -> Prediction:
    placement, q = _placed(model, host, options)
    q = replace(q, workload=load or q.workload, run=run)
    return speed(placement, q, released(), released_placed())


def _times(placement: Placement, q: Question) -> Times:
    return gather(Timer(placement.spec, placement.devices, q, released()), placement)


@pytest.mark.parametrize("name", ["qwen3-30b-a3b", "gemma-3-27b", "qwen3.5-35b-a3b", "gpt-oss-20b"])
@pytest.mark.parametrize("phase", ["decode", "prefill"])
def test_a_model_on_one_card_is_predicted_as_before(name: str, phase: str) -> None:
    file_type = "MXFP4_MOE" if name.startswith("gpt") else "Q4_K_M"
    placement, q = _placed(Inventory(header(name, file_type)), "RTX 5090")
    load = Workload("decode" if phase == "decode" else "prefill", n_prompt=700, n_depth=1000)
    q = replace(q, workload=load)
    assert speed(placement, q, released(), released_placed()) == predict(
        placement.spec, q, released()
    )


@pytest.mark.parametrize("model", [MOE, DENSE])
@pytest.mark.parametrize("n_depth", [0, 8000])
def test_parts_add_up_to_the_whole_model(model: Inventory, n_depth: int) -> None:
    placement, q = _placed(model, "RTX 5090")
    q = replace(q, workload=replace(q.workload, n_depth=n_depth))
    times = _times(placement, q)
    whole = predict(placement.spec, q, released())
    assert sum(a.seconds for a in times.values()) == pytest.approx(whole.seconds, rel=2e-3)
    n_bytes, flops = total(ledger(placement.spec, q.workload))
    assert sum(a.n_bytes for a in times.values()) == pytest.approx(n_bytes, rel=1e-3)
    assert sum(a.flops for a in times.values()) == pytest.approx(flops, rel=1e-9)


def test_a_processor_alone_is_predicted_as_before() -> None:
    placement, q = _placed(DENSE, "Ryzen 9 7950X")
    run = replace(RUN, backend="CPU")
    q = replace(q, host=placement.devices[-1].host, run=run)
    assert speed(placement, q, released(), released_placed()) == predict(
        placement.spec, q, released()
    )


def test_hand_overs_are_counted() -> None:
    def ways(host: str, options: PlacementOptions | None = None) -> tuple[int, int]:
        way = route(_placed(MOE, host, options)[0], is_streamed=False)
        return way.n_crossings, way.n_hops

    assert ways("RTX 5090") == (0, 0)
    # Every layer whose experts stay goes to the processor and back.
    assert ways(LAPTOP, PlacementOptions(n_cpu_moe=5)) == (10, 0)
    # 48 layers and the output: the first 29 with the processor, then the card to the end.
    assert ways(LAPTOP, PlacementOptions(n_gpu_layers=20)) == (1, 0)
    assert ways("2x RTX 3090") == (0, 1)
    assert ways("3x RTX 3090") == (0, 2)
    # Its cache in main memory: there and back in each of 48 layers.
    assert ways("RTX 5090", PlacementOptions(no_kv_offload=True)) == (96, 0)


def test_nothing_is_handed_over_while_a_card_computes_all() -> None:
    placement, _ = _placed(MOE, LAPTOP, PlacementOptions(n_cpu_moe=48))
    assert route(placement, is_streamed=True).n_crossings == 0


def test_weights_in_main_memory_are_copied_from_32_tokens_up() -> None:
    placement, q = _placed(MOE, LAPTOP, PlacementOptions(n_cpu_moe=48))

    def roles(n_prompt: int, run: Run = RUN) -> set[str]:
        load = Workload("prefill", n_prompt=n_prompt)
        return {use.role for use in _times(placement, replace(q, workload=load, run=run))}

    assert "streamed" not in roles(31)
    assert "cpu" in roles(31)
    assert "streamed" in roles(32)
    assert "cpu" not in roles(32)
    # The last token of 513 is a micro-batch of its own.
    assert {"cpu", "streamed"} <= roles(513)
    # ik_llama.cpp: 32 tokens an expert, of which 8 of 128 are used: 512.
    fork = replace(RUN, runtime="ik_llama.cpp")
    assert "streamed" not in roles(511, fork)
    assert "streamed" in roles(512, fork)


def test_a_copy_is_the_experts_bytes_each_micro_batch() -> None:
    placement, q = _placed(MOE, LAPTOP, PlacementOptions(n_cpu_moe=48))
    load = Workload("prefill", n_prompt=4096, n_ubatch=2048)
    times = _times(placement, replace(q, workload=load))
    copied = sum(a.n_bytes for use, a in times.items() if use.role == "link")
    experts = sum(p.sum.n_bytes for p in placement.parts if p.is_expert)
    # 2048 tokens that pick 8 of 128 leave no expert out; beside it the tokens' own vectors.
    assert copied == pytest.approx(2 * experts, rel=0.01)
    link = placement.devices[0].host.link_bytes_per_s
    assert link == 15.8e9
    seconds = sum(a.seconds for use, a in times.items() if use.role == "link")
    assert seconds == pytest.approx(copied / 15.8e9)


def test_a_prompt_passes_in_whole_micro_batches_and_a_rest() -> None:
    whole, rest = passes(Workload("prefill", n_prompt=1100, n_depth=10, n_ubatch=512))
    assert (whole.n_prompt, whole.n_depth, rest.n_prompt, rest.n_depth) == (1024, 10, 76, 1034)
    assert len(passes(Workload("prefill", n_prompt=1024, n_ubatch=512))) == 1
    assert len(passes(Workload("prefill", n_prompt=100, n_ubatch=512))) == 1


@pytest.mark.parametrize("placed", [NOTHING, released_placed()])
def test_more_on_the_card_is_faster(placed: PlacedCoefficients) -> None:
    devices = machine(LAPTOP).devices
    q = Question(Workload("decode", n_depth=500), devices[0].host, RUN)
    told = compile_speed(MOE.spec, devices, q, released(), placed)
    rates = [
        told(place(MOE, devices, PlacementOptions(n_gpu_layers=n, n_cpu_moe=48))).tok_per_s
        for n in (1, 12, 25, 37, 49)
    ]
    rates += [
        told(place(MOE, devices, PlacementOptions(n_cpu_moe=k))).tok_per_s for k in (40, 24, 8, 1)
    ]
    assert rates == sorted(rates)


def test_faster_memory_is_faster_as_far_as_it_is_read() -> None:
    options = PlacementOptions(n_cpu_moe=48)
    slow = _said(MOE, "RTX 4090 + 64G DDR4-3200", options)
    fast = _said(MOE, "RTX 4090 + quad-channel 64G DDR4-3200", options)
    assert slow.tok_per_s < fast.tok_per_s < 2 * slow.tok_per_s


def test_a_second_card_alike_costs_one_hop_and_no_more() -> None:
    one, two = (
        sum(a.seconds for a in _times(*_placed(DENSE, host)).values())
        for host in ("RTX 3090", "2x RTX 3090")
    )
    # Ten microseconds of a hop before its fitted multiple, and 16 KiB over 31.5 GB/s.
    assert two - one == pytest.approx(10e-6 + 4 * 4096 / 31.5e9)


def test_cards_work_at_once_on_several_micro_batches() -> None:
    def seconds(n_prompt: int, options: PlacementOptions | None = None) -> float:
        placement, q = _placed(DENSE, "2x RTX 3090", options)
        load = Workload("prefill", n_prompt=n_prompt, n_ubatch=512)
        return speed(placement, replace(q, workload=load), released(), NOTHING).seconds

    alone = seconds(4096, PlacementOptions(split_mode="none"))
    assert seconds(512) > 0.98 * seconds(512, PlacementOptions(split_mode="none"))
    assert alone / 2 < seconds(4096) < 0.75 * alone


def test_a_memory_that_nobody_stated_widens_the_range_by_its_part() -> None:
    most = PlacementOptions(n_cpu_moe=48)
    told = _said(MOE, "RTX 4090 + 64G DDR4-3200", most)
    unknown = _said(MOE, "RTX 4090", most)
    hardly = _said(MOE, "RTX 4090", PlacementOptions(n_cpu_moe=1))

    def width(p: Prediction) -> float:
        return math.log(p.high / p.low)

    assert width(hardly) == pytest.approx(width(told), rel=0.05)
    assert width(unknown) > 1.1 * width(told)


def test_what_was_not_measured_is_said() -> None:
    placement, q = _placed(MOE, LAPTOP, PlacementOptions(n_cpu_moe=48))
    said = speed(placement, q, released(), NOTHING)
    assert said.warnings == ("no decode measurements of partly offloaded models are behind this",)


def test_components_are_named_after_their_device_and_add_up() -> None:
    said = _said(MOE, LAPTOP, PlacementOptions(n_cpu_moe=48))
    names = {c.component for c in said.components}
    assert {"experts, CPU", "attention, CUDA0", "hand-overs, CPU"} <= names
    assert sum(c.seconds for c in said.components) == pytest.approx(said.seconds)


# What users reported (see the issue threads of AlexsJones/llmfit, 449 and its tests), each within
# the range: an RX 6900 XT with ROCm and dual DDR4, an RTX 5090 in LM Studio, a DGX Spark.
@pytest.mark.parametrize(
    ("model", "file_type", "host", "options", "run", "measured"),
    [
        ("olmoe-1b-7b", "Q4_K_M", "RX 6900 XT + 64G DDR4-3200", {}, "ROCm", 257.0),
        ("qwen3.5-35b-a3b", "IQ2_XXS", "RX 6900 XT + 64G DDR4-3200", {}, "ROCm", 77.6),
        (
            "qwen3-next-80b-a3b",
            "Q4_K_M",
            "RX 6900 XT + 64G DDR4-3200",
            {"n_cpu_moe": 48},
            "ROCm",
            10.3,
        ),
        ("qwen3-30b-a3b", "Q4_K_M", "RTX 5090", {}, "client", 165.0),
        ("llama-3.1-70b", "Q4_K_M", "DGX Spark", {}, "CUDA", 4.5),
    ],
)
def test_what_users_measured_is_in_the_range(
    model: str, file_type: str, host: str, options: dict[str, int], run: str, measured: float
) -> None:
    is_client = run == "client"
    as_run = Run(
        backend="CUDA" if is_client else run,
        year=2026.3,
        is_client_timed=is_client,
        system="Windows" if is_client else "",
    )
    # Answers of a chat lie some thousand tokens in.
    load = Workload("decode", n_depth=2000 if is_client else 64)
    placed = PlacementOptions(**options)
    said = _said(Inventory(header(model, file_type)), host, placed, load, as_run)
    assert said.low <= measured <= said.high


def test_a_bench_shows_more_than_a_server() -> None:
    model = Inventory(header("qwen3-30b-a3b", "Q4_K_M"))
    bench = _said(model, "RTX 5090")
    client = replace(RUN, is_client_timed=True, system="Windows")
    server = _said(model, "RTX 5090", load=Workload("decode", n_depth=2000), run=client)
    assert 1.3 < bench.tok_per_s / server.tok_per_s < 2
    assert server.high > 150
