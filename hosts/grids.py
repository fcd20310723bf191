"""What a kilowatt-hour emits, by country: published yearly means of lifecycle emissions."""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tokcast.predictor.errors import InputError

# No grid on record emits more; a larger number is another unit.
MOST_GRAMS = 2000.0


@dataclass(frozen=True, slots=True)
class Grid:
    """A country's electricity: grams of CO2 equivalents a kWh in a year, and who says so.

    `code` is the ISO 3166 letters, blank for a figure that was given.
    """

    code: str
    name: str
    grams_per_kwh: float
    year: int | None
    source: str


@cache
def grids() -> dict[str, Grid]:
    """Return the known grids by code."""
    path = Path(__file__).with_name("data") / "grids.csv"
    with path.open(newline="", encoding="utf-8") as file:
        return {
            row["code"]: Grid(
                row["code"],
                row["name"],
                float(row["grams_per_kwh"]),
                int(row["year"]),
                row["source"],
            )
            for row in csv.DictReader(file)
        }


def grid(text: str) -> Grid:
    """Return a grid by its code, or of so many grams a kWh; raises InputError for neither."""
    known = grids().get(text.upper())
    if known is not None:
        return known
    try:
        grams = float(text)
    except ValueError:
        grams = -1.0
    if not 0 <= grams <= MOST_GRAMS:
        raise InputError(
            f"--grid {text[:40]!r}: expected grams of CO2 a kWh, 0 to {MOST_GRAMS:g}, or one of"
            f" {', '.join(grids())}"
        )
    return Grid("", f"{grams:g} g/kWh", grams, None, "as given")
