"""Energy rows: what is read, what is kept apart and why."""

import io

import pytest

from tokcast.measurements.energy_cleaning import ENERGY_RULES, check_energy, watts_of
from tokcast.measurements.energy_rows import (
    ENERGY_COLUMNS,
    EnergyRow,
    of_measurement,
    packaged_energy,
    parse_energy_row,
    read_energy_rows,
)
from tokcast.measurements.schema import BadRow, packaged
from tokcast.predictor.errors import InputError

GOOD = {
    "source": "here",
    "chip": "NVIDIA GeForce RTX 4090",
    "n_devices": "1",
    "runtime": "llama.cpp",
    "backend": "CUDA",
    "model": "Llama-3.1-8B",
    "model_id": "llama-3.1-8b",
    "quant": "Q4_K_M",
    "phase": "decode",
    "n_gen": "128",
    "batch": "1",
    "tok_s": "100",
    "power_w": "300",
    "power_kind": "gpu_board",
}


def row(**changed: str) -> EnergyRow:
    return parse_energy_row({**GOOD, **changed})


def rule(**changed: str) -> str | None:
    found = check_energy(row(**changed))
    return None if found is None else found.name


def test_a_good_row_is_kept() -> None:
    assert rule() is None
    assert watts_of(row()) == 300.0


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"power_kind": "smart plug"}, "unknown-kind"),
        ({"power_kind": ""}, "unknown-kind"),
        ({"power_kind": "wall"}, "wall-peak"),
        ({"power_w": "0"}, "not-positive"),
        ({"power_w": "-12"}, "not-positive"),
        ({"tok_s": "0"}, "not-positive"),
        ({"energy_per_token_j": "-1"}, "not-positive"),
        ({"idle_w": "300"}, "idle-above-load"),
        ({"idle_w": "420"}, "idle-above-load"),
        ({"power_w": ""}, "no-power"),
        ({"energy_per_token_j": "30"}, "disagrees"),
        ({"power_limit_w": "200"}, "above-limit"),
        ({"n_devices": "2"}, "several-devices"),
        ({"batch": "8"}, "batched"),
        ({"batch": ""}, "no-batch"),
        ({"notes": "multi-token-prediction draft, n-max 2"}, "speculation"),
        ({"notes": "suspect: twice the same chip"}, "suspect"),
        ({"duration_s": "4"}, "mostly-loading"),
        ({"phase": "request"}, "no-length"),
        ({"tok_s": "", "phase": "prefill"}, "no-speed"),
    ],
)
def test_a_bad_row_is_named(changed: dict[str, str], name: str) -> None:
    assert rule(**changed) == name


def test_joules_a_token_may_stand_for_watts() -> None:
    assert watts_of(row(power_w="", energy_per_token_j="2.5")) == 250.0
    assert watts_of(row(phase="request", energy_j="90", duration_s="0.5")) == 180.0


def test_what_cannot_be_read_is_told_with_its_line() -> None:
    head = ",".join(GOOD)
    lines = [",".join(GOOD.values()), ",".join({**GOOD, "power_w": "nan"}.values())]
    lines.append(",".join({**GOOD, "phase": "sleeping"}.values()))
    good, *bad = read_energy_rows(io.StringIO("\n".join([head, *lines]) + "\n"), "x.csv")
    assert isinstance(good, EnergyRow)
    assert bad == [
        BadRow(3, "power_w is 'nan', expected a finite number"),
        BadRow(4, "phase is 'sleeping', expected one of decode, prefill, request, training"),
    ]


def test_a_table_without_a_meter_is_refused() -> None:
    with pytest.raises(InputError, match=r"x\.csv: header lacks power_kind; expected the energy"):
        list(read_energy_rows(io.StringIO("chip,phase\n"), "x.csv"))


def test_kinds_of_meters_are_never_one() -> None:
    kinds = {r.kind for r in packaged_energy()}
    assert kinds == {"gpu_board", "soc", "wall"}
    own = {of_measurement(m).kind for m in packaged() if m.power_w is not None}
    assert own == {"package", "wall", None}


def test_the_packaged_rows_are_whole() -> None:
    rows = packaged_energy()
    assert len(rows) == 2684
    assert sum(r.phase == "training" for r in rows) == 279
    assert len({rule.name for rule in ENERGY_RULES}) == len(ENERGY_RULES)
    assert set(GOOD) <= set(ENERGY_COLUMNS)
