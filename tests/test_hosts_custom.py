"""Hosts from a file, from numbers, and known ones corrected."""

import re
from pathlib import Path

import pytest

from tokcast.hosts.custom import from_numbers, from_toml, override, peak_flops_per_s
from tokcast.hosts.match import find
from tokcast.predictor.errors import InputError

EXAMPLE = """
chip = "Vendor Chip, 38-core GPU"
vendor = "Vendor"
kind = "apu"
memory_bytes = 64e9
bytes_per_s = 400e9
flops_per_s = 13e12
n_cores = 38
notes = ["made up"]

[source]
memory_bytes = "vendor's specification page"
bytes_per_s = "vendor's specification page"
flops_per_s = "cores x lanes x clock"
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "host.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_becomes_a_host(tmp_path: Path) -> None:
    host = from_toml(written(tmp_path, EXAMPLE))
    assert (host.name, host.kind, host.n_cores) == ("Vendor Chip, 38-core GPU", "apu", 38)
    assert (host.bytes_per_s, host.memory_bytes) == (400e9, 64e9)
    assert peak_flops_per_s(host) == host.fp32_flops_per_s == 13e12
    assert host.source["flops_per_s"] == "cores x lanes x clock"
    assert host.notes == ("made up",)
    assert host.confidence == "low"


def test_the_example_of_the_documentation_is_a_host(tmp_path: Path) -> None:
    page = (Path(__file__).parent.parent / "docs" / "hosts.md").read_text(encoding="utf-8")
    example = page.split("```toml\n")[1].split("```")[0]
    assert from_toml(written(tmp_path, example)).notes == ()


def test_a_number_without_a_source_is_noted(tmp_path: Path) -> None:
    host = from_toml(written(tmp_path, 'chip = "X"\nbytes_per_s = 100e9\n'))
    assert len(host.notes) == 1
    assert host.notes[0].endswith("host.toml gives no source for bytes_per_s")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("bytes_per_s = 1e9", "chip is missing, expected at least chip and bytes_per_s"),
        ('chip = "X"', "bytes_per_s is missing"),
        ('chip = "X"\nbytes_per_s = "400"', "bytes_per_s = '400', expected a number in SI"),
        ('chip = "X"\nbytes_per_s = true', "bytes_per_s = True, expected a number"),
        ('chip = "X"\nbytes_per_s = -1', "expected a positive, finite number"),
        ('chip = "X"\nbytes_per_s = inf', "expected a positive, finite number"),
        ('chip = "X"\nbytes_per_s = nan', "expected a positive, finite number"),
        ('chip = "X"\nbytes_per_s = 400', "bytes_per_s = 400, expected SI units, perhaps 4e+11"),
        ('chip = "X"\nbytes_per_s = 4e11\nmemory_bytes = 24', "memory_bytes = 24, expected SI"),
        ('chip = "X"\nbytes_per_s = 4e11\nflops_per_s = 30', "SI units, perhaps 3e+13"),
        ('chip = "X"\nbytes_per_s = 1e9\nn_cores = 1.5', "n_cores = 1.5, expected a whole"),
        ('chip = "X"\nbytes_per_s = 1e9\nbandwith = 1', "unknown key 'bandwith', expected one of"),
        ('chip = "X"\nbytes_per_s = 1e9\nkind = "gpu"', "kind = 'gpu', expected one of discrete"),
        ('chip = ""\nbytes_per_s = 1e9', "chip = '', expected text"),
        ('chip = "X"\nbytes_per_s = 1e9\nnotes = "n"', "notes = 'n', expected a list"),
        ('chip = "X"\nbytes_per_s = 1e9\nsource = "s"', "source = 's', expected a table"),
        ('chip = "X"\nbytes_per_s = 1e9\n[source]\nx = "s"', "source.x = 's', expected a text"),
        ("chip = ", "not a TOML host file"),
    ],
)
def test_a_bad_file_is_one_line_with_the_key(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(InputError, match=re.escape(expected)) as error:
        from_toml(written(tmp_path, text))
    assert "host.toml" in str(error.value)
    assert "\n" not in str(error.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml: No such file"):
        from_toml(tmp_path / "none.toml")
    with pytest.raises(InputError, match="expected a TOML host file"):
        from_toml(tmp_path)
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not a TOML host file"):
        from_toml(tmp_path / "binary.toml")


def test_a_host_of_three_numbers() -> None:
    host = from_numbers(400e9, 30e12, 64 * 2**30)
    assert (host.bytes_per_s, host.memory_bytes) == (400e9, 64 * 2**30)
    assert (host.fp16_flops_per_s, host.fp32_flops_per_s) == (30e12, 30e12)
    assert host.notes == ()


def test_bandwidth_alone_is_enough_and_says_what_is_missing() -> None:
    host = from_numbers(400e9)
    assert host.memory_bytes is None
    assert host.notes == ("no compute rate given: prefill is taken as memory-bound",)


def test_a_known_chip_corrected() -> None:
    card = find("4090")
    limited = override(card, bytes_per_s=900e9, flops_per_s=165.15e12, memory_bytes=20e9)
    assert (limited.bytes_per_s, limited.memory_bytes) == (900e9, 20e9)
    assert peak_flops_per_s(limited) == pytest.approx(165.15e12)
    assert limited.int8_ops_per_s == pytest.approx(660.6e12 / 2, rel=1e-3)
    assert limited.fp32_flops_per_s == pytest.approx(card.fp32_flops_per_s / 2, rel=1e-3)
    assert limited.source["bytes_per_s"] == "given by the user"
    assert limited.source["clock_hz"] == card.source["clock_hz"]


def test_a_cpu_is_scaled_by_its_vector_rate() -> None:
    cpu = override(find("i7-12700H"), flops_per_s=1e12)
    assert peak_flops_per_s(cpu) == pytest.approx(1e12)


def test_no_correction_leaves_the_host_alone() -> None:
    card = find("4090")
    assert override(card) is card


def test_a_chip_without_a_known_rate_gets_the_one_given() -> None:
    assert peak_flops_per_s(override(from_numbers(1e9), flops_per_s=2e12)) == 2e12
