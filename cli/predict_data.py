"""Predictions as data: the documented JSON and its flat rows. SI units, nothing rounded."""

from collections.abc import Sequence
from typing import Any

from tokcast.cli.energy_data import answer_energy, energy_data
from tokcast.cli.fitting import Fit, PlacedFit
from tokcast.cli.hosts import describe
from tokcast.cli.placed_report import placement_data
from tokcast.cli.predict import Answer, Forecast
from tokcast.predictor.energy import Energy
from tokcast.predictor.prediction import ComponentTime


def answer_data(a: Answer) -> dict[str, Any]:
    """Return an answer as the documented JSON; a placement only where one was asked for."""
    placed = {}
    if a.placement is not None and isinstance(a.fit, PlacedFit):
        placed["placement"] = placement_data(a.placement, a.fit)
    return {
        "model": _model(a),
        "host": _host(a),
        "predictions": [
            _prediction(f) | ({"energy": energy_data(e)} if e is not None else {})
            for f, e in zip(a.forecasts, _energies(a), strict=True)
        ],
        "memory": _memory(a),
        **placed,
        "provenance": {
            "coefficients": a.coefficients,
            "calibrated": a.is_calibrated,
            "evidence": a.evidence,
        },
        "warnings": list(a.warnings),
        **({} if a.energy is None else {"energy": answer_energy(a)}),
    }


def _energies(a: Answer) -> Sequence[Energy | None]:
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
    own = _placed_memory(a.fit) if isinstance(a.fit, PlacedFit) else _plain_memory(a.fit)
    return {
        "n_context": a.fit.n_context,
        **own,
        "need_bytes": a.fit.need_bytes,
        "available_bytes": a.fit.available_bytes,
        "fits": a.fit.fits,
        "largest_context": a.fit.largest_context,
    }


def _plain_memory(fit: Fit) -> dict[str, float]:
    use = fit.use
    return {
        "weights_bytes": use.weights_bytes,
        "kv_bytes": use.kv_bytes,
        "recurrent_bytes": use.recurrent_bytes,
        "compute_bytes": use.compute_device_bytes + use.compute_host_bytes,
        "device_bytes": use.device_bytes,
        "host_bytes": use.host_bytes,
    }


def _placed_memory(fit: PlacedFit) -> dict[str, float]:
    """Return the sums over devices: those of the cards, and the processor's."""
    held = fit.devices
    return {
        "weights_bytes": sum(d.weights_bytes for d in held),
        "kv_bytes": sum(d.kv_bytes for d in held),
        "recurrent_bytes": sum(d.recurrent_bytes for d in held),
        "compute_bytes": sum(d.compute_bytes for d in held),
        "device_bytes": sum(d.total_bytes for d in held[:-1]),
        "host_bytes": held[-1].total_bytes,
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


def _flat(e: Energy) -> dict[str, Any]:
    return {
        "joules_per_token": e.joules_per_token,
        "low_joules_per_token": e.low,
        "high_joules_per_token": e.high,
        "watts": e.power.watts,
        "energy_meter": e.meter,
        "energy_evidence": e.evidence,
    }
