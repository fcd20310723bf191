"""The scaling laws that ship with tokcast."""

from functools import cache
from pathlib import Path

from tokcast.predictor.scaling import Law, read_laws

SCALING_PATH = Path(__file__).parent / "data" / "scaling.json"


@cache
def released_laws() -> tuple[Law, ...]:
    """Return the released laws; raises InputError when the file is damaged."""
    return read_laws(SCALING_PATH)
