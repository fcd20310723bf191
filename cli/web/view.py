"""All that a page shows of one pair, as data."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tokcast.cli.charts.depth import Curve, draw_depth
from tokcast.cli.charts.roofline import Point, Roofline, draw_roofline
from tokcast.cli.charts.theme import theme_of
from tokcast.cli.fitting import Fit
from tokcast.cli.names import short_name
from tokcast.cli.predict_answer import Answer
from tokcast.cli.predict_bench import check_command
from tokcast.cli.predict_data import answer_data
from tokcast.cli.scene import (
    Scene,
    roofline_of,
    side_of,
)
from tokcast.cli.web.engine import Engine
from tokcast.cli.web.schemas import CompareIn, Look, Pair, PredictIn
from tokcast.cli.web.words import explain
from tokcast.predictor.placement.memory import DeviceMemory
from tokcast.predictor.prediction import Prediction


@dataclass(frozen=True, slots=True)
class View:
    """One pair, worked out."""

    answer: Answer
    scene: Scene
    decode: Curve
    prefill: Curve
    roofline: Roofline


def view_of(engine: Engine, pair: Pair, body: CompareIn) -> View:
    """Return a pair worked out under the conditions of a body."""
    setting = body.setting()
    asked = PredictIn(
        **pair.model_dump(),
        n_prompt=(body.n_prompt,),
        n_gen=(body.n_gen,),
        n_depth=(body.n_depth,),
        **body.model_dump(include={"n_ubatch", "type_k", "type_v", "flash_attention"}),
        n_context=body.n_context,
        **_costs(engine, pair, body),
    )
    answer = engine.answer(asked)
    scene = engine.scene(pair, setting)
    decode, prefill = engine.curves(pair, scene)
    predictions = [f.prediction for f in answer.forecasts]
    return View(answer, scene, decode, prefill, roofline_of(scene, predictions))


def _costs(engine: Engine, pair: Pair, body: CompareIn) -> dict[str, Any]:
    """Return what of energy is asked of a pair: all of one device, nothing of several."""
    if engine.host(pair)[0].n_devices > 1:
        return {}
    return {"energy": True, "price_per_kwh": body.price_per_kwh, "grid": body.grid}


def view_data(v: View) -> dict[str, Any]:
    """Return a view as JSON data."""
    ends = (v.decode.tok_per_s[0], v.decode.tok_per_s[-1], v.decode.depths[-1])
    spec = v.scene.spec
    return {
        "label": v.scene.label,
        "name": f"{short_name(spec.name)} {spec.file_type}".strip(),
        "prediction": answer_data(v.answer),
        "fit": str(v.answer.fit),
        "explanation": explain(v.answer, v.scene, v.answer.forecasts, ends),
        "depth": {"decode": curve_data(v.decode), "prefill": curve_data(v.prefill)},
        "roofline": roofline_data(v.roofline),
        "devices": devices(v),
        "ledger": [_ledger(f.prediction) for f in v.answer.forecasts],
        "sources": sources(v),
        "context_length": spec.context_length,
        "check": check_command(v.answer),
    }


def curve_data(c: Curve) -> dict[str, Any]:
    """Return a curve as JSON data."""
    return {
        "n_depth": list(c.depths),
        "tok_per_s": list(c.tok_per_s),
        "low": list(c.low),
        "high": list(c.high),
        "measured": [
            {"n_depth": d, "tok_per_s": rate, "source": source} for d, rate, source in c.measured
        ],
    }


def roofline_data(r: Roofline) -> dict[str, Any]:
    """Return a roofline as JSON data; `bound` is "" where a point is too near the ridge."""
    return {
        "label": r.label,
        "slopes": [{"label": s.label, "bytes_per_s": s.bytes_per_s} for s in r.slopes],
        "ceilings": [{"label": c.label, "flops_per_s": c.flops_per_s} for c in r.ceilings],
        "ridge_flops_per_byte": r.ridge,
        "points": [_point(p, r) for p in r.points],
    }


def _point(p: Point, r: Roofline) -> dict[str, Any]:
    return {
        "label": p.label,
        "phase": p.phase,
        "kind": p.kind,
        "flops": p.flops,
        "bytes": p.bytes,
        "seconds": p.seconds,
        "flops_per_byte": p.intensity,
        "flops_per_s": p.flops_per_s,
        "bound": side_of(p, r),
    }


def _ledger(p: Prediction) -> dict[str, Any]:
    rows = [
        {
            "component": c.component,
            "type": c.type,
            "bytes": c.bytes,
            "flops": c.flops,
            "seconds": c.seconds,
            "bound": c.bound,
        }
        for c in sorted(p.components, key=lambda c: -c.seconds)
    ]
    return {"phase": p.phase, "seconds": p.seconds, "rows": rows}


def devices(v: View) -> list[dict[str, Any]]:
    """Return what each memory holds: every device's own, or the one they share."""
    fit = v.answer.fit
    if not isinstance(fit, Fit):
        return [_of_device(held) for held in fit.devices]
    use = fit.use
    caches = [("K/V cache", use.kv_bytes), ("recurrent state", use.recurrent_bytes)]
    if fit.is_unified:
        compute = use.compute_device_bytes + use.compute_host_bytes
        parts = [("weights", use.weights_bytes), *caches, ("buffers", compute)]
        return [_device("shared memory", parts, fit.available_bytes)]
    on_card = [("weights", use.weights_device_bytes), *caches]
    own = _device("card", [*on_card, ("buffers", use.compute_device_bytes)], fit.available_bytes)
    beside = [("weights", use.weights_host_bytes), ("buffers", use.compute_host_bytes)]
    return [own, _device("main memory", beside, None)]


def _of_device(held: DeviceMemory) -> dict[str, Any]:
    parts = [
        ("weights", held.weights_bytes),
        ("K/V cache", held.kv_bytes),
        ("recurrent state", held.recurrent_bytes),
        ("buffers", held.compute_bytes),
    ]
    name = "main memory" if held.device.kind == "cpu" else held.device.name
    return _device(name, parts, held.device.memory_bytes)


def _device(
    name: str, parts: list[tuple[str, float]], available_bytes: float | None
) -> dict[str, Any]:
    return {
        "name": name,
        "parts": [{"name": part, "bytes": n} for part, n in parts if n],
        "need_bytes": sum(n for _, n in parts),
        "available_bytes": available_bytes,
    }


def sources(v: View) -> list[dict[str, str]]:
    """Return what each number of the host was published in."""
    host = v.scene.host
    return [
        {"field": field, "value": f"{getattr(host, field)}", "source": text}
        for field, text in host.source.items()
        if getattr(host, field, None) not in (None, ())
    ]


def figures(
    views: Sequence[View], depth: int, look: Look, is_alone: bool = False
) -> dict[str, str]:
    """Return the drawings of up to four pairs, as SVG; alone, each has its title and a key."""
    theme, width = theme_of(look.theme), float(look.width)
    tall = 300.0 if width > 460 else 240.0
    return {
        "decode": draw_depth(
            [v.decode for v in views],
            "Generating, as the context fills",
            at_depth=depth,
            width=width,
            height=tall,
            theme=theme,
            is_alone=is_alone,
        ),
        "prefill": draw_depth(
            [v.prefill for v in views],
            "Reading, as the context fills",
            at_depth=depth,
            width=width,
            height=tall,
            theme=theme,
            is_alone=is_alone,
        ),
        "roofline": draw_roofline(
            [v.roofline for v in views],
            "Roofline",
            width=width,
            height=min(500.0, max(320.0, 0.6 * width)),
            theme=theme,
            is_alone=is_alone,
        ),
    }


def compare(engine: Engine, body: CompareIn) -> dict[str, Any]:
    """Return every pair's view, with drawings where they are asked for."""
    views = [view_of(engine, pair, body) for pair in body.pairs]
    data: dict[str, Any] = {"results": [view_data(v) for v in views]}
    if body.look is not None:
        data["figures"] = figures(views, body.n_depth, body.look)
    return data
