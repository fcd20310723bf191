"""The effects of placements that ship with tokcast."""

from functools import cache
from pathlib import Path

from tokcast.predictor.placement.company import PlacedCoefficients, read

PATH = Path(__file__).parent / "data" / "offload.json"


@cache
def released_placed() -> PlacedCoefficients:
    """Return the released effects of placements; raises InputError when the file is damaged."""
    return read(PATH)
