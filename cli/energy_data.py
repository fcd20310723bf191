"""Energy of predictions as data, in SI units."""

from typing import TYPE_CHECKING, Any

from tokcast.cli.predict_energy import thousand_answers
from tokcast.predictor.energy import Energy

if TYPE_CHECKING:
    from tokcast.cli.predict_answer import Answer


def energy_data(e: Energy) -> dict[str, Any]:
    """Return one forecast's energy as data, in SI units."""
    return {
        "joules_per_token": e.joules_per_token,
        "low": e.low,
        "high": e.high,
        "level": e.level,
        "watts": e.power.watts,
        "low_watts": e.power.low,
        "high_watts": e.power.high,
        "time_share": e.power.time_share,
        "is_capped": e.power.is_capped,
        "base_watts": e.roofline.base_watts,
        "joules_per_byte": e.roofline.joules_per_byte,
        "joules_per_flop": e.roofline.joules_per_flop,
        "balance_flops_per_byte": e.roofline.balance_flops_per_byte,
        "meter": e.meter,
        "evidence": e.evidence,
    }


def answer_energy(a: "Answer") -> dict[str, Any]:
    """Return an answer's energy beside its forecasts' own: 1,000 answers and limits."""
    e = a.energy
    if e is None or not e.energies:
        return {"why_none": "" if e is None else e.why_none}
    return {
        "thousand_answers": thousand_answers(a.forecasts, e),
        "power_limit_w": e.asked.limit_w,
        "least_energy_limits": [
            {"test": x.label, "limit_w": x.limit_w, "speed": x.speed, "energy": x.energy}
            for x in e.advice
        ],
    }
