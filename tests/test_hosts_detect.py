"""Machines recorded as what their tools print and their files hold, and what is found on them."""

import csv
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcast.hosts.detect import Detection, detect
from tokcast.hosts.detect.nvidia import Card
from tokcast.hosts.match import candidates

MACHINES = sorted((Path(__file__).parent / "data" / "detect").glob("*.toml"))


def cpuinfo(recorded: dict[str, Any]) -> str:
    """Write /proc/cpuinfo with one block a thread; `smt` threads share a core, 0 for no core id."""
    blocks = []
    for thread in range(recorded["threads"]):
        block = recorded["block"]
        if thread % 2 and "every_second" in recorded:
            block = recorded["every_second"]
        cores = max(1, recorded["threads"] // max(1, recorded["smt"]))
        core = f"core id\t\t: {thread % cores}\n" if recorded["smt"] else ""
        blocks.append(f"processor\t: {thread}\n{block.strip()}\n{core}")
    return "\n".join([*blocks, recorded.get("tail", "").lstrip()])


def machine(name: str) -> dict[str, Any]:
    path = Path(__file__).parent / "data" / "detect" / f"{name}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def detected(recorded: dict[str, Any]) -> Detection:
    files = dict(recorded.get("files", {}))
    if "cpuinfo" in recorded:
        files["/proc/cpuinfo"] = cpuinfo(recorded["cpuinfo"])
    outputs = recorded.get("run", {})

    def run(command: Sequence[str]) -> str | None:
        return outputs.get(" ".join(command), outputs.get(command[0]))

    return detect(run=run, read_text=files.get, system=recorded["system"], nvml=lambda: None)


@pytest.mark.parametrize("path", MACHINES, ids=lambda path: path.stem)
def test_a_recorded_machine(path: Path) -> None:
    recorded = machine(path.stem)
    expected = recorded["expect"]
    found = detected(recorded)
    assert [host.name for host in found.hosts] == expected["hosts"]
    assert found.memory_bytes == expected["memory_bytes"]
    assert found.notes == tuple(expected["notes"])
    cpu = found.hosts[-1]
    assert cpu.kind == "cpu"
    assert cpu.bytes_per_s == pytest.approx(expected["cpu_bytes_per_s"])
    assert cpu.memory_bytes == found.memory_bytes
    assert cpu.architecture == expected.get("cpu_architecture", cpu.architecture)
    if "gpu_bytes_per_s" in expected:
        best = found.hosts[0]
        assert best.kind != "cpu"
        assert best.bytes_per_s == pytest.approx(expected["gpu_bytes_per_s"])
        assert best.memory_bytes == expected["gpu_memory_bytes"]
        assert best.n_devices == expected.get("n_devices", 1)


def graphics_card(
    index: int, vendor: str, device: str, revision: str, **more: str
) -> dict[str, str]:
    folder = f"/sys/class/drm/card{index}/device"
    facts = {"vendor": f"0x{vendor}", "device": f"0x{device}", "revision": f"0x{revision}", **more}
    return {f"{folder}/{name}": f"{text}\n" for name, text in facts.items()}


def linux(
    files: dict[str, str] | None = None,
    run: dict[str, str] | None = None,
    cpu: str = "AMD Ryzen 9 5950X 16-Core Processor",
    **cpu_facts: Any,
) -> Detection:
    """Detect on a Linux machine with one thread of a known processor and nothing else."""
    block = "".join(f"{key.replace('_', ' ')}\t: {value}\n" for key, value in cpu_facts.items())
    recorded = {
        "system": "Linux",
        "cpuinfo": {"threads": 1, "smt": 1, "block": f"model name\t: {cpu}\n{block}"},
        "files": {"/proc/meminfo": "MemTotal: 1000000 kB\n", **(files or {})},
        "run": run or {},
    }
    return detected(recorded)


def test_nothing_readable_gives_nothing_and_raises_nothing() -> None:
    for system in ("Linux", "Darwin", "Windows", "FreeBSD"):
        found = detect(lambda _: None, lambda _: None, system, nvml=lambda: None)
        assert found.hosts == ()
        assert found.memory_bytes is None


def test_equal_cards_are_one_host_with_a_number_of_devices() -> None:
    vram = str(24 * 2**30)
    cards = {
        **graphics_card(0, "1002", "744c", "c8", mem_info_vram_total=vram),
        **graphics_card(1, "1002", "744c", "c8", mem_info_vram_total=vram),
    }
    best = linux(cards).hosts[0]
    assert (best.name, best.n_devices) == ("AMD Radeon RX 7900 XTX", 2)


def test_different_cards_are_sorted_by_bandwidth() -> None:
    found = linux(
        run={"nvidia-smi": "Tesla P40, 24576, N/A\nNVIDIA GeForce RTX 3090, 24576, N/A\n"}
    )
    names = [host.name for host in found.hosts]
    assert names == ["NVIDIA GeForce RTX 3090", "NVIDIA Tesla P40", "AMD Ryzen 9 5950X"]


@pytest.mark.parametrize(
    ("line", "name", "gib"),
    [
        ("NVIDIA GeForce RTX 3080, 10240, 9501", "NVIDIA GeForce RTX 3080", 10),
        ("NVIDIA GeForce RTX 3080, 12288, 9501", "NVIDIA GeForce RTX 3080 12GB", 12),
        ("NVIDIA GeForce RTX 3060 Ti, 8192, 7001", "NVIDIA GeForce RTX 3060 Ti", 8),
        ("NVIDIA GeForce RTX 3060 Ti, 8192, 9501", "NVIDIA GeForce RTX 3060 Ti GDDR6X", 8),
        ("NVIDIA GeForce RTX 4090, 49140, 10501", "NVIDIA GeForce RTX 4090 48GB (modified)", 48),
        ("NVIDIA A100-SXM4-80GB, 81920, 1593", "NVIDIA A100 SXM4 80GB", 80),
        ("NVIDIA A100 80GB PCIe, 81920, 1512", "NVIDIA A100 PCIe 80GB", 80),
        ("NVIDIA H100 80GB HBM3, 81559, 2619", "NVIDIA H100 SXM5 80GB", 80),
        ("NVIDIA H200, 143771, 3201", "NVIDIA H200 SXM 141GB", 140),
        ("Tesla T4, 15360, 5001", "NVIDIA Tesla T4", 15),
        ("NVIDIA L40S, 46068, 9001", "NVIDIA L40S", 45),
        ("NVIDIA A10, 23028, 6251", "NVIDIA A10", 22),
        (
            "NVIDIA RTX PRO 6000 Blackwell Workstation Edition, 97887, 14001",
            "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
            96,
        ),
    ],
)
def test_a_driver_name_with_its_memory_and_clock(line: str, name: str, gib: int) -> None:
    found = linux(run={"nvidia-smi": line + "\n"})
    assert found.hosts[0].name == name
    assert found.hosts[0].memory_bytes == pytest.approx(gib * 2**30, rel=0.03)
    assert not any("could be" in note or "sold with" in note for note in found.notes)


def test_a_card_with_more_memory_than_it_was_sold_with_is_doubted() -> None:
    found = linux(run={"nvidia-smi": "NVIDIA GeForce RTX 3070, 16384, 7001\n"})
    assert found.hosts[0].memory_bytes == 16 * 2**30
    assert any(
        "NVIDIA GeForce RTX 3070 reports 16 GiB where it was sold with 8 GiB" in note
        for note in found.notes
    )


def test_an_unknown_card_says_what_to_give() -> None:
    found = linux(run={"nvidia-smi": "NVIDIA RTX 9999, 65536, [N/A]\n"})
    assert [host.kind for host in found.hosts] == ["cpu"]
    assert any(
        "NVIDIA RTX 9999 (64 GiB) is not in the registry" in note and "--bandwidth" in note
        for note in found.notes
    )


def test_an_unknown_card_has_the_bandwidth_that_the_driver_tells() -> None:
    card = Card("NVIDIA RTX 9999", 64 * 2**30, memory_clock_hz=14.001e9, bus_bits=512)
    found = detect(lambda _: None, lambda _: None, "Linux", nvml=lambda: (card, card))
    host = found.hosts[0]
    assert (host.name, host.n_devices, host.memory_bytes) == (card.name, 2, 64 * 2**30)
    assert host.bytes_per_s == pytest.approx(512 / 8 * 28.002e9)


def test_a_failing_nvidia_smi_is_told_from_no_card() -> None:
    lspci = (
        "01:00.0 VGA compatible controller [0300]: NVIDIA Corporation "
        "GA102 [GeForce RTX 3090] [10de:2204] (rev a1)\n"
    )
    found = linux(run={"lspci": lspci})
    assert found.hosts[0].name == "NVIDIA GeForce RTX 3090"
    assert any("driver is missing or not loaded" in note for note in found.notes)


def test_names_newer_than_the_packaged_list_come_from_the_driver() -> None:
    card = graphics_card(0, "1002", "9abc", "c1", mem_info_vram_total=str(32 * 2**30))
    ids = {
        "/usr/share/libdrm/amdgpu.ids": "9ABC,\tC0,\tAMD Other\n"
        "9ABC,\tC1,\tAMD Radeon AI PRO R9700\n"
    }
    assert linux({**card, **ids}).hosts[0].name == "AMD Radeon AI PRO R9700"
    rocm = """
*******
Agent 1
*******
  Marketing Name:          AMD Ryzen 9 5950X 16-Core Processor
  Chip ID:                 0(0x0)
*******
Agent 2
*******
  Name:                    gfx1201
  Marketing Name:          AMD Radeon RX 9070 XT
  Chip ID:                 39612(0x9abc)
"""
    assert linux(card, {"rocminfo": rocm}).hosts[0].name == "AMD Radeon RX 9070 XT"


def test_apus_with_the_same_graphics_are_told_apart_by_their_processor() -> None:
    card = graphics_card(0, "1002", "1586", "c2")
    found = linux(card, cpu="AMD RYZEN AI MAX 390 w/ Radeon 8050S")
    assert found.hosts[0].name == "AMD Ryzen AI Max 390 (Radeon 8050S)"
    unnamed = linux(card, cpu="AMD Eng Sample")
    assert any("could be AMD Ryzen AI Max 390" in note for note in unnamed.notes)


def test_an_apu_has_the_bandwidth_of_its_modules() -> None:
    """A 780M is listed with LPDDR5X-7500; with two DDR5-5600 modules it has 89.6 GB/s."""
    modules = "".join(
        f"E:MEMORY_DEVICE_{i}_SIZE=17179869184\nE:MEMORY_DEVICE_{i}_TYPE=DDR5\n"
        f"E:MEMORY_DEVICE_{i}_DATA_WIDTH=64\nE:MEMORY_DEVICE_{i}_CONFIGURED_SPEED_MTS=5600\n"
        f"E:MEMORY_DEVICE_{i}_BANK_LOCATOR=P0 CHANNEL {channel}\n"
        for i, channel in enumerate("AB")
    )
    files = {**graphics_card(0, "1002", "15bf", "c4"), "/run/udev/data/+dmi:id": modules}
    found = linux(files, cpu="AMD Ryzen 7 7840HS w/ Radeon 780M Graphics")
    assert [host.bytes_per_s for host in found.hosts] == [89.6e9, 89.6e9]
    assert found.hosts[0].memory_type == "DDR5"


def test_a_virtual_machine_has_its_share_of_a_known_chip() -> None:
    """Eight of 24 cores: bandwidth by the rule a thread, compute by the share of cores."""
    recorded = machine("epyc_vm")
    block = recorded["cpuinfo"]["block"].replace("AMD EPYC", "AMD EPYC 7352 24-Core Processor")
    recorded["cpuinfo"] = {"threads": 4, "smt": 1, "block": block}
    host = detected(recorded).hosts[0]
    assert host.name == "AMD EPYC 7352"
    assert (host.n_cores, host.confidence) == (4, "low")
    assert host.fp32_flops_per_s == pytest.approx(2.46e12 * 4 / 24)
    assert host.bytes_per_s == 4 * 35e9


def test_a_virtual_machine_never_passes_the_chip() -> None:
    recorded = machine("epyc_vm")
    recorded["cpuinfo"]["threads"] = 64
    assert detected(recorded).hosts[0].bytes_per_s == 12 * 8 * 4800e6


def test_a_virtual_machine_without_the_flag_is_known_by_its_maker() -> None:
    found = linux({"/sys/class/dmi/id/sys_vendor": "Amazon EC2\n"}, cpu="Neoverse-V1")
    assert found.hosts[0].bytes_per_s == 25e9
    assert any("a virtual machine" in note for note in found.notes)


def test_a_windows_processor_that_is_not_listed_has_its_core_design() -> None:
    recorded = machine("laptop_4070_windows")
    answer = recorded["run"]["powershell"]
    recorded["run"]["powershell"] = answer.replace("i7-13620H", "i7-13705H")
    cpu = detected(recorded).hosts[-1]
    assert (cpu.name, cpu.architecture) == ("Intel Core i7-13705H", "Raptor Lake")
    assert (cpu.vendor, cpu.n_cores, cpu.memory_type) == ("Intel", 10, "DDR5")
    assert cpu.fp32_flops_per_s == 10 * 2.4e9 * 32


def test_two_sockets_are_one_host_and_said_so() -> None:
    text = "".join(
        f"processor\t: {i}\nmodel name\t: Intel(R) Xeon(R) Silver 4110 CPU @ 2.10GHz\n"
        f"physical id\t: {i // 8}\ncore id\t\t: {i % 8}\n\n"
        for i in range(16)
    )
    found = detect(lambda _: None, {"/proc/cpuinfo": text}.get, "Linux", nvml=lambda: None)
    assert (found.hosts[0].name, found.hosts[0].n_cores) == ("Intel Xeon Silver 4110", 8)
    assert "2 sockets: the figures are those of one" in found.notes


def test_every_packaged_pci_name_is_a_chip_of_the_registry() -> None:
    path = Path(__file__).parent.parent / "hosts" / "data" / "pci.csv"
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            found = [h.name for h in candidates(row["name"]) if h.kind in ("discrete_gpu", "apu")]
            assert found, row["name"]
            assert re.fullmatch("[0-9a-f]{4}", row["device"])


TEXTS = st.one_of(
    st.text(max_size=60),
    st.sampled_from(
        [
            "[]",
            "{}",
            '{"cpu": 3, "gpu": [3, {"Name": null}], "memory": {"Capacity": "x"}}',
            '{"cpu": [{"NumberOfCores": "²", "NumberOfLogicalProcessors": 2}], "system": 1}',
            '{"SPDisplaysDataType": [1, {}], "SPMemoryDataType": [{"_items": 3}]}',
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
            "0x NVIDIA, nan, inf\n99x 4090, 1, 2\n",
            "processor\t: 0\nmodel name\t: 0 x86\nphysical id\t: ²\n",
            "0x1002",
            "0x8086",
            "²",
        ]
    ),
)


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from(["Linux", "Darwin", "Windows"]))
def test_no_answer_of_a_machine_makes_detection_fail(data: st.DataObject, system: str) -> None:
    answers = st.one_of(st.none(), TEXTS)
    found = detect(
        run=lambda _: data.draw(answers),
        read_text=lambda _: data.draw(answers),
        system=system,
        nvml=lambda: None,
    )
    assert all(host.bytes_per_s > 0 for host in found.hosts)
