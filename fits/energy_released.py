"""The energy coefficients that ship with tokcast."""

from functools import cache
from pathlib import Path

from tokcast.predictor.energy import EnergyCoefficients, read

ENERGY_PATH = Path(__file__).parent / "data" / "energy.json"


@cache
def released_energy() -> EnergyCoefficients:
    """Return the released energy coefficients; raises InputError when the file is damaged."""
    return read(ENERGY_PATH)
