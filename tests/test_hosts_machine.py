"""Machines of several parts by name: cards in order, the processor last, main memory by JEDEC."""

import pytest

from tokcast.hosts.machine import UNKNOWN_BYTES_PER_S, machine, main_memory
from tokcast.hosts.parts import has_parts
from tokcast.predictor.errors import InputError

GIB = 2**30


def test_a_card_and_its_main_memory() -> None:
    m = machine("RTX 4070 Laptop + 64G DDR5-5600")
    assert [(d.name, d.kind, d.index) for d in m.devices] == [
        ("CUDA0", "gpu", 0),
        ("CPU", "cpu", 1),
    ]
    assert m.cards[0].host.name == "NVIDIA GeForce RTX 4070 Laptop GPU"
    assert m.processor.host.bytes_per_s == 89.6e9
    assert m.processor.memory_bytes == 64 * GIB
    assert not m.processor.is_assumed
    assert m.notes == ("main memory is taken to have two channels",)


# Channels x 8 bytes x transfers/s, as in the names of JEDEC's modules: PC4-25600, PC5-44800.
@pytest.mark.parametrize(
    ("text", "gigabytes_per_s", "gib"),
    [
        ("DDR4-3200", 51.2, None),
        ("32GB DDR4-3200", 51.2, 32),
        ("64G DDR5-5600", 89.6, 64),
        ("single-channel 16 GB DDR4-2666", 21.328, 16),
        ("128G quad-channel DDR4-3200", 102.4, 128),
        ("8-channel DDR5-4800 256G", 307.2, 256),
        ("16G DDR3", 25.6, 16),
        ("64G LPDDR5X-8533", 136.528, 64),
        ("1T 12ch DDR5 6400", 614.4, 1024),
    ],
)
def test_main_memory_as_people_write_it(
    text: str, gigabytes_per_s: float, gib: float | None
) -> None:
    found = main_memory(text)
    assert found is not None
    n_bytes, bytes_per_s, _ = found
    assert bytes_per_s is not None
    assert round(bytes_per_s / 1e9, 3) == gigabytes_per_s
    assert n_bytes == (None if gib is None else gib * GIB)


@pytest.mark.parametrize("text", ["RTX 3090", "Ryzen 9 7950X", "", "4090", "DDR", "quad-channel"])
def test_what_is_no_main_memory(text: str) -> None:
    assert main_memory(text) is None


def test_memory_that_nobody_described_is_assumed_and_said() -> None:
    m = machine("2x RTX 3090")
    assert [d.name for d in m.devices] == ["CUDA0", "CUDA1", "CPU"]
    assert m.processor.host.bytes_per_s == UNKNOWN_BYTES_PER_S
    assert m.processor.memory_bytes is None
    assert m.processor.is_assumed
    assert "taken to move 65 GB/s" in m.notes[-1]
    sized = machine("RTX 3090 + 64 GB").processor
    assert (sized.memory_bytes, sized.is_assumed) == (64 * GIB, True)


def test_mixed_cards_keep_their_order_and_their_memory() -> None:
    m = machine("RTX 3090 + RTX 3060 12GB")
    assert [c.memory_bytes for c in m.cards] == [24 * GIB, 12 * GIB]
    # Cards of two makers share a backend that drives both.
    both = machine("RTX 3090 + RX 7900 XTX + DDR4-3200")
    assert [d.name for d in both.devices] == ["Vulkan0", "Vulkan1", "CPU"]


def test_a_known_processor_has_the_memory_that_is_said() -> None:
    m = machine("RTX 4090 + Ryzen 9 7950X + 64G DDR5-6000")
    assert m.processor.host.name == "AMD Ryzen 9 7950X"
    assert m.processor.host.bytes_per_s == 96e9
    alone = machine("Ryzen 9 7950X")
    assert not alone.cards
    assert alone.processor.host.bytes_per_s == alone.devices[0].host.bytes_per_s


def test_a_shared_memory_is_one_memory() -> None:
    m = machine("M4 Max 36GB", unified_share=0.75)
    assert m.is_unified
    assert [d.memory_bytes for d in m.devices] == [27 * GIB, 27 * GIB]


def test_a_plus_in_a_name_joins_nothing() -> None:
    alone = machine("Ryzen AI Max+ 395")
    assert alone.is_unified
    assert not has_parts("Ryzen AI Max+ 395")
    assert has_parts("Ryzen AI Max+ 395 + RTX 3090")
    assert [d.name for d in machine("RTX 3090 + Ryzen AI Max+ 395 CPU").devices] == ["CUDA0", "CPU"]


def test_names_that_make_no_machine() -> None:
    for text, words in (
        ("64G DDR5-5600", "only a main memory"),
        ("RTX 3090 + 32G + 64G", "two main memories"),
        ("7950X + 5950X", "two processors"),
        ("RTX 3090 + nonsense", "'nonsense' is not a known chip"),
        ("+", "is not a known chip"),
        ("RTX 3090+64G", "is not a known chip"),
    ):
        with pytest.raises(InputError, match=words):
            machine(text)
