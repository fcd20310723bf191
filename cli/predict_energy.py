"""Energy beside a prediction's speed: joules, watt-hours, money, CO2, and a power limit."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tokcast.cli.options import number
from tokcast.cli.render import Table, count
from tokcast.hosts.grids import Grid, grid
from tokcast.predictor.energy import Energy, OwnPower, cap_curve, energy_of, limited
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.power import COVERS
from tokcast.predictor.power_cap import LOWEST_SHARE, CapCurve

if TYPE_CHECKING:
    from tokcast.cli.predict_answer import Forecast

N_ANSWERS = 1000
JOULES_PER_WH = 3600.0


@dataclass(frozen=True, slots=True)
class EnergyAsked:
    """What is asked of energy: a price a kWh, a grid, a limit in watts of each device."""

    price_per_kwh: float | None = None
    grid: Grid | None = None
    limit_w: float | None = None


@dataclass(frozen=True, slots=True)
class Advice:
    """What a forecast's best power limit is and does: shares of speed and energy left."""

    label: str
    limit_w: float
    speed: float
    energy: float
    terms_of: str


@dataclass(frozen=True, slots=True)
class EnergyAnswer:
    """Energies of an answer's forecasts, in their order, and advice; why there are none else."""

    asked: EnergyAsked
    energies: tuple[Energy, ...]
    advice: tuple[Advice, ...]
    why_none: str = ""


def asked_of(
    wanted: bool, price: str | None, grid_name: str | None, limit: str | None
) -> EnergyAsked | None:
    """Return what is asked of energy, None for nothing; raises InputError naming the flag."""
    if not wanted and price is None and grid_name is None and limit is None:
        return None
    return EnergyAsked(
        None if price is None else number(price, "--price", "what a kWh costs"),
        None if grid_name is None else grid(grid_name),
        None if limit is None else number(limit, "--power-limit", "watts"),
    )


def _check_limit(host: Host, limit_w: float) -> None:
    if host.tdp_w is None or host.kind != "discrete_gpu":
        raise InputError(
            f"--power-limit {limit_w:g}: no limit was measured on a chip like {host.name};"
            " expected a graphics card with a published power"
        )
    low, high = LOWEST_SHARE * host.tdp_w, 1.5 * host.tdp_w
    if not low <= limit_w <= high:
        raise InputError(
            f"--power-limit {limit_w:g}: expected {low:.0f} to {high:.0f} W,"
            f" around the {host.tdp_w:g} W of {host.name}"
        )


def with_energy(
    forecasts: Sequence["Forecast"],
    host: Host,
    backend: str,
    asked: EnergyAsked,
    own: OwnPower | None = None,
) -> tuple[tuple["Forecast", ...], EnergyAnswer]:
    """Return the forecasts, under the limit if one is asked for, and their energy.

    `own` is what a calibration of this machine read on its meter.
    Raises InputError for a limit that such a chip does not take.
    """
    from dataclasses import replace

    from tokcast.fits.energy_released import released_energy

    coefficients, limit_w = released_energy(), asked.limit_w
    if limit_w is not None:
        _check_limit(host, limit_w)
    made, energies, advice = [], [], []
    for f in forecasts:
        energy = energy_of(f.prediction, host, backend, coefficients, own=own)
        if energy is None:
            return tuple(forecasts), EnergyAnswer(asked, (), (), _why_none(host))
        found = cap_curve(f.prediction, energy, host, coefficients)
        if found is not None:
            advice.append(_advice(f.label, *found, host))
        if limit_w is not None and found is not None:
            f = replace(f, prediction=limited(f.prediction, found[0], limit_w))
            energy = energy_of(f.prediction, host, backend, coefficients, limit_w, own) or energy
        made.append(f)
        energies.append(energy)
    return tuple(made), EnergyAnswer(asked, tuple(energies), tuple(advice))


def _why_none(host: Host) -> str:
    return f"no power is published of {host.name}: no energy"


def _advice(label: str, curve: CapCurve, terms_of: str, host: Host) -> Advice:
    tdp = host.tdp_w or curve.drawn_watts
    best = curve.best(LOWEST_SHARE * tdp, tdp)
    return Advice(label, best, curve.speed(best), curve.energy(best), terms_of)


def energy_table(forecasts: Sequence["Forecast"], e: EnergyAnswer) -> Table:
    """Return a line a test: joules a token, their range, watts, what follows the time."""
    level = f"{100 * e.energies[0].level:.0f} % range"
    columns = ("test", "J/token", level, "W", "with time")
    rows = tuple(
        (
            f.label,
            f"{one.joules_per_token:.3g}",
            f"{one.low:.3g} - {one.high:.3g}",
            f"{one.power.watts:.0f}",
            f"{100 * one.power.time_share:.0f} %",
        )
        for f, one in zip(forecasts, e.energies, strict=True)
    )
    return Table(columns, rows, frozenset(columns[1:]))


def _chosen(
    forecasts: Sequence["Forecast"], e: EnergyAnswer
) -> tuple[tuple["Forecast", Energy] | None, tuple["Forecast", Energy] | None]:
    """Return the first forecast of prefill and of decode, with their energies."""
    pairs = list(zip(forecasts, e.energies, strict=True))
    first = {
        phase: next((p for p in pairs if p[0].prediction.phase == phase), None)
        for phase in ("prefill", "decode")
    }
    return first["prefill"], first["decode"]


def thousand_answers(forecasts: Sequence["Forecast"], e: EnergyAnswer) -> dict[str, Any]:
    """Return joules of 1,000 answers of the first prompt and generation, and what they cost.

    Errors of both phases are taken to go together.
    """
    prefill, decode = _chosen(forecasts, e)
    joules = low = high = 0.0
    n_prompt = n_gen = 0
    if prefill is not None:
        n_prompt = prefill[0].prediction.n_prompt
        joules, low, high = (n_prompt * x for x in _ends(prefill[1]))
    if decode is not None:
        n_gen = decode[0].n_gen
        own = _ends(decode[1])
        joules, low, high = (a + n_gen * b for a, b in zip((joules, low, high), own, strict=True))
    return {
        "n_prompt": n_prompt,
        "n_gen": n_gen,
        "joules": joules * N_ANSWERS,
        "low_joules": low * N_ANSWERS,
        "high_joules": high * N_ANSWERS,
        **bill(joules * N_ANSWERS, e.asked),
    }


def bill(joules: float, asked: EnergyAsked) -> dict[str, Any]:
    """Return what joules cost and emit, None where no price or grid is known."""
    kwh = joules / JOULES_PER_WH / 1e3
    price, used = asked.price_per_kwh, asked.grid
    return {
        "cost": None if price is None else price * kwh,
        "price_per_kwh": price,
        "co2_grams": None if used is None else used.grams_per_kwh * kwh,
        "grid": None if used is None else (used.code or used.name),
        "grams_per_kwh": None if used is None else used.grams_per_kwh,
    }


def _ends(e: Energy) -> tuple[float, float, float]:
    return e.joules_per_token, e.low, e.high


def _wh(joules: float) -> str:
    wh = joules / JOULES_PER_WH
    return f"{wh:,.0f} Wh" if wh >= 100 else f"{wh:.3g} Wh"


def energy_notes(forecasts: Sequence["Forecast"], e: EnergyAnswer) -> tuple[str, ...]:
    """Return sentences on 1,000 answers, the roofline, the meter, the limit."""
    if not e.energies:
        return (f"Energy: {e.why_none}.",)
    first = e.energies[0]
    return (
        _answers(thousand_answers(forecasts, e)),
        *_rooflines(forecasts, e),
        f"Energy is of {first.source or COVERS[first.meter]}; evidence: {first.evidence}.",
        *_limits(e),
    )


def _answers(t: Mapping[str, Any]) -> str:
    tokens = f"{count(t['n_prompt'])} + {count(t['n_gen'])} tokens"
    low, high = _wh(t["low_joules"]), _wh(t["high_joules"])
    return f"1,000 answers of {tokens}: {_wh(t['joules'])} ({low} - {high}){bill_words(t)}."


def bill_words(t: Mapping[str, Any]) -> str:
    """Return a bill in words, each part after a comma; nothing where nothing was asked."""
    text = ""
    if t["cost"] is not None:
        text += f", {t['cost']:.3g} at {t['price_per_kwh']:g} a kWh"
    if t["co2_grams"] is not None:
        grams = "" if t["grid"].endswith("g/kWh") else f", {t['grams_per_kwh']:.0f} g/kWh"
        text += f", {t['co2_grams']:,.3g} g CO2 ({t['grid']}{grams})"
    return text


def _rooflines(forecasts: Sequence["Forecast"], e: EnergyAnswer) -> tuple[str, ...]:
    found = []
    for pair in _chosen(forecasts, e):
        if pair is None:
            continue
        r, phase = pair[1].roofline, pair[0].prediction.phase
        found.append(
            f"Energy roofline, {phase}: {r.base_watts:.0f} W base, {r.joules_per_byte * 1e12:.3g}"
            f" pJ a byte, {r.joules_per_flop * 1e12:.3g} pJ an operation, equal at"
            f" {r.balance_flops_per_byte:.2g} operations a byte; {r.sustained_watts:.0f} W at most."
        )
    return tuple(found)


def _limits(e: EnergyAnswer) -> tuple[str, ...]:
    if e.asked.limit_w is not None:
        text = f"Under a power limit of {e.asked.limit_w:g} W, of each card."
        return (text,)
    return tuple(
        f"Least J/token of {a.label}: about {a.limit_w:.0f} W, {100 * (a.energy - 1):+.0f} %"
        f" energy, {100 * (a.speed - 1):+.0f} % speed (sweeps of {a.terms_of})."
        for a in e.advice
        if a.energy < 1 and math.isfinite(a.energy)
    )[:2]
