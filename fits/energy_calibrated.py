"""The time of a model left out, on an installation whose speed other models have shown.

What `tokcast calibrate` does on a machine of one's own, done to the machines behind published
power readings: the host's own effects, moved by the speeds of its other models. Speeds of rows
whose power is no use (a process that mostly loaded its model) count as well.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from tokcast.fits.calibrate import Point, updated_rates
from tokcast.fits.energy import is_free
from tokcast.fits.energy_observations import EnergyObservation, energy_observation
from tokcast.fits.observations import spec_of
from tokcast.measurements.energy_cleaning import check_energy
from tokcast.measurements.energy_rows import EnergyRow
from tokcast.predictor.coefficients import Coefficients

Floats = npt.NDArray[np.float64]
Key = tuple[str, ...]
Installations = Mapping[Key, Sequence[Point]]
# Shorter prompts and generations run other kernels than the rows whose power is known.
SHORTEST = {"prefill": 128, "decode": 16}


def key_of(o: EnergyObservation) -> Key:
    """Return what observations of one installation and phase share; attention's kernel too."""
    flash = str(o.run.flash_attention)
    return (o.host.name, o.run.backend, o.run.stack, o.installation, flash, o.phase)


def _point(o: EnergyObservation) -> Point:
    spec = spec_of(o.model_id, o.file_type)
    if spec is None:
        raise AssertionError("an observation has a model")
    seconds = o.activity.decode_seconds if o.phase == "decode" else o.activity.prefill_seconds
    return Point(o.model_id, spec, o.loads[0][0], o.n_tokens / seconds)


def installations(rows: Iterable[EnergyRow]) -> dict[Key, list[Point]]:
    """Return the measured speeds of each installation and phase, under no limit of its owner's."""
    found: dict[Key, list[Point]] = defaultdict(list)
    for r in rows:
        if r.phase not in SHORTEST or check_energy(r) is not None:
            continue
        o = energy_observation(r)
        stated = r.n_gen if r.phase == "decode" else r.n_prompt
        is_short = stated is not None and stated < SHORTEST[r.phase]
        if isinstance(o, EnergyObservation) and is_free(o) and not is_short:
            found[key_of(o)].append(_point(o))
    return found


def calibrated_seconds(
    observations: Sequence[EnergyObservation], known: Installations, coefficients: Coefficients
) -> Floats:
    """Return seconds of the main phase of each observation, (n,), by its installation's others.

    An observation's model has no part in them; NaN where no other was measured there.
    """
    groups: dict[tuple[Key, str], list[int]] = defaultdict(list)
    for i, o in enumerate(observations):
        groups[key_of(o), o.model_id].append(i)
    seconds = np.full(len(observations), np.nan)
    for (key, model), places in groups.items():
        others = [p for p in known.get(key, ()) if p.model != model]
        if not others:
            continue
        asked = [observations[i] for i in places]
        host, run = asked[0].host, asked[0].run
        rates = updated_rates([_point(o) for o in asked], others, host, run, coefficients)
        seconds[places] = np.array([o.n_tokens for o in asked]) / rates
    return seconds
