"""The coefficients that ship with tokcast."""

from functools import cache
from pathlib import Path

from tokcast.predictor.coefficients import Coefficients, read

PATH = Path(__file__).parent / "data" / "coefficients.json"


@cache
def released() -> Coefficients:
    """Return the released coefficients; raises InputError when the file is damaged."""
    return read(PATH)
