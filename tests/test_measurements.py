"""Rows of the interchange schema: read, explained, cleaned, joined."""

import gzip
import io
from dataclasses import replace
from pathlib import Path

import pytest

from tokcast.fits.observations import (
    facts_of,
    observe,
    ram_bytes,
    size_ratio,
    typical_tok_per_s,
)
from tokcast.measurements.cleaning import RULES, check
from tokcast.measurements.localscore import machine_of
from tokcast.measurements.schema import (
    COLUMNS,
    REQUIRED,
    BadRow,
    Measurement,
    open_text,
    packaged,
    parse_row,
    read_rows,
)
from tokcast.measurements.workloads import LOCALSCORE, workloads
from tokcast.predictor.errors import InputError

ROW: dict[str, str | None] = {
    "source": "somebody/benchmarks@abc:table.md",
    "chip": "NVIDIA GeForce RTX 4090",
    "n_devices": "1",
    "runtime": "llama.cpp",
    "backend": "CUDA",
    "date": "2025-06-01",
    "model_id": "llama-3.1-8b",
    "file_type": "Q4_K_M",
    "phase": "decode",
    "n_gen": "128",
    "n_depth": "0",
    "tok_s": "130",
}


def row(**changes: str) -> Measurement:
    return parse_row({**ROW, **changes})


def text(*rows: dict[str, str]) -> io.StringIO:
    names = list(rows[0])
    lines = [",".join(names)] + [",".join(r[n] for n in names) for r in rows]
    return io.StringIO("\n".join(lines))


BASE = {k: v for k, v in ROW.items() if v is not None}


def test_every_packaged_row_is_read() -> None:
    rows = packaged()
    assert len(rows) == 16462
    assert all(m.source or "repo-unknown" in m.flags for m in rows)


def test_columns_may_come_in_any_order_with_extra_ones() -> None:
    shuffled = dict(reversed(BASE.items())) | {"note": "x"}
    assert list(read_rows(text(shuffled), "t.csv")) == [row()]


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("tok_s", "fast", "tok_s is 'fast', expected a number as 17.5"),
        ("n_depth", "4k", "n_depth is '4k', expected a number"),
        ("n_depth", "1e12", "expected a whole number below 2^31"),
        ("n_depth", "0.5", "expected a whole number below 2^31"),
        ("tok_s", "-3", "finite number >= 0"),
        ("tok_s", "0", "above 0"),
        ("tok_s", "nan", "finite number"),
        ("tok_s", "inf", "finite number"),
        ("phase", "both", "expected prefill or decode"),
        ("n_depth", "-1", "finite number >= 0"),
    ],
)
def test_a_bad_cell_is_explained_and_the_rest_is_read(column: str, value: str, reason: str) -> None:
    bad, good = read_rows(text({**BASE, column: value}, BASE), "t.csv")
    assert isinstance(bad, BadRow)
    assert reason in bad.reason
    assert good == row()


def test_a_decimal_comma_that_moves_the_cells_is_not_read() -> None:
    header, line = text(BASE).getvalue().splitlines()
    moved = io.StringIO(f"{header}\n{line},5\n{line}\n")
    bad, good = read_rows(moved, "t.csv")
    assert bad == BadRow(2, "1 cells more than the header has columns")
    assert good == row()


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("", r"t\.csv: empty; expected a CSV with the columns of docs/data\.md"),
        ("chip;backend\n", "not separated by commas"),
        ("chip\tbackend\n", "not separated by commas"),
        (",".join((*REQUIRED, "tok_s")), "header has tok_s twice"),
        (f"{','.join(REQUIRED)}\n{'x' * 200_000}\n", r"t\.csv:\d: field larger than field limit"),
    ],
)
def test_what_is_no_such_csv_is_one_line(content: str, match: str) -> None:
    with pytest.raises(InputError, match=match):
        list(read_rows(io.StringIO(content), "t.csv"))


def test_a_missing_column_is_named() -> None:
    short = {k: v for k, v in BASE.items() if k != "tok_s"}
    with pytest.raises(InputError, match="lacks tok_s"):
        list(read_rows(text(short), "t.csv"))


def test_latin_1_and_gzip_are_read(tmp_path: Path) -> None:
    content = (",".join(BASE) + "\n" + ",".join(BASE.values())).replace("somebody", "Müller")
    plain, packed = tmp_path / "a.csv", tmp_path / "a.csv.gz"
    plain.write_bytes(content.encode("latin-1"))
    packed.write_bytes(gzip.compress(content.encode("utf-8-sig")))
    for path in (plain, packed):
        (read,) = read_rows(open_text(path), path.name)
        assert isinstance(read, Measurement)
        assert read.source.startswith("Müller")


def test_a_missing_file_is_one_line() -> None:
    with pytest.raises(InputError, match="expected a CSV file"):
        open_text(Path("nowhere.csv"))


def test_columns_are_those_of_the_packaged_file() -> None:
    path = Path(__file__).parents[1] / "measurements/data/measurements.csv.gz"
    assert tuple(open_text(path).readline().strip().split(",")) == COLUMNS


def test_a_generated_run_is_stood_for_by_its_middle_token() -> None:
    (load,) = workloads(row(n_gen="128", n_depth="4096"))
    assert (load.phase, load.n_depth) == ("decode", 4160)


def test_unknown_depth_is_not_zero() -> None:
    assert workloads(row(n_depth="")) == ()


def test_a_suite_is_its_nine_mixes() -> None:
    loads = workloads(row(flags="suite-average", n_gen="", n_depth=""))
    assert [w.n_depth for w in loads] == [p + n // 2 for p, n in LOCALSCORE]


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({}, None),
        ({"chip": "Abacus"}, "unknown-chip"),
        ({"model_id": "nonesuch"}, "unknown-model"),
        ({"n_devices": "2"}, "several-devices"),
        ({"flags": "cpu-offload"}, "cpu-offload"),
        ({"ngl": "20"}, "few-layers"),
        ({"ngl": "99"}, None),
        ({"n_depth": ""}, "no-length"),
        ({"tok_s": "1133"}, "above-roof"),
        ({"tok_s": "0.5"}, "far-below-roof"),
        ({"model_id": "llama-3.1-70b"}, "spills"),
        ({"flags": "suspect-slow"}, "suspect"),
        ({"size_gib": "4920000000"}, "unit-slip"),
        ({"size_gib": "4.92"}, None),
        ({"tok_s": "0.13"}, "unit-slip"),
        ({"phase": "prefill", "n_prompt": "512", "tok_s": "99000"}, "above-roof"),
    ],
)
def test_each_rule_catches_its_kind(changes: dict[str, str], rule: str | None) -> None:
    m = row(**changes)
    found = check(m, facts_of(m))
    assert (found.name if found else None) == rule


def test_a_suite_whose_processor_held_the_card_up_is_left_out() -> None:
    """Of an RTX 4090's submissions those beside Zen 4 and Zen 5 are slower in both phases."""
    rows = [m for m in packaged() if m.is_suite and m.chip == "NVIDIA GeForce RTX 4090"]
    out: dict[bool, set[str | None]] = {True: set(), False: set()}
    for m in rows:
        machine = machine_of(m)
        assert machine is not None
        found = check(m, facts_of(m))
        out[machine.stalls].add(found.name if found else None)
    assert out == {True: {"host-stalled"}, False: {None}}


def test_rules_have_distinct_names_and_reasons() -> None:
    assert len({r.name for r in RULES}) == len({r.reason for r in RULES}) == len(RULES)


def test_repeats_are_one_observation() -> None:
    rows = [row(tok_s=t) for t in ("128", "130", "135")] + [row(file_type="Q8_0", tok_s="85")]
    observations, rejected = observe(rows)
    assert not rejected
    assert [(o.file_type, o.rows, o.tok_per_s) for o in observations] == [
        ("Q4_K_M", 3, 130.0),
        ("Q8_0", 1, 85.0),
    ]


@pytest.mark.parametrize(
    ("rates", "typical"),
    [
        ([10.0], 10.0),
        ([10.0, 11.9, 11.0], 11.0),
        ([300.0, 285.0, 906.0, 908.0], 907.0),
        ([1.0, 2.0], 2.0),
        ([1.0, 2.0, 4.0], 3.0),
    ],
)
def test_repeats_that_did_not_run_alike_count_at_their_faster_half(
    rates: list[float], typical: float
) -> None:
    assert typical_tok_per_s(rates) == typical
    assert typical_tok_per_s(rates[::-1]) == typical


def test_memory_beside_a_processor_is_what_is_installed() -> None:
    desktop = row(chip="AMD Ryzen 7 5800X", backend="CPU", memory_gb="15.7")
    assert ram_bytes(desktop) == 16 * 2**30
    assert ram_bytes(row(backend="CPU", memory_gb="")) is None
    assert ram_bytes(row(backend="CUDA", memory_gb="24")) is None


def test_a_file_with_its_own_mix_has_its_printed_size() -> None:
    mixed = row(flags="non-stock-mix", size_gib="5.5", stock_gib="4.4", tok_s="100")
    assert size_ratio(mixed) == pytest.approx(1.25)
    (with_mix,), _ = observe([mixed])
    (stock,), _ = observe([replace(mixed, flags=frozenset())])
    weights = [
        sum(w.bytes for w in o.works[0] if w.component in ("ffn", "attention", "head"))
        for o in (with_mix, stock)
    ]
    assert weights[0] == pytest.approx(1.25 * weights[1])
