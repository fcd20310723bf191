"""A typed name finds the chip it means, or an error that says what it could mean."""

import csv
import gzip
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcast.hosts import registry
from tokcast.hosts.match import candidates, find, nearest
from tokcast.predictor.errors import InputError

ROOT = Path(__file__).parent.parent

SPELLINGS = {
    "MacBook Air M3 10-core 16GB": "Apple M3 10-core GPU",
    "MacBook Pro M4 Max 64GB": "Apple M4 Max 40-core GPU",
    "MacBook Pro 14-inch M4 Pro 20-core 24 Go (2024)": "Apple M4 Pro 20-core GPU",
    "M4 Pro 16-core Mac mini": "Apple M4 Pro 16-core GPU",
    'MacBook Pro 16" M3 Max 40 core': "Apple M3 Max 40-core GPU",
    "Mac Studio M3 Ultra 512GB": "Apple M3 Ultra 80-core GPU",
    "macbook neo": "Apple A18 Pro 5-core GPU",
    "i7-12700K": "Intel Core i7-12700K",
    "12900k": "Intel Core i9-12900K",
    "ryzen 5 5600": "AMD Ryzen 5 5600",
    "Ryzen 7 9800X3D": "AMD Ryzen 7 9800X3D",
    "epyc 9654": "AMD EPYC 9654",
    "Xeon Platinum 8480+": "Intel Xeon Platinum 8480+",
    "Xeon E5-2680 v2": "Intel Xeon E5-2680 v2",
    "AMD Ryzen Threadripper PRO 7985WX 64-Cores": "AMD Ryzen Threadripper PRO 7985WX",
    "M4 Max 40-cores": "Apple M4 Max 40-core GPU",
    "Threadripper 7970X": "AMD Ryzen Threadripper 7970X",
    "Ryzen AI 9 365": "AMD Ryzen AI 9 365 (Radeon 880M)",
    "Radeon 890M": "AMD Ryzen AI 9 HX 370 (Radeon 890M)",
    "Snapdragon X2 Elite Extreme": (
        "Qualcomm Snapdragon X2 Elite Extreme X2E-96-100 (Adreno X2-90)"
    ),
    "Snapdragon 8 Elite": "Qualcomm Snapdragon 8 Elite",
    "Snapdragon 8 Elite Gen 5": "Qualcomm Snapdragon 8 Elite Gen 5",
    "Orange Pi 5": "Rockchip RK3588",
    "2080 Ti 22GB": "NVIDIA GeForce RTX 2080 Ti 22GB (modified)",
    "MI350X": "AMD Instinct MI350X",
    "GB200": "NVIDIA GB200 186GB",
    "NVIDIA GH200 144G HBM3e": "NVIDIA GH200 144GB",
    "rtx4090": "NVIDIA GeForce RTX 4090",
    "RTX 4090": "NVIDIA GeForce RTX 4090",
    "4090": "NVIDIA GeForce RTX 4090",
    "rtx-4090": "NVIDIA GeForce RTX 4090",
    "GeForce RTX 4090": "NVIDIA GeForce RTX 4090",
    "nvidia geforce rtx 4090": "NVIDIA GeForce RTX 4090",
    "RTX 4090 24GB": "NVIDIA GeForce RTX 4090",
    "RTX 4090 24GB GDDR6X": "NVIDIA GeForce RTX 4090",
    "4090 D": "NVIDIA GeForce RTX 4090 D",
    "rtx4090d": "NVIDIA GeForce RTX 4090 D",
    "4090 48GB": "NVIDIA GeForce RTX 4090 48GB (modified)",
    "laptop 4090": "NVIDIA GeForce RTX 4090 Laptop GPU",
    "4070 laptop": "NVIDIA GeForce RTX 4070 Laptop GPU",
    "rtx 4070 mobile": "NVIDIA GeForce RTX 4070 Laptop GPU",
    "4070": "NVIDIA GeForce RTX 4070",
    "4070 GDDR6": "NVIDIA GeForce RTX 4070 GDDR6",
    "4070 super": "NVIDIA GeForce RTX 4070 SUPER",
    "4070 ti super": "NVIDIA GeForce RTX 4070 Ti SUPER",
    "4060": "NVIDIA GeForce RTX 4060",
    "4060 Ti 16GB": "NVIDIA GeForce RTX 4060 Ti 16GB",
    "4060ti 8g": "NVIDIA GeForce RTX 4060 Ti 8GB",
    "3080 10GB": "NVIDIA GeForce RTX 3080",
    "rtx 3080 12 GB": "NVIDIA GeForce RTX 3080 12GB",
    "3080ti": "NVIDIA GeForce RTX 3080 Ti",
    "3060 12GB": "NVIDIA GeForce RTX 3060 12GB",
    "3060 Ti": "NVIDIA GeForce RTX 3060 Ti",
    "5090": "NVIDIA GeForce RTX 5090",
    "5080 notebook": "NVIDIA GeForce RTX 5080 Laptop GPU",
    "1660 super": "NVIDIA GeForce GTX 1660 SUPER",
    "GeForce GTX 1070 with Max-Q Design": "NVIDIA GeForce GTX 1070 Max-Q",
    "gtx1080ti": "NVIDIA GeForce GTX 1080 Ti",
    "titan rtx": "NVIDIA TITAN RTX",
    "titan v": "NVIDIA TITAN V",
    "NVIDIA TITAN X (Pascal)": "NVIDIA TITAN X Pascal",
    "A6000": "NVIDIA RTX A6000",
    "rtx 6000 ada": "NVIDIA RTX 6000 Ada Generation",
    "quadro rtx 6000": "NVIDIA Quadro RTX 6000",
    "rtx pro 6000 max-q": "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
    "rtx 4000 sff ada": "NVIDIA RTX 4000 SFF Ada Generation",
    "A2000 8GB laptop": "NVIDIA RTX A2000 8GB Laptop GPU",
    "h100 pcie": "NVIDIA H100 PCIe 80GB",
    "H100 SXM": "NVIDIA H100 SXM5 80GB",
    "NVIDIA H100 80GB HBM3": "NVIDIA H100 SXM5 80GB",
    "H100 NVL": "NVIDIA H100 NVL 94GB",
    "NVIDIA A100-SXM4-80GB": "NVIDIA A100 SXM4 80GB",
    "NVIDIA A100 80GB PCIe": "NVIDIA A100 PCIe 80GB",
    "Tesla V100-SXM2-16GB": "NVIDIA Tesla V100 SXM2 16GB",
    "Tesla P40": "NVIDIA Tesla P40",
    "t4": "NVIDIA Tesla T4",
    "L4": "NVIDIA L4",
    "L40S": "NVIDIA L40S",
    "a10g": "NVIDIA A10G",
    "GB10": "NVIDIA GB10",
    "DGX Spark": "NVIDIA GB10",
    "Jetson AGX Orin 64GB": "NVIDIA Jetson AGX Orin 64GB",
    "orin nano super": "NVIDIA Jetson Orin Nano Super 8GB",
    "Jetson Thor": "NVIDIA Jetson AGX Thor T5000",
    "7900XTX": "AMD Radeon RX 7900 XTX",
    "7900 xt": "AMD Radeon RX 7900 XT",
    "rx 6800": "AMD Radeon RX 6800",
    "9060 xt 16gb": "AMD Radeon RX 9060 XT 16GB",
    "R9700": "AMD Radeon AI PRO R9700",
    "Radeon VII": "AMD Radeon VII",
    "Radeon Pro VII": "AMD Radeon Pro VII",
    "vega64": "AMD Radeon RX Vega 64",
    "MI300X": "AMD Instinct MI300X",
    "mi50 32gb": "AMD Instinct MI50",
    "Ryzen AI Max+ 395": "AMD Ryzen AI Max+ 395 (Radeon 8060S)",
    "AMD RYZEN AI MAX+ 395 w/ Radeon 8060S": "AMD Ryzen AI Max+ 395 (Radeon 8060S)",
    "AI Max 395 128GB": "AMD Ryzen AI Max+ 395 (Radeon 8060S)",
    "8060S": "AMD Ryzen AI Max+ 395 (Radeon 8060S)",
    "AMD Radeon(TM) 8060S Graphics": "AMD Ryzen AI Max+ 395 (Radeon 8060S)",
    "ryzen ai max+ 395 cpu": "AMD Ryzen AI Max+ 395 CPU",
    "Radeon 780M": "AMD Radeon 780M (Phoenix/Hawk Point iGPU)",
    "890m": "AMD Ryzen AI 9 HX 370 (Radeon 890M)",
    "Steam Deck OLED": "AMD Custom APU 0932 (Steam Deck OLED)",
    "7950x": "AMD Ryzen 9 7950X",
    "AMD Ryzen 9 7950X 16-Core Processor": "AMD Ryzen 9 7950X",
    "AMD Ryzen 7 7840U w/ Radeon 780M Graphics": "AMD Ryzen 7 7840U",
    "AMD FX(tm)-8320 Eight-Core Processor": "AMD FX-8320",
    "threadripper pro 5975wx": "AMD Ryzen Threadripper PRO 5975WX",
    "Arc A770 16GB": "Intel Arc A770 16GB",
    "b580": "Intel Arc B580",
    "Arc Pro B60": "Intel Arc Pro B60",
    "i7-12700H": "Intel Core i7-12700H",
    "12th Gen Intel(R) Core(TM) i7-12700H": "Intel Core i7-12700H",
    "i7 12700": "Intel Core i7-12700",
    "Intel(R) Core(TM) Ultra 7 155H": "Intel Core Ultra 7 155H",
    "Intel(R) Xeon(R) CPU E5-2667 v4 @ 3.20GHz": "Intel Xeon E5-2667 v4",
    "Xeon Platinum 8280": "Intel Xeon Platinum 8280",
    "n100": "Intel N100",
    "M4 Max 40-core": "Apple M4 Max 40-core GPU",
    "m4 max 40": "Apple M4 Max 40-core GPU",
    "Apple M4 Max 16-core CPU 40-core GPU": "Apple M4 Max 40-core GPU",
    "M4 Max 36GB": "Apple M4 Max 32-core GPU",
    "m3 ultra 512GB": "Apple M3 Ultra 80-core GPU",
    "M1 Ultra 64-core GPU": "Apple M1 Ultra 64-core GPU",
    "M2 10-core": "Apple M2 10-core GPU",
    "m2 max cpu": "Apple M2 Max CPU",
    "x1e-80-100": "Qualcomm Snapdragon X Elite X1E-80-100 (Adreno X1-85)",
    "pi 5": "Raspberry Pi 5",
    "Raspberry Pi 4 Model B": "Raspberry Pi 4 / Pi 400",
    "rk3588": "Rockchip RK3588",
}

AMBIGUOUS = {
    "MacBook Air M3 16GB": ("Apple M3 8-core GPU", "Apple M3 10-core GPU"),
    "NVIDIA GH200 480GB": ("NVIDIA GH200 96GB", "NVIDIA GH200 144GB"),
    "Framework Desktop": (
        "AMD Ryzen AI Max 385 (Radeon 8050S)",
        "AMD Ryzen AI Max+ 395 (Radeon 8060S)",
    ),
    "3080": ("NVIDIA GeForce RTX 3080 (10 GB)", "NVIDIA GeForce RTX 3080 12GB (12 GB)"),
    "4060 Ti": ("NVIDIA GeForce RTX 4060 Ti 16GB", "NVIDIA GeForce RTX 4060 Ti 8GB"),
    "A100 80GB": ("NVIDIA A100 PCIe 80GB", "NVIDIA A100 SXM4 80GB"),
    "h100": ("NVIDIA H100 NVL 94GB", "NVIDIA H100 PCIe 80GB", "NVIDIA H100 SXM5 80GB"),
    "m4 max": ("Apple M4 Max 32-core GPU", "Apple M4 Max 40-core GPU"),
    "M3": ("Apple M3 8-core GPU", "Apple M3 10-core GPU"),
    "Strix Halo": ("AMD Ryzen AI Max 385", "AMD Ryzen AI Max 390", "AMD Ryzen AI Max+ 395"),
    "Steam Deck": ("Steam Deck LCD", "Steam Deck OLED"),
    "rtx 6000": ("NVIDIA Quadro RTX 6000", "NVIDIA RTX 6000 Ada Generation", "RTX PRO 6000"),
    "a770": ("Intel Arc A770 16GB", "Intel Arc A770 8GB"),
    "snapdragon x elite": ("X1E-80-100", "X1E-84-100"),
}

UNKNOWN = [
    "AMD RTX 4090",
    "GTX 4090",
    "RTX 4090 Super",
    "4090 32GB",
    "M4 Ultra",
    "M4 10-core CPU 12-core GPU",
    "i7-12700KX",
    "rx 7900",
    "epyc 9653",
    "titan",
    "nvidia",
    "geforce rtx",
    "ryzen 9",
]


@pytest.mark.parametrize(("text", "name"), SPELLINGS.items())
def test_a_spelling_finds_its_chip(text: str, name: str) -> None:
    assert find(text).name == name


@pytest.mark.parametrize("name", registry.names())
def test_a_canonical_name_finds_itself_in_any_case(name: str) -> None:
    assert find(name).name == name
    assert find(f"  {name.upper()} ").name == name
    assert name in [host.name for host in candidates(name)]


def test_every_chip_of_the_measurements_is_known() -> None:
    path = ROOT / "measurements" / "data" / "measurements.csv.gz"
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        assert {row["chip"] for row in csv.DictReader(file)} <= set(registry.names())


@pytest.mark.parametrize(("text", "expected"), AMBIGUOUS.items())
def test_several_chips_are_listed_and_none_is_chosen(text: str, expected: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match=r"can mean \d chips") as error:
        find(text)
    for name in expected:
        assert name in str(error.value)
    assert len(candidates(text)) >= len(expected)


def test_rows_without_a_core_count_are_not_offered() -> None:
    with pytest.raises(InputError, match="can mean 2 chips") as error:
        find("m4 max")
    assert "unknown" not in str(error.value)


@pytest.mark.parametrize("text", UNKNOWN)
def test_no_near_miss_is_taken_for_a_match(text: str) -> None:
    with pytest.raises(InputError, match=r"is not a known chip; nearest: .+, .+, .+; or describe"):
        find(text)


@pytest.mark.parametrize(
    "text", ["", "  ", "gpu", "??", "MacBook Air", "Pixel 9", "Groq", "TPU v5e", "Switch 2"]
)
def test_a_text_without_a_name_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not a known chip; name one as in 'RTX 4090'"):
        find(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("rtx 4095", "NVIDIA GeForce RTX 4090"),
        ("ryzen 9 7950", "AMD Ryzen 9 7950X"),
        ("7900 xtxx", "AMD Radeon RX 7900 XTX"),
        ("i7-12700HK", "Intel Core i7-12700H"),
    ],
)
def test_a_typing_slip_is_near_the_right_name(text: str, name: str) -> None:
    assert name in nearest(text)


def test_nearest_returns_as_many_as_asked_and_nothing_for_nothing() -> None:
    assert len(nearest("rtx", n=5)) == 5
    assert nearest("  ") == []


@pytest.mark.parametrize(
    ("text", "n_devices"),
    [
        ("2x RTX 3090", 2),
        ("2 x 3090", 2),
        ("2*RTX 3090", 2),
        ("2×3090", 2),
        ("8xRTX 3090", 8),
        ("RTX 3090 x4", 4),
        ("RTX 3090 (x2)", 2),
        ("1x 3090", 1),
        ("3090", 1),
    ],
)
def test_a_number_of_devices(text: str, n_devices: int) -> None:
    host = find(text)
    assert (host.name, host.n_devices) == ("NVIDIA GeForce RTX 3090", n_devices)
    assert host.memory_bytes == 24 * 2**30


@pytest.mark.parametrize("text", ["0x RTX 3090", "65x RTX 3090", "999x 3090"])
def test_an_absurd_number_of_devices_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="devices, expected 1 to 64"):
        find(text)


def test_a_memory_size_sets_the_memory_where_the_chip_came_with_several() -> None:
    assert find("M4 Max 40-core").memory_bytes is None
    assert find("M4 Max 40-core 128GB").memory_bytes == 128 * 2**30
    assert find("i7-12700H 64GB").memory_bytes == 64 * 2**30


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("NVIDIA GeForce RTX 3080", "RTX 3080 12GB"),
        ("3060 Ti", "RTX 3060 Ti GDDR6X"),
        ("4070", "RTX 4070 GDDR6"),
    ],
)
def test_a_name_shared_with_a_variant_is_noted(text: str, other: str) -> None:
    assert any("also used for" in note and other in note for note in find(text).notes)


def test_an_unambiguous_name_carries_no_such_note() -> None:
    assert not any("also used for" in note for note in find("4090").notes)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=40))
def test_any_text_gives_a_chip_or_one_line(text: str) -> None:
    message = ""
    try:
        find(text)
    except InputError as error:
        message = str(error)
    assert "\n" not in message


def test_a_host_without_memory_is_refused() -> None:
    with pytest.raises(InputError, match="no memory, expected a size above 0"):
        find("Ryzen 7 5800X 0GB")
