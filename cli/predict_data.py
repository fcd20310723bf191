"""Predictions as data: the documented JSON and its flat rows. SI units, nothing rounded."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tokcast.cli.fitting import Fit
from tokcast.cli.hosts import describe
from tokcast.cli.placed_report import placement_data
from tokcast.cli.predict_answer import Answer, Forecast
from tokcast.predictor.prediction import ComponentTime

if TYPE_CHECKING:
    from tokcast.predictor.energy import Energy


def answer_data(a: Answer) -> dict[str, Any]:
    """Return an answer as the documented JSON; a placement only where one was asked for."""
    placed = {}
    if a.placement is not None and not isinstance(a.fit, Fit):
        placed["placement"] = placement_data(a.placement, a.fit)
    return {
        "model": _model(a),
        "host": _host(a),
        "predictions": _predictions(a),
        "memory": _memory(a),
        **placed,
        "provenance": {
            "coefficients": a.coefficients,
            "calibrated": a.is_calibrated,
            "evidence": a.evidence,
        },
        "warnings": list(a.warnings),
        **_energy(a),
    }


def _predictions(a: Answer) -> list[dict[str, Any]]:
    found = [_prediction(f) for f in a.forecasts]
    if a.energy is None:
        return found
    from tokcast.cli.energy_data import energy_data

    own = [{} if e is None else {"energy": energy_data(e)} for e in _energies(a)]
    return [speed | energy for speed, energy in zip(found, own, strict=True)]


def _energy(a: Answer) -> dict[str, Any]:
    if a.energy is None:
        return {}
    from tokcast.cli.energy_data import answer_energy

    return {"energy": answer_energy(a)}


def _energies(a: Answer) -> "Sequence[Energy | None]":
    """Return each forecast's energy; None where it was not asked for or can't be told."""
    found = a.energy.energies if a.energy is not None else ()
    return found or [None] * len(a.forecasts)


def _model(a: Answer) -> dict[str, Any]:
    spec = a.spec
    return {
        "name": spec.name,
        "architecture": spec.architecture,
        "format": spec.format,
        "file_type": spec.file_type,
        "n_params": spec.n_params,
        "active_params": spec.active_params,
        "n_bytes": spec.n_bytes,
        "source": spec.source,
        "confidence": spec.confidence,
    }


def _host(a: Answer) -> dict[str, Any]:
    facts = describe(a.host)
    # `tokcast hosts show` has the sources, long as they are.
    facts.pop("source", None)
    return {**facts, "runtime": a.run.runtime, "backend": a.run.backend}


def _prediction(f: Forecast) -> dict[str, Any]:
    p = f.prediction
    return {
        "phase": p.phase,
        "n_prompt": p.n_prompt,
        "n_depth": f.n_depth,
        "tok_per_s": p.tok_per_s,
        "low": p.low,
        "high": p.high,
        "level": p.level,
        "seconds": p.seconds,
        "bound": p.bound,
        "components": _components(p.components),
    }


def _components(times: Sequence[ComponentTime]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for c in times:
        name = f"{c.component}/{c.type}" if c.type else c.component
        one = found.setdefault(name, {"bytes": 0.0, "flops": 0.0, "seconds": 0.0, "bound": c.bound})
        for key, value in (("bytes", c.bytes), ("flops", c.flops), ("seconds", c.seconds)):
            one[key] += value
    return found


def _memory(a: Answer) -> dict[str, Any]:
    return {
        "n_context": a.fit.n_context,
        **a.fit.parts_bytes,
        "need_bytes": a.fit.need_bytes,
        "available_bytes": a.fit.available_bytes,
        "fits": a.fit.fits,
        "largest_context": a.fit.largest_context,
    }


def records(a: Answer) -> list[dict[str, Any]]:
    """Return one flat row for each prediction."""
    return [
        {
            "model": a.spec.name,
            "file_type": a.spec.file_type,
            "host": a.host.name,
            "n_devices": a.host.n_devices,
            "runtime": a.run.runtime,
            "backend": a.run.backend,
            "test": f.label,
            "phase": f.prediction.phase,
            "n_prompt": f.prediction.n_prompt,
            "n_gen": f.n_gen,
            "n_depth": f.n_depth,
            "tok_per_s": f.prediction.tok_per_s,
            "low": f.prediction.low,
            "high": f.prediction.high,
            "level": f.prediction.level,
            "bound": f.prediction.bound,
            "evidence": f.prediction.evidence,
            "fits": a.fit.fits,
            **({} if e is None else _flat(e)),
        }
        for f, e in zip(a.forecasts, _energies(a), strict=True)
    ]


def _flat(e: "Energy") -> dict[str, Any]:
    return {
        "joules_per_token": e.joules_per_token,
        "low_joules_per_token": e.low,
        "high_joules_per_token": e.high,
        "watts": e.power.watts,
        "energy_meter": e.meter,
        "energy_evidence": e.evidence,
    }
