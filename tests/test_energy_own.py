"""A machine's own power: from readings taken while it was calibrated."""

import math
from dataclasses import replace

import pytest
from measured import CHIP
from test_calibrate import LOADS, RUN, SPECS, TRUE, rate

from tokcast.cli.calibrate_report import report
from tokcast.fits.calibrate import Point
from tokcast.fits.calibrated import Applied
from tokcast.fits.calibration import make
from tokcast.fits.energy_own import own_power
from tokcast.fits.energy_released import released_energy
from tokcast.fits.released import released
from tokcast.predictor.energy import OwnPower, energy_of
from tokcast.predictor.roofline import Question, predict

WATTS = 93.0
METER = "RAPL package-0, dram"


def read(meter: str = METER, noise: float = 0.0) -> list[Point]:
    """Return points of a machine that draws what the terms say at 93 W."""
    own = OwnPower(WATTS, {"0.8": (0.0, 0.0)}, METER)
    found = []
    for i, (name, spec) in enumerate(SPECS.items()):
        for load in LOADS:
            p = predict(spec, Question(load, CHIP, RUN), TRUE)
            energy = energy_of(p, CHIP, "CPU", released_energy(), own=own)
            assert energy is not None
            joules = energy.joules_per_token * math.exp(noise * (-1) ** i)
            found.append(Point(name, spec, load, rate(name, load, TRUE), 1.0, joules, meter))
    return found


def test_the_reference_is_found_from_what_was_read_whatever_the_speed() -> None:
    found = own_power(read(), CHIP, RUN, released())
    assert found is not None
    assert found["reference_watts"] == pytest.approx(WATTS, rel=1e-4)
    assert found["error"] == pytest.approx(0.0, abs=1e-6)
    assert found["n_models"] == len(SPECS)
    low, high = found["intervals"]["0.8"]
    assert low == -high
    assert found["intervals"]["0.95"][1] > high > 0


def test_scatter_between_models_widens_the_range() -> None:
    quiet, rough = (own_power(read(noise=n), CHIP, RUN, released()) for n in (0.0, 0.2))
    assert quiet is not None
    assert rough is not None
    assert rough["error"] > 0.15
    assert rough["intervals"]["0.8"][1] > 1.3 * quiet["intervals"]["0.8"][1]


@pytest.mark.parametrize("meter", ["", "NVML total energy", "Apple IOReport (processor)"])
def test_a_meter_of_something_else_says_nothing(meter: str) -> None:
    assert own_power(read(meter), CHIP, RUN, released()) is None


def test_one_model_or_none_with_a_reading_says_nothing() -> None:
    one = [p if p.model == "small" else replace(p, joules_per_token=None) for p in read()]
    assert own_power(one, CHIP, RUN, released()) is None
    assert own_power([], CHIP, RUN, released()) is None


def test_a_calibration_keeps_it_says_it_and_predictions_take_it() -> None:
    made = make(read(), CHIP, RUN, released(), {}, "test")
    text = " ".join(report(made, CHIP, (), ()).notes)
    assert "Power, from RAPL package-0, dram: 93 W" in text
    own = Applied(CHIP, released(), made).own_power
    assert own is not None
    p = predict(SPECS["wide"], Question(LOADS[0], CHIP, RUN), TRUE)
    # Nobody published this chip's power: without a reading there is no energy at all.
    assert energy_of(p, CHIP, "CPU", released_energy()) is None
    energy = energy_of(p, CHIP, "CPU", released_energy(), own=own)
    data_sheet = energy_of(p, replace(CHIP, tdp_w=WATTS), "CPU", released_energy())
    assert energy is not None
    assert data_sheet is not None
    assert energy.joules_per_token == pytest.approx(data_sheet.joules_per_token, rel=0.02)
    assert (energy.evidence, energy.source) == ("measured here", METER)
    assert data_sheet.high / data_sheet.low > energy.high / energy.low


def test_without_a_meter_a_calibration_says_nothing_of_power() -> None:
    made = make(read(meter=""), CHIP, RUN, released(), {}, "test")
    assert "energy" not in made
    assert Applied(CHIP, released(), made).own_power is None
    assert "Power" not in " ".join(report(made, CHIP, (), ()).notes)
