"""The chips that ship with the project: published facts, in SI units when asked for."""

import csv
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host, Kind

# Memory is made and sold in powers of two: a "24 GB" card holds 24 GiB, of which drivers report
# 24564 MiB; an "80 GB" A100 reports 81920 MiB. Bandwidth and rates are decimal.
GIB = 2.0**30

_RATES = (
    ("bytes_per_s", "memory_bandwidth_gb_s", 1e9),
    ("matrix_fp16_flops_per_s", "fp16_tensor_tflops_dense", 1e12),
    ("matrix_fp32acc_flops_per_s", "fp16_tensor_fp32acc_tflops_dense", 1e12),
    ("fp16_flops_per_s", "fp16_tflops", 1e12),
    ("fp32_flops_per_s", "fp32_tflops", 1e12),
    ("int8_ops_per_s", "int8_tops_dense", 1e12),
    ("cache_bytes", "l2_or_slc_mb", 2.0**20),
    ("clock_hz", "boost_clock_mhz", 1e6),
)


def chips() -> tuple[Host, ...]:
    """Return every chip of the registry, in the order of its table."""
    return tuple(chip(name) for name in names())


@cache
def chip(name: str) -> Host:
    """Return the chip with exactly this canonical name.

    The number of devices is 1 and the memory is one device's; `tokcast.hosts.match.find` reads
    the ways in which people spell a name. Raises InputError for any other name.
    """
    return _host(facts(name))


def facts(name: str) -> Mapping[str, str]:
    """Return a chip's row as it stands in the table: units are in the column names.

    Raises InputError for a name that is not in the table.
    """
    columns, rows = _table()
    row = rows.get(name)
    if row is None:
        raise InputError(
            f"chip {name!r} is not in the registry: expected a name as `hosts list` prints it"
        )
    return dict(zip(columns, row, strict=True))


def names() -> tuple[str, ...]:
    """Return every canonical name, in the order of the table."""
    return tuple(_table()[1])


@cache
def _table() -> tuple[list[str], dict[str, list[str]]]:
    path = Path(__file__).with_name("data") / "chips.csv"
    with path.open(newline="", encoding="utf-8") as file:
        table = csv.reader(file)
        return next(table), {row[0]: row for row in table}


def _host(row: Mapping[str, str]) -> Host:
    numbers: dict[str, Any] = {
        field: float(row[column]) * scale for field, column, scale in _RATES if row[column]
    }
    link = re.search(r"\(([\d.]+) GB/s", row["pcie_gen_lanes_gb_s"])
    if link and row["kind"] == "discrete_gpu":
        numbers["link_bytes_per_s"] = float(link[1]) * 1e9
    options = tuple(float(size) * GIB for size in row["memory_gb"].split("|") if size)
    published = " ; ".join(text for text in (row["source_1"], row["source_2"]) if text)
    known = [*numbers, *(["memory_options_bytes"] if options else [])]
    return Host(
        name=row["chip"],
        vendor=row["vendor"],
        kind=cast(Kind, row["kind"]),
        architecture=row["architecture"],
        bytes_per_s=numbers.pop("bytes_per_s"),
        memory_bytes=options[0] if len(options) == 1 else None,
        memory_options_bytes=options,
        **numbers,
        n_cores=n_cores(row["n_cores"]),
        tdp_w=_most_power(row["tdp_w"]),
        launch_year=int(row["launch_year"]) if row["launch_year"] else None,
        memory_type=row["memory_type"],
        confidence=cast(Literal["high", "medium", "low"], row["confidence"]),
        source=dict.fromkeys(known, published),
        notes=_notes(row),
    )


def n_cores(text: str) -> int | None:
    """Return SMs, CUs, Xe or GPU cores, or a CPU's physical cores.

    `10P+4E cores` are 14; `7 or 8 GPU cores` are 8, because such a row has the rates of the
    larger part.
    """
    clusters = re.findall(r"(\d+)[PE]\b", text)
    if clusters:
        return sum(map(int, clusters))
    either = re.match(r"(\d+)(?: or (\d+))?", text)
    return int(either[2] or either[1]) if either else None


def _most_power(text: str) -> float | None:
    """Return 120 for `55 (45-120)`: what a box that cools it runs at; notes have the range."""
    return max(map(float, re.findall(r"\d+(?:\.\d+)?", text)), default=None)


def _notes(row: Mapping[str, str]) -> tuple[str, ...]:
    power = row["tdp_w"]
    configurable = (f"power is configurable: {power} W",) if re.search(r"\D", power) else ()
    return configurable + tuple(note for note in row["notes"].split("; ") if note)
