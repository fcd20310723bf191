"""Placement and memory against llama.cpp itself, on sparse files: no weights, invented cards."""

from pathlib import Path

import llama_oracle
import pytest
from llama_oracle import ask, memory_question, sparse, triples, words

from tokcast.hosts.machine import machine
from tokcast.predictor import catalogue
from tokcast.predictor.memory import Setting
from tokcast.predictor.placement.fit import fit
from tokcast.predictor.placement.inventory import Inventory
from tokcast.predictor.placement.memory import DeviceMemory, device_memory
from tokcast.predictor.placement.plan import PlacementOptions, place

MIB = 2**20
# One model for an architecture: dense, experts, sliding windows, latent caches, states, hybrids.
MODELS = [
    "afm-4.5b",
    "apertus-8b",
    "aya-expanse-8b",
    "codestral-mamba-7b",
    "command-r7b",
    "deepseek-v2-lite",
    "ernie-4.5-0.3b",
    "ernie-4.5-21b-a3b",
    "exaone-4.0-32b",
    "falcon-h1-1.5b",
    "gemma-2-9b",
    "gemma-3-12b",
    "gemma-3n-e4b",
    "gemma-4-26b-a4b",
    "glm-4-9b",
    "glm-4.5-air",
    "gpt-oss-20b",
    "granite-3.3-8b",
    "granite-4.0-h-tiny",
    "hunyuan-a13b",
    "internlm2.5-7b",
    "lfm2-1.2b",
    "lfm2-8b-a1b",
    "ling-mini-2.0",
    "llama-3.1-8b",
    "llama-4-scout",
    "mimo-v2-flash",
    "nemotron-3-nano-30b-a3b",
    "olmo-2-13b",
    "olmoe-1b-7b",
    "phi-3.5-mini",
    "qwen2.5-7b",
    "qwen3-8b",
    "qwen3-30b-a3b",
    "qwen3-next-80b-a3b",
    "qwen3.5-35b-a3b",
    "seed-oss-36b",
    "smollm3-3b",
    "starcoder2-7b",
]
CONTEXTS = (4096, 16384, 32768, 131072)
SETTINGS = (
    Setting(),
    Setting("Q8_0", "Q8_0"),
    Setting(swa_full=True),
    Setting(n_sequences=4),
    Setting(flash_attention=False),
)
# Their table is made after the head that it is tied to: without a mapped file it is there twice.
TWICE = {"gemma3n", "gemma4"}


def inventory(name: str) -> Inventory:
    return Inventory(catalogue.header(name, "Q4_K_M"))


def compare(found: tuple[DeviceMemory, ...], told: list[tuple[int, int, int]], extra: int) -> None:
    """Weights and caches to 2 MiB, totals to 3 % or 128 MiB, whichever is more."""
    for mine, (weights, caches, compute) in zip(found, told, strict=True):
        own = mine.weights_bytes + (extra if mine.device.kind == "cpu" else 0)
        kept = mine.kv_bytes + mine.recurrent_bytes
        assert abs(own - weights) + abs(kept - caches) <= 2 * MIB, mine
        total, wanted = own + kept + mine.compute_bytes, weights + caches + compute
        assert abs(total - wanted) <= max(0.03 * wanted, 128 * MIB), mine


@pytest.mark.parametrize("name", MODELS)
def test_memory_of_the_processor_is_what_llama_cpp_takes(name: str, tmp_path: Path) -> None:
    model = inventory(name)
    path = sparse(tmp_path / "m.gguf", catalogue.header(name, "Q4_K_M"))
    asked = [(n, how) for n in CONTEXTS for how in SETTINGS]
    plain = PlacementOptions()
    answers = ask([memory_question(path, n, how, plain) for n, how in asked])
    placement = place(model, machine("Ryzen 9 7950X").devices)
    table = sum(x.tensor.n_bytes for x in model.items if x.is_copy)
    extra = table if model.spec.architecture in TWICE else 0
    n_compared = 0
    for (n_context, how), answer in zip(asked, answers, strict=True):
        # Quantized caches are refused for a few lengths of heads.
        if not answer.startswith("error"):
            compare(device_memory(placement, n_context, how), triples(answer), extra)
            n_compared += 1
    assert n_compared >= 3 * len(CONTEXTS)


PLACED = ["llama-3.1-8b", "qwen3-30b-a3b", "gpt-oss-20b", "gemma-3-27b", "llama-3.1-70b"]
PLACED += ["glm-4.5-air", "gpt-oss-120b", "qwen2.5-32b", "deepseek-v2-lite", "olmoe-1b-7b"]


def options(model: Inventory, n_cards: int) -> list[PlacementOptions]:
    n = model.n_layer
    found = [
        PlacementOptions(),
        PlacementOptions(n_gpu_layers=n // 2),
        PlacementOptions(n_gpu_layers=1),
        PlacementOptions(n_gpu_layers=n),
        PlacementOptions(no_kv_offload=True),
        PlacementOptions(overrides=(("blk\\.[0-3]\\.ffn_", "CPU"), ("attn_k", "CUDA0"))),
    ]
    if model.n_expert_layer:
        found += [PlacementOptions(n_cpu_moe=n // 2), PlacementOptions(n_cpu_moe=n)]
    if n_cards > 1:
        found += [PlacementOptions(tensor_split=split) for split in ((1.0, 3.0), (2.0, 1.0))]
    return found


@pytest.mark.parametrize("host", ["RTX 4090", "RTX 4090 + RTX 3060 12GB"])
@pytest.mark.parametrize("name", PLACED)
def test_every_device_holds_what_llama_cpp_puts_there(name: str, host: str, tmp_path: Path) -> None:
    model, m = inventory(name), machine(host)
    path = sparse(tmp_path / "m.gguf", catalogue.header(name, "Q4_K_M"))
    asked = [
        (o, how, n)
        for o in options(model, len(m.cards))
        for how, n in ((Setting(), 8192), (Setting("Q8_0", "Q8_0"), 32768))
    ]
    answers = ask(
        [memory_question(path, n, how, o) for o, how, n in asked],
        [card.memory_bytes or 0 for card in m.cards],
    )
    for (o, how, n_context), answer in zip(asked, answers, strict=True):
        if not answer.startswith("error"):
            found = device_memory(place(model, m.devices, o), n_context, how)
            compare(found, triples(answer), 0)


def filled(text: str) -> tuple[int, list[int], set[int]]:
    """Return the layers on cards, the layers a card, and those without experts on a card."""
    parts = dict(zip(*[iter(text.split()[1:])] * 2, strict=True))
    split = [int(float(n)) for n in parts.get("-ts", "").split(",") if n]
    bare = set()
    for pattern in parts.get("-ot", "").split(",blk"):
        if "exps=CPU" in pattern:
            bare.add(int(pattern.removeprefix("blk").split(".")[1].rstrip("\\")))
    return int(parts["-ngl"]), split, bare


@pytest.mark.parametrize("host", ["RTX 4070 Laptop", "RTX 4090 + RTX 3060 12GB"])
@pytest.mark.parametrize("name", ["llama-3.1-70b", "gemma-3-27b", "qwen3-30b-a3b", "gpt-oss-120b"])
def test_fit_chooses_what_llama_cpp_chooses(name: str, host: str, tmp_path: Path) -> None:
    model, m = inventory(name), machine(host)
    path = sparse(tmp_path / "m.gguf", catalogue.header(name, "Q4_K_M"))
    room = [card.memory_bytes or 0 for card in m.cards]
    margins = " ".join([str(1024 * MIB)] * len(room))
    (answer,) = ask([f"fit {words(path, 16384, Setting())} 4096 {margins}"], room)
    n_layers, split, bare = filled(answer)
    chosen = fit(model, m.devices, 16384)
    if n_layers == -1:
        assert chosen == PlacementOptions()
        return
    assert chosen.n_gpu_layers is not None
    assert abs(chosen.n_gpu_layers - n_layers) <= 1
    for mine, wanted in zip(chosen.tensor_split, split, strict=True):
        assert abs(mine - wanted) <= 1
    placement = place(model, m.devices, chosen)
    found = {
        part.layer
        for part, at in zip(placement.parts, placement.part_devices, strict=True)
        if part.is_expert and at == placement.cpu and part.layer >= 0
    }
    # llama.cpp's last pattern may name a block that does not exist.
    assert abs(len(found) - len({i for i in bare if i < model.n_layer})) <= 2


def test_a_question_of_the_oracle_has_all_its_words(tmp_path: Path) -> None:
    question = memory_question(tmp_path, 4096, Setting(), PlacementOptions(n_cpu_moe=1))
    assert len(question.split()) == 16
    assert llama_oracle.EXPERTS in question
