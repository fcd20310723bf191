"""Reads the compact evidence in tests/data/catalogue.

Rows of equal content are stored once with the blocks they apply to: `attn_v.weight … 0-3 6`.
"""

import csv
import re
from collections.abc import Iterator
from pathlib import Path

DATA = Path(__file__).parent / "data" / "catalogue"
TensorRow = tuple[tuple[int, ...], str, int]


def csv_rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(newline="") as file:
        return list(csv.DictReader(file))


def files(folder: str) -> list[str]:
    return sorted(
        path.stem if path.suffix == ".txt" else path.name for path in (DATA / folder).iterdir()
    )


def _names(tail: str, ranges: list[str]) -> Iterator[str]:
    if not ranges:
        yield tail
    for part in ranges:
        first, _, last = part.partition("-")
        for block in range(int(first), int(last or first) + 1):
            yield f"blk.{block}.{tail}"


def tensor_list(name: str) -> dict[str, TensorRow]:
    """Return {tensor name: (shape, type, bytes)} of a real file."""
    found: dict[str, TensorRow] = {}
    for line in (DATA / "tensor_lists" / f"{name}.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        tail, shape, kind, n_bytes, *ranges = line.split()
        row = (tuple(map(int, shape.split("x"))), kind, int(n_bytes))
        found.update(dict.fromkeys(_names(tail, ranges), row))
    return found


def snapshot(name: str) -> dict[str, tuple[str, dict[str, str]]]:
    """Return {file type: (type of most tensors, {tensor name: other type})}."""
    found: dict[str, tuple[str, dict[str, str]]] = {}
    others: dict[str, str] = {}
    for line in (DATA / "snapshots" / f"{name}.txt").read_text().splitlines():
        if section := re.fullmatch(r"\[(\w+)\] (\w+)", line):
            others = {}
            found[section[1]] = (section[2].upper(), others)
        elif line and not line.startswith("#"):
            kind, tail, *ranges = line.split()
            others.update(dict.fromkeys(_names(tail, ranges), kind.upper()))
    return found


def prints_as(value: float, printed: str) -> bool:
    """Say whether a number shown with as many decimals as `printed` reads the same."""
    decimals = len(printed.partition(".")[2])
    return abs(value - float(printed)) <= 0.5 * 10**-decimals + 1e-9
