"""Where tensors and caches go: llama.cpp's rules by hand, conservation, printed buffers."""

from dataclasses import replace
from math import isclose

import pytest
import small_models as small

from tokcast.hosts.machine import machine
from tokcast.predictor import catalogue
from tokcast.predictor.errors import InputError
from tokcast.predictor.memory import Setting, memory
from tokcast.predictor.placement.fit import MARGIN_BYTES, fit
from tokcast.predictor.placement.inventory import Inventory
from tokcast.predictor.placement.loads import device_loads
from tokcast.predictor.placement.memory import device_memory, fits
from tokcast.predictor.placement.plan import (
    ROWS,
    Placement,
    PlacementOptions,
    is_pipelined,
    place,
)

MIB = 2**20
ONE = machine("RTX 4090 + 64G DDR5-5600").devices
TWO = machine("2x RTX 3090 + 64G DDR5-5600").devices


def model(name: str, file_type: str = "Q4_K_M") -> Inventory:
    return Inventory(catalogue.header(name, file_type))


QWEN, LLAMA = model("qwen3-30b-a3b"), model("llama-3.1-8b")
GEMMA, OSS = model("gemma-3-270m"), model("gpt-oss-20b")


def cards_layers(p: Placement) -> list[int]:
    return [p.layer_devices.count(i) for i in range(p.cpu)]


def test_the_last_layers_go_to_the_card_and_the_output_is_one_of_them() -> None:
    # 32 blocks and the output: of 20, the output and the last 19 blocks.
    p = place(LLAMA, ONE, PlacementOptions(n_gpu_layers=20))
    assert p.layer_devices == (1,) * 13 + (0,) * 20
    assert place(LLAMA, ONE, PlacementOptions(n_gpu_layers=1)).layer_devices == (1,) * 32 + (0,)
    assert set(place(LLAMA, ONE, PlacementOptions(n_gpu_layers=0)).layer_devices) == {1}
    assert set(place(LLAMA, ONE).layer_devices) == {0}


def test_a_table_that_is_looked_up_stays_with_the_processor() -> None:
    loads = device_loads(place(LLAMA, ONE))
    assert loads[1].weight_bytes == memory(LLAMA.spec, 256).weights_host_bytes
    assert loads[1].active_bytes == 0


def test_a_tied_table_is_copied_only_where_the_head_is_on_a_card() -> None:
    everywhere = [sum(x.weight_bytes for x in device_loads(place(GEMMA, ONE)))]
    at_home = PlacementOptions(n_gpu_layers=0)
    once = sum(x.weight_bytes for x in device_loads(place(GEMMA, ONE, at_home)))
    table = next(t for t in catalogue.header("gemma-3-270m", "Q4_K_M").tensors)
    assert once == GEMMA.spec.n_bytes
    assert everywhere[0] - once == table.n_bytes
    unified = machine("M4 Max 36GB").devices
    assert sum(x.weight_bytes for x in device_loads(place(GEMMA, unified))) == once


def test_layers_are_shared_by_proportions_that_add_up() -> None:
    # 33 places: those below 3/4 of the way to the first card.
    split = PlacementOptions(tensor_split=(3.0, 1.0))
    assert cards_layers(place(LLAMA, TWO, split)) == [25, 8]
    # Equal memory: the first half, 17 of 33, then 16.
    assert cards_layers(place(LLAMA, TWO)) == [17, 16]
    assert cards_layers(place(LLAMA, TWO, PlacementOptions(tensor_split=(0.0, 1.0)))) == [0, 33]
    mixed = machine("RTX 4090 + RTX 3060 12GB").devices
    assert cards_layers(place(LLAMA, mixed)) == [22, 11]


def test_a_tie_goes_to_the_next_card_in_single_precision() -> None:
    # Place 11 of 33 lies at exactly 1/3, as the first of three equal shares ends.
    three = machine("3x RTX 3090").devices
    p = place(LLAMA, three, PlacementOptions(tensor_split=(1.0, 1.0, 1.0)))
    assert cards_layers(p) == [11, 11, 11]


def test_only_one_card_is_used_when_nothing_is_split() -> None:
    p = place(LLAMA, TWO, PlacementOptions(split_mode="none", main_gpu=1))
    assert cards_layers(p) == [0, 33]
    assert p.flags == ("-ngl", "99", "-sm", "none", "-mg", "1")


def test_experts_of_the_first_layers_stay_in_main_memory() -> None:
    p = place(QWEN, ONE, PlacementOptions(n_cpu_moe=10))
    away = {
        part.layer
        for part, at in zip(p.parts, p.part_devices, strict=True)
        if at == p.cpu and part.is_expert
    }
    assert away == set(range(10))
    loads = device_loads(p)
    experts = sum(x.tensor.n_bytes for x in QWEN.items if x.is_expert and x.layer < 10)
    assert loads[1].expert_bytes == experts
    # Of 128 experts a token reads 8.
    assert loads[1].active_bytes == experts * 8 / 128
    assert set(p.layer_devices) == {0}


def test_a_pattern_moves_what_it_names_and_the_first_one_decides() -> None:
    p = place(
        QWEN,
        ONE,
        PlacementOptions(overrides=((r"blk\.1\.ffn_up_exps", "CUDA0"), (r"_exps", "CPU"))),
    )
    loads = device_loads(p)
    (kept,) = [x.tensor for x in QWEN.items if x.tensor.name == "blk.1.ffn_up_exps.weight"]
    assert loads[0].expert_bytes == kept.n_bytes
    # blk.1 is not blk.11
    assert not p.warnings


def test_biases_of_experts_go_with_them() -> None:
    p = place(OSS, ONE, PlacementOptions(n_cpu_moe=24))
    on_card = [x for x in OSS.items if x.is_expert and x.tensor.name.endswith(".bias")]
    assert on_card
    assert device_loads(p)[0].expert_bytes == 0


def test_caches_are_where_their_layers_are_or_in_main_memory() -> None:
    half = PlacementOptions(n_gpu_layers=17)
    p = place(LLAMA, ONE, half)
    assert p.kv_devices == (1,) * 16 + (0,) * 16
    away = place(LLAMA, ONE, replace(half, no_kv_offload=True))
    assert set(away.kv_devices) == {1}
    for placement in (p, away):
        held = device_memory(placement, 4096)
        assert sum(x.kv_bytes for x in held) == memory(LLAMA.spec, 4096).kv_bytes


def test_rows_are_shared_by_all_cards_but_stacked_experts_are_not() -> None:
    row = PlacementOptions(split_mode="row", tensor_split=(3.0, 1.0))
    p = place(LLAMA, TWO, row)
    shares = [x.weight_bytes for x in device_loads(p)[:2]]
    assert isclose(shares[0] / sum(shares), 0.75, abs_tol=0.01)
    experts = place(QWEN, TWO, row)
    pairs = zip(experts.parts, experts.part_devices, strict=True)
    assert all(at != ROWS for part, at in pairs if part.is_expert)


EVERY = [
    PlacementOptions(),
    PlacementOptions(n_gpu_layers=7),
    PlacementOptions(n_cpu_moe=9),
    PlacementOptions(tensor_split=(1.0, 2.0)),
    PlacementOptions(split_mode="row"),
    PlacementOptions(no_kv_offload=True, overrides=(("attn_", "CPU"),)),
]


@pytest.mark.parametrize("m", [QWEN, LLAMA, OSS], ids=lambda m: m.spec.architecture)
@pytest.mark.parametrize("options", EVERY, ids=lambda o: " ".join(o.split_mode) + str(o.n_cpu_moe))
def test_nothing_is_lost_or_made(m: Inventory, options: PlacementOptions) -> None:
    p = place(m, TWO, options)
    loads = device_loads(p)
    assert isclose(sum(x.weight_bytes for x in loads), m.spec.n_bytes, rel_tol=1e-9)
    active = sum(g.n_bytes * g.read_fraction for g in m.spec.groups)
    assert isclose(sum(x.active_bytes for x in loads), active, rel_tol=1e-9)
    # Every block is computed somewhere, and the head once.
    assert sorted(i for x in loads for i in x.layers) == list(range(m.n_layer))
    assert sum(x.has_output for x in loads) == 1


def test_memory_on_one_card_is_that_of_the_plain_estimate() -> None:
    for m in (QWEN, LLAMA, OSS, GEMMA):
        for n, how in ((4096, Setting()), (65536, Setting("Q8_0", "Q8_0"))):
            card, main = device_memory(place(m, ONE), n, how)
            use = memory(m.spec, n, Setting(how.type_k, how.type_v))
            assert card.total_bytes == use.device_bytes
            assert main.total_bytes == use.host_bytes


def test_several_sequences_share_the_context() -> None:
    one = device_memory(place(LLAMA, ONE), 32768)[0]
    four = device_memory(place(LLAMA, ONE), 32768, Setting(n_sequences=4))[0]
    assert one.kv_bytes == four.kv_bytes
    # A state is kept for each of them.
    hybrid = model("qwen3.5-4b")
    states = [
        device_memory(place(hybrid, ONE), 4096, Setting(n_sequences=n))[0].recurrent_bytes
        for n in (1, 4)
    ]
    assert states[1] == 4 * states[0] > 0
    with pytest.raises(InputError, match="n_sequences is 0, expected 1 to"):
        device_memory(place(LLAMA, ONE), 4096, Setting(n_sequences=0))


def test_cards_work_on_several_batches_only_when_all_is_on_them() -> None:
    assert is_pipelined(place(LLAMA, TWO))
    assert not is_pipelined(place(LLAMA, ONE))
    for options in (
        PlacementOptions(n_gpu_layers=20),
        PlacementOptions(no_kv_offload=True),
        PlacementOptions(split_mode="row"),
        PlacementOptions(overrides=(("attn_k", "CPU"),)),
    ):
        assert not is_pipelined(place(LLAMA, TWO, options))


# Buffers printed by CUDA builds in public threads, in MiB.
PRINTED_30B = "github.com/ggml-org/llama.cpp/issues/13729"
PRINTED_35B = "github.com/ggml-org/llama.cpp/pull/6122"


def test_weights_that_a_cuda_build_printed_layer_by_layer() -> None:
    # That build put 30 blocks on the card and left the output with the processor.
    on_card = sum(x.tensor.n_bytes for x in QWEN.items if 18 <= x.layer < 48)
    assert round(on_card / MIB, 2) == 10750.86, PRINTED_30B
    assert round((QWEN.spec.n_bytes - on_card) / MIB, 2) == 6940.48, PRINTED_30B
    # Today's builds count the output as one of the 30.
    loads = device_loads(place(QWEN, ONE, PlacementOptions(n_gpu_layers=30)))
    first = sum(x.tensor.n_bytes for x in QWEN.items if x.layer == 18)
    head = sum(x.tensor.n_bytes for x in QWEN.items if x.layer == 48)
    assert loads[0].weight_bytes == on_card - first + head


def test_caches_that_two_cuda_cards_printed() -> None:
    # Command R on a 4070 Ti and a 3090 Ti: 12 of 40 layers on the first.
    p = place(model("command-r-35b", "Q4_0"), TWO, PlacementOptions(tensor_split=(12.0, 29.0)))
    held = device_memory(p, 4096)
    printed = [1536.0, 3584.0]
    assert [x.kv_bytes / MIB for x in held[:2]] == printed, PRINTED_35B


def test_what_llama_cpp_would_choose_fits_with_its_margin() -> None:
    devices = machine("RTX 4070 Laptop + 64G DDR5-5600").devices
    for m in (QWEN, LLAMA, OSS, model("llama-3.1-70b"), model("gpt-oss-120b")):
        for n_context in (4096, 32768):
            p = place(m, devices, fit(m, devices, n_context))
            held = device_memory(p, n_context)
            assert held[0].total_bytes <= devices[0].memory_bytes - MARGIN_BYTES  # type: ignore[operator]
            # and one more layer would not
            if p.n_gpu_layers < len(p.layer_devices) and not m.n_expert_layer:
                more = PlacementOptions(n_gpu_layers=p.n_gpu_layers + 1)
                next_one = device_memory(place(m, devices, more), n_context)[0]
                assert next_one.total_bytes > devices[0].memory_bytes - MARGIN_BYTES  # type: ignore[operator]


def test_fit_leaves_alone_what_fits_and_refuses_what_it_chooses_itself() -> None:
    assert fit(LLAMA, ONE, 4096) == PlacementOptions()
    cpu = machine("Ryzen 9 7950X").devices
    assert fit(LLAMA, cpu, 4096) == PlacementOptions()
    with pytest.raises(InputError, match="--fit chooses -ngl"):
        fit(LLAMA, ONE, 4096, options=PlacementOptions(n_gpu_layers=3))
    with pytest.raises(InputError, match="does not fit a split by rows"):
        fit(LLAMA, TWO, 4096, options=PlacementOptions(split_mode="row"))
    unknown = (replace(ONE[0], memory_bytes=None), ONE[1])
    with pytest.raises(InputError, match="memory of NVIDIA GeForce RTX 4090 is not known"):
        fit(LLAMA, unknown, 4096)


def test_fits_says_when_a_memory_is_not_known() -> None:
    held = device_memory(place(QWEN, ONE), 4096)
    assert fits(held) is True
    assert fits(held, margin_bytes=10e9) is False
    no_card = (replace(held[0], device=replace(held[0].device, memory_bytes=None)), held[1])
    assert fits(no_card) is None
    no_main = (held[0], replace(held[1], device=replace(held[1].device, memory_bytes=None)))
    assert fits(no_main) is True


def test_options_that_cannot_be_are_refused() -> None:
    for options, words in (
        (PlacementOptions(n_gpu_layers=-1), "-ngl -1: expected a number of layers"),
        (PlacementOptions(n_cpu_moe=-2), "-ncmoe -2: expected a number of layers"),
        (PlacementOptions(tensor_split=(1.0, 1.0)), "-ts has 2 proportions, the host 1 card;"),
        (PlacementOptions(tensor_split=(0.0,)), "-ts: expected proportions"),
        (PlacementOptions(main_gpu=1), "-mg 1: expected a card from 0 to 0"),
        (PlacementOptions(overrides=(("x", "CUDA3"),)), "no device 'CUDA3'; expected one of CUDA0"),
    ):
        with pytest.raises(InputError, match=words):
            place(LLAMA, ONE, options)


def test_what_has_no_effect_is_said() -> None:
    for options, words in (
        (PlacementOptions(n_gpu_layers=50), "-ngl 50: the model has 33 layers"),
        (PlacementOptions(n_cpu_moe=3), "-ncmoe 3: the model has no routed experts"),
        (PlacementOptions(overrides=(("nothing", "CPU"),)), "-ot nothing: matches no tensor"),
    ):
        (warning,) = place(LLAMA, ONE, options).warnings
        assert warning.startswith(words)
    assert not place(LLAMA, ONE, PlacementOptions(n_gpu_layers=99)).warnings


def test_blocks_for_further_tokens_count_as_layers_and_are_not_loaded() -> None:
    header = small.dense(n_block=2)
    extra = small.tensor("blk.1.nextn.eh_proj.weight", 16, 8)
    m = Inventory(replace(header, tensors=(*header.tensors, extra)))
    p = place(m, ONE, PlacementOptions(n_gpu_layers=2))
    assert p.layer_devices == (1, 0, 0)
    plain = Inventory(small.dense())
    weights = [sum(x.weight_bytes for x in device_loads(place(x, ONE))) for x in (m, plain)]
    assert weights[0] == weights[1]
