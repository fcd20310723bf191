"""Memory modules: where they sit, how fast they are and what they add up to."""

import pytest

from tokcast.hosts.detect.cores import core_design
from tokcast.hosts.detect.memory import (
    Module,
    combined,
    from_dmidecode,
    from_macos,
    from_udev,
    from_windows,
)
from tokcast.hosts.detect.platforms import platform_of


def module(place: str, kind: str = "DDR5", mt_per_s: float = 4800, bits: int | None = 64) -> Module:
    return Module(kind, mt_per_s * 1e6, bits, place)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("P0 CHANNEL A DIMM 1", "P0 CHANNEL B DIMM 1"),
        ("BANK 0 Controller0-ChannelA-DIMM0", "BANK 0 Controller1-ChannelA-DIMM0"),
        ("BANK 0 ChannelA-DIMM0", "BANK 2 ChannelB-DIMM0"),
        ("BANK 1 DIMM_A2", "BANK 3 DIMM_B2"),
        ("P1_Node1_Channel0_Dimm1 P2-DIMME2", "P1_Node1_Channel1_Dimm0 P2-DIMMF1"),
        ("NODE 0 CPU0_C0D0", "NODE 0 CPU0_C1D0"),
        ("BANK 0 DDR4-A1", "BANK 1 DDR4-B1"),
        ("Channel A Slot 0 DIMM 1", "Channel B Slot 0 DIMM 2"),
        ("BANK 0 Controller0-DIMMA2", "BANK 0 Controller0-DIMMB2"),
    ],
)
def test_two_channels_are_told_apart(first: str, second: str) -> None:
    assert module(first).channel is not None
    assert module(first).channel != module(second).channel
    memory = combined([module(first), module(second)], n_sockets=1, bus_bits=None)
    assert memory is not None
    assert memory.bytes_per_s == 2 * 8 * 4800e6


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("P0 CHANNEL A DIMM 0", "P0 CHANNEL A DIMM 1"),
        ("BANK 0 ChannelA-DIMM0", "BANK 1 ChannelA-DIMM1"),
        ("BANK 0 DIMM_A1", "BANK 1 DIMM_A2"),
    ],
)
def test_two_modules_on_one_channel_do_not_add_up(first: str, second: str) -> None:
    memory = combined([module(first), module(second)], n_sockets=1, bus_bits=None)
    assert memory is not None
    assert memory.bytes_per_s == 8 * 4800e6


def test_soldered_chips_add_up_to_the_bus() -> None:
    chips = [module(f"P0 CHANNEL {c} DIMM {i}", "LPDDR5", 8000, 32) for c in "ABCD" for i in (0, 1)]
    memory = combined(chips, n_sockets=1, bus_bits=256)
    assert memory is not None
    assert (memory.bytes_per_s, memory.description) == (256e9, "LPDDR5-8000 on 256 bits")


def test_places_that_name_no_channel_count_each_up_to_the_bus() -> None:
    slots = [module(f"Slot {i}") for i in range(4)]
    memory = combined(slots, n_sockets=1, bus_bits=128)
    assert memory is not None
    assert memory.bytes_per_s == 16 * 4800e6


def test_the_slowest_module_sets_the_speed() -> None:
    pair = [module("DIMM_A1", mt_per_s=5600), module("DIMM_B1", mt_per_s=4800)]
    memory = combined(pair, n_sockets=1, bus_bits=None)
    assert memory is not None
    assert memory.bytes_per_s == 16 * 4800e6


def test_two_sockets_share_the_modules() -> None:
    pair = [module(f"P{socket} CHANNEL A DIMM 0") for socket in (0, 1)]
    memory = combined(pair, n_sockets=2, bus_bits=None)
    assert memory is not None
    assert memory.bytes_per_s == 8 * 4800e6


def test_no_speed_is_no_answer() -> None:
    assert combined([], 1, 128) is None
    assert combined([Module("DDR4", None, 64, "DIMM_A1")], 1, 128) is None


def test_udev_lines() -> None:
    text = (
        "E:MEMORY_DEVICE_0_SIZE=17179869184\nE:MEMORY_DEVICE_0_TYPE=DDR4\n"
        "E:MEMORY_DEVICE_0_SPEED_MTS=3200\nE:MEMORY_DEVICE_0_LOCATOR=DIMM_A1\n"
        "E:MEMORY_DEVICE_1_SIZE=0\nE:MEMORY_DEVICE_1_LOCATOR=DIMM_A2\n"
        "E:MEMORY_DEVICE_2_PRESENT=0\nE:MEMORY_DEVICE_2_SPEED_MTS=3000\n"
    )
    assert from_udev(text) == (Module("DDR4", 3200e6, None, " DIMM_A1"),)


def test_dmidecode_prefers_the_configured_speed_and_copes_with_unknown() -> None:
    text = (
        "Handle 0x1, DMI type 17, 40 bytes\nMemory Device\n\tData Width: 64 bits\n"
        "\tSize: 8192 MB\n\tLocator: DIMM 1\n\tBank Locator: Channel A Slot 0\n\tType: DDR3\n"
        "\tSpeed: 1600 MHz\n\tConfigured Clock Speed: 1067 MHz\n\n"
        "Handle 0x2, DMI type 17, 40 bytes\nMemory Device\n\tSize: 16 GiB\n\tLocator: DIMM 2\n"
        "\tType: DDR4\n\tSpeed: 2400 MT/s\n\tConfigured Memory Speed: Unknown\n\n"
        "Handle 0x3, DMI type 17, 40 bytes\nMemory Device\n\tSize: No Module Installed\n"
    )
    assert from_dmidecode(text) == (
        Module("DDR3", 1067e6, 64, "Channel A Slot 0 DIMM 1"),
        Module("DDR4", 2400e6, None, " DIMM 2"),
    )


def test_windows_rows_with_numbers_as_text() -> None:
    row = {
        "Capacity": "17179869184",
        "Speed": 5600,
        "ConfiguredClockSpeed": "5200",
        "SMBIOSMemoryType": 34,
        "DataWidth": 64,
        "DeviceLocator": "DIMM 0",
        "BankLabel": "P0 CHANNEL A",
    }
    assert from_windows([row, {"Capacity": None}]) == (
        Module("DDR5", 5200e6, 64, "P0 CHANNEL A DIMM 0"),
    )


def test_apple_chips_list_no_speed_and_are_left_alone() -> None:
    assert from_macos([{"dimm_type": "LPDDR5", "SPMemoryDataType": "64 GB"}]) == ()


@pytest.mark.parametrize(
    ("name", "family", "model", "bytes_per_s"),
    [
        ("AMD EPYC", 25, 17, 460.8e9),
        ("AMD EPYC-Milan Processor", 25, 1, 204.8e9),
        ("AMD EPYC 9B14", 26, 2, 576e9),
        ("Intel(R) Xeon(R) Processor @ 2.90GHz", 6, 143, 307.2e9),
        ("Intel(R) Xeon(R) CPU @ 2.20GHz", 6, 79, 76.8e9),
        ("AMD Ryzen 7 9800X3D 8-Core Processor", 26, 68, 83.2e9),
        ("AMD Ryzen 5 2600 Six-Core Processor", 23, 8, 51.2e9),
        ("13th Gen Intel(R) Core(TM) i7-13700F", 6, 183, 76.8e9),
        ("Intel(R) Core(TM) i5-8250U CPU @ 1.60GHz", 6, 142, 42.656e9),
        ("Intel(R) Core(TM) i5-3470 CPU @ 3.20GHz", 6, 58, 25.6e9),
        ("Intel(R) Core(TM) Ultra 5 125H", 6, 170, 89.6e9),
        ("Neoverse-N1", None, None, 204.8e9),
        ("something", None, None, 42.656e9),
    ],
)
def test_typical_memory_of_a_family(
    name: str, family: int | None, model: int | None, bytes_per_s: float
) -> None:
    assert platform_of(name, family, model).bytes_per_s == pytest.approx(bytes_per_s)


@pytest.mark.parametrize(
    ("name", "family", "model", "design"),
    [
        ("AMD Ryzen 5 2600", 23, 8, "Zen"),
        ("AMD Ryzen 9 3900X", 23, 113, "Zen 2"),
        ("AMD Ryzen 9 5950X", 25, 33, "Zen 3"),
        ("AMD Ryzen 9 7950X", 25, 97, "Zen 4"),
        ("AMD Ryzen 9 9950X", 26, 68, "Zen 5"),
        ("Intel Core i7-12700H", 6, 154, "alderlake"),
        ("Intel Core i7-1185G7", 6, 140, "tigerlake"),
        ("Intel Xeon Platinum 8259CL", 6, 85, "skylake-avx512"),
        ("Neoverse-V2", None, None, "Neoverse-V2"),
        ("something", 6, 255, ""),
        ("something", None, None, ""),
    ],
)
def test_core_design(name: str, family: int | None, model: int | None, design: str) -> None:
    assert core_design(name, family, model) == design
