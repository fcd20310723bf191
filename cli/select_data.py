"""A choice as data: SI units, nothing rounded."""

from collections.abc import Mapping, Sequence
from typing import Any

from tokcast.cli.running import applied
from tokcast.cli.select import Selection
from tokcast.fits.energy_released import released_energy
from tokcast.predictor.energy import Energy, energy_of
from tokcast.predictor.ledger import Workload
from tokcast.predictor.roofline import Question, predict
from tokcast.predictor.select.quality import Figure
from tokcast.predictor.select.ranking import front
from tokcast.predictor.select.rows import Row
from tokcast.predictor.select.types import type_loss


def _figure(f: Figure | None) -> Mapping[str, Any] | None:
    if f is None:
        return None
    return {
        "value": f.value,
        "low": f.low,
        "high": f.high,
        "stderr": f.stderr,
        "n": f.n,
        "of": f.of,
        "imatrix": f.imatrix,
        "reference": f.reference,
        "text": f.text,
        "sources": list(f.sources),
    }


def most_joules(s: Selection, row: Row) -> float | None:
    """Return the chip's nameplate power over the predicted speed: J a token at most.

    None where nobody publishes the power. What else the machine draws is not in it.
    """
    return None if s.host.tdp_w is None else s.host.tdp_w / row.decode.tok_per_s


def decode_energy(s: Selection, row: Row) -> Energy | None:
    """Return the energy of generating with a row's model, None where no power is published."""
    load = Workload(
        "decode",
        n_depth=s.wishes.at_depth,
        type_k=s.wishes.type_k,
        type_v=s.wishes.type_v,
        flash_attention=s.wishes.flash_attention,
    )
    used = applied(s.host, row.run, is_here=bool(s.calibration))
    question = Question(load, used.host, row.run, s.wishes.level)
    prediction = predict(row.candidate.spec, question, used.coefficients)
    own = used.own_power
    return energy_of(prediction, s.host, row.run.backend, released_energy(), own=own)


def record(s: Selection, row: Row, on_front: bool) -> dict[str, Any]:
    """Return a row as flat fields."""
    c, spec = row.candidate, row.candidate.spec
    return {
        "host": s.host.name,
        "n_devices": s.host.n_devices,
        "address": c.address,
        "model": spec.name,
        "quant": c.quant,
        "file_type": spec.file_type,
        "format": spec.format,
        "licence": c.licence or None,
        "n_params": spec.n_params,
        "active_params": spec.active_params,
        "n_bytes": spec.n_bytes,
        "bits_per_weight": c.bits_per_weight,
        "runtime": row.run.runtime,
        "backend": row.run.backend,
        "decode_tok_per_s": row.decode.tok_per_s,
        "decode_low": row.decode.low,
        "decode_high": row.decode.high,
        "prefill_tok_per_s": row.prefill.tok_per_s,
        "prefill_low": row.prefill.low,
        "prefill_high": row.prefill.high,
        "level": s.wishes.level,
        "most_joules_per_token": most_joules(s, row),
        "ttft_s": row.ttft_s,
        "first_turn_s": None if row.turn is None else row.turn.first_s,
        "turn_s": None if row.turn is None else row.turn.later_s,
        "need_bytes": row.need_bytes,
        "available_bytes": row.available_bytes,
        "spare_bytes": row.spare_bytes,
        **{f"{name}": value for name, value in _losses(row).items()},
        **_type(c.quant),
        "evidence": row.evidence,
        "feasible": row.is_feasible,
        "pareto_front": on_front,
        "misses": "; ".join(f"{m.wish}: {m.found} against {m.limit}" for m in row.misses) or None,
    }


def _type(quant: str) -> dict[str, Any]:
    known = type_loss(quant)
    return {
        "type_ppl_ratio": None if known is None else known.ratio,
        "type_ppl_ratio_n": None if known is None else known.n_models,
    }


def selection_records(s: Selection) -> list[dict[str, Any]]:
    """Return every candidate of a choice as flat fields."""
    places = front(s.rows)
    return [record(s, row, i in places) for i, row in enumerate(s.rows)]


def _losses(row: Row) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, f in (
        ("ppl_ratio", row.loss.ppl_ratio),
        ("kld_mean", row.loss.kld_mean),
        ("same_top_pct", row.loss.same_top_pct),
    ):
        found[name] = None if f is None else f.value
        found[f"{name}_low"] = None if f is None else f.low
        found[f"{name}_high"] = None if f is None else f.high
        found[f"{name}_n"] = None if f is None else f.n
        found[f"{name}_of"] = None if f is None else f.of
    return found


def selection_data(
    s: Selection,
    records: Sequence[Mapping[str, Any]],
    others: Sequence[Selection],
    command: str | None,
) -> dict[str, Any]:
    """Return a choice as JSON: the pick with its figures and sources, then every candidate."""
    pick = s.pick
    return {
        "host": {"name": s.host.name, "n_devices": s.host.n_devices},
        "wishes": _wishes(s),
        "goal": s.goal,
        "pick": None if pick is None else {**record(s, pick, True), "published": _published(pick)},
        "command": command,
        "n_candidates": len(s.rows),
        "n_feasible": s.n_feasible,
        "candidates": list(records),
        "what_if": [
            {
                "host": {"name": o.host.name, "n_devices": o.host.n_devices},
                "pick": None if o.pick is None else record(o, o.pick, True),
                "n_feasible": o.n_feasible,
            }
            for o in others
        ],
        "looked_at": list(s.found.looked_at),
        "unread": [{"address": u.address, "why": u.why} for u in s.found.unread],
        "provenance": {"coefficients": s.coefficients, "calibrated": bool(s.calibration)},
        "warnings": [*s.notes, *s.found.warnings],
    }


def _wishes(s: Selection) -> dict[str, Any]:
    w = s.wishes
    return {
        "n_prompt": w.n_prompt,
        "at_depth": w.at_depth,
        "n_context": w.context,
        "type_k": w.type_k,
        "type_v": w.type_v,
        "workload": None if w.preset is None else _preset(s),
        "min_decode": w.min_decode,
        "max_ttft_s": w.max_ttft_s,
        "max_turn_s": w.max_turn_s,
        "largest_loss": w.largest_loss,
        "licences": list(w.licences),
    }


def _published(row: Row) -> dict[str, Any]:
    return {
        "ppl_ratio": _figure(row.loss.ppl_ratio),
        "kld_mean": _figure(row.loss.kld_mean),
        "same_top_pct": _figure(row.loss.same_top_pct),
    }


def _preset(s: Selection) -> Mapping[str, Any]:
    p = s.wishes.preset
    if p is None:
        return {}
    return {
        "name": p.name,
        "profile": p.profile,
        "first_input": p.first_input,
        "turn_input": p.turn_input,
        "output": p.output,
        "turns": p.turns,
        "context_at_end": p.context_at_end,
        "reuse": p.reuse,
        "n_requests": p.n_requests,
        "licence": p.licence,
        "sources": list(p.sources),
        "doubts": list(p.doubts),
    }
