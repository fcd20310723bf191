"""The packaged chips: units, provenance, and figures that check themselves."""

import re

import pytest

from tokcast.hosts import registry
from tokcast.hosts.registry import chip, chips, facts
from tokcast.predictor.errors import InputError


def test_a_card_in_si_units() -> None:
    host = chip("NVIDIA GeForce RTX 4090")
    assert host.bytes_per_s == 1008e9
    assert host.memory_bytes == 24 * 2**30
    assert host.memory_options_bytes == (24 * 2**30,)
    assert host.matrix_fp16_flops_per_s == pytest.approx(330.3e12)
    assert host.matrix_fp32acc_flops_per_s == pytest.approx(165.2e12)
    assert host.int8_ops_per_s == pytest.approx(660.6e12)
    assert host.cache_bytes == 72 * 2**20
    assert (host.n_cores, host.clock_hz, host.tdp_w) == (128, 2.52e9, 450)
    assert (host.kind, host.n_devices, host.is_unified) == ("discrete_gpu", 1, False)


def test_several_memory_sizes_leave_the_size_open() -> None:
    host = chip("Apple M4 Max 40-core GPU")
    assert host.memory_bytes is None
    assert host.memory_options_bytes == tuple(gib * 2**30 for gib in (48, 64, 128))


@pytest.mark.parametrize(
    ("text", "cores"),
    [
        ("128 SM / 16384 CUDA cores", 128),
        ("24 cores / 48 threads", 24),
        ("12P+4E cores", 16),
        ("32 or 40 GPU cores", 40),
        ("40 GPU cores / 5120 ALU", 40),
        ("", None),
    ],
)
def test_cores_are_counted_from_their_description(text: str, cores: int | None) -> None:
    assert registry.n_cores(text) == cores


def test_a_configurable_power_keeps_its_range_in_a_note() -> None:
    host = chip("AMD Ryzen AI Max+ 395 (Radeon 8060S)")
    assert host.tdp_w == 120
    assert "power is configurable: 55 (45-120) W" in host.notes


def test_every_chip_is_there_once_with_a_source_for_each_number() -> None:
    hosts = chips()
    assert len(hosts) == len({host.name for host in hosts}) == 1010
    for host in hosts:
        assert host.bytes_per_s > 0
        assert set(host.source) >= {"bytes_per_s"}
        assert all(host.source.values())
        for field in ("matrix_fp16_flops_per_s", "fp32_flops_per_s", "cache_bytes", "clock_hz"):
            assert (getattr(host, field) is not None) == (field in host.source)


def test_bandwidth_is_bus_times_data_rate() -> None:
    # Front-side-bus chips are bound by the bus, not by the memory behind it.
    exempt = {"Intel Core 2 Duo L9400", "Intel Core 2 Quad Q8400"}
    for name in registry.names():
        row = facts(name)
        if row["bus_width_bits"] and row["data_rate_gbps"] and name not in exempt:
            gb_per_s = float(row["bus_width_bits"]) * float(row["data_rate_gbps"]) / 8
            assert float(row["memory_bandwidth_gb_s"]) == pytest.approx(gb_per_s, rel=0.03), name


def test_every_fact_is_kept_as_text() -> None:
    row = facts("NVIDIA GeForce RTX 4090")
    assert row["bus_width_bits"] == "384"
    assert row["compute_capability_or_gfx"] == "8.9"
    assert re.match(r"PCIe 4\.0 x16", row["pcie_gen_lanes_gb_s"])


def test_only_canonical_names_are_chips() -> None:
    with pytest.raises(InputError, match="'rtx 4090' is not in the registry"):
        chip("rtx 4090")


def test_looking_a_chip_up_twice_gives_the_same_value() -> None:
    assert chip("NVIDIA A10") is chip("NVIDIA A10")
