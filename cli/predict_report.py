"""How predictions are shown: a screen for one model, a comparison for several."""

from collections.abc import Sequence
from typing import Any

from tokcast.cli.hosts import describe
from tokcast.cli.predict import Answer, Fit
from tokcast.cli.render import Report, Table, count, params, plain, rate, size
from tokcast.predictor.prediction import ComponentTime, Prediction

_BOUND = {
    "memory": "memory bandwidth",
    "compute": "arithmetic",
    "overhead": "launch overhead",
}


def label(p: Prediction, n_gen: int) -> str:
    """Return llama-bench's name of a test."""
    if p.phase == "prefill":
        depth = p.n_depth
        name = f"pp{p.n_prompt}"
    else:
        depth = p.n_depth - n_gen // 2
        name = f"tg{n_gen}"
    return f"{name} @ d{depth}" if depth else name


def _range(p: Prediction) -> str:
    return f"{rate(p.low)} - {rate(p.high)}"


def _first(a: Answer, phase: str) -> Prediction | None:
    return next((p for p in a.predictions if p.phase == phase), None)


def _speeds(a: Answer) -> str:
    decode, prefill = _first(a, "decode"), _first(a, "prefill")
    parts = []
    if decode:
        parts.append(f"{rate(decode.tok_per_s)} tok/s generating ({_range(decode)})")
    if prefill:
        parts.append(f"{rate(prefill.tok_per_s)} reading ({_range(prefill)})")
    return ", ".join(parts) or "nothing asked for"


def fit_text(fit: Fit) -> str:
    """Return in words whether the model fits, and up to which context."""
    need = f"{size(fit.need_bytes)} at a context of {count(fit.n_context)}"
    if fit.available_bytes is None:
        return f"Needs {need}; this host's memory is not known (--memory)"
    there = size(fit.available_bytes)
    if fit.fits:
        most = f"; largest context {count(fit.largest_context)}" if fit.largest_context else ""
        return f"Fits: {need}, {there} usable{most}"
    most = f"; a context of {count(fit.largest_context)} would" if fit.largest_context else ""
    return f"Does not fit: {need}, {there} usable{most}"


def _device(a: Answer) -> str:
    n = f"{a.host.n_devices}x " if a.host.n_devices > 1 else ""
    return f"{n}{a.host.name}"


def _title(a: Answer) -> str:
    return (
        f"{plain(a.spec.name)} {a.spec.file_type} on {_device(a)}"
        f" ({a.run.runtime}, {a.run.backend})"
    )


def _table(a: Answer) -> Table:
    percent = f"{100 * a.predictions[0].level:.0f} %" if a.predictions else ""
    rows = tuple(
        (label(p, a.n_gen), rate(p.tok_per_s), _range(p), _BOUND[p.bound]) for p in a.predictions
    )
    interval = f"{percent} interval"
    return Table(("test", "tok/s", interval, "bound by"), rows, frozenset({"tok/s", interval}))


def _memory_table(fit: Fit) -> Table:
    use = fit.use
    parts = (
        ("weights", use.weights_bytes),
        ("K/V cache", use.kv_bytes),
        ("recurrent state", use.recurrent_bytes),
        ("compute buffers", use.compute_device_bytes + use.compute_host_bytes),
    )
    rows = tuple((name, size(n)) for name, n in parts if n)
    return Table(("memory", "size"), rows, frozenset({"size"}))


def _explained(p: Prediction, n_gen: int) -> Table:
    def row(c: ComponentTime) -> tuple[str, ...]:
        return (
            f"{c.component} {c.type}".strip(),
            f"{c.bytes / 1e6:,.1f}",
            f"{c.flops / 1e9:,.2f}",
            f"{1e3 * c.seconds:,.3f}",
            f"{100 * c.seconds / p.seconds:.1f} %",
            c.bound,
        )

    rows = [row(c) for c in sorted(p.components, key=lambda c: -c.seconds)]
    name = label(p, n_gen)
    return Table(
        (name, "MB", "Gflop", "ms", "share", "bound"),
        tuple(rows),
        frozenset({"MB", "Gflop", "ms", "share"}),
    )


def _source_note(a: Answer) -> str:
    if not a.predictions:
        return ""
    p = a.predictions[-1]
    return (
        f"Source: {a.spec.source}; coefficients {a.coefficients} fitted on"
        f" {p.n_observations:,} published {a.run.backend} configurations; evidence for this"
        f" host: {p.evidence}."
    )


def check_command(a: Answer) -> str:
    """Return the command that measures what was predicted."""
    depths = sorted({p.n_depth for p in a.predictions if p.phase == "prefill"}) or [0]
    prompts = sorted({p.n_prompt for p in a.predictions if p.phase == "prefill"}) or [0]
    if a.run.runtime == "mlx":
        return f"mlx_lm.benchmark --model MODEL -p {prompts[0]} -g {a.n_gen}"
    listed = ",".join(map(str, depths))
    return f"llama-bench -m MODEL -p {','.join(map(str, prompts))} -n {a.n_gen} -d {listed}"


def _prediction_data(p: Prediction) -> dict[str, Any]:
    return {
        "phase": p.phase,
        "n_prompt": p.n_prompt,
        "n_depth": p.n_depth,
        "tok_per_s": p.tok_per_s,
        "low": p.low,
        "high": p.high,
        "level": p.level,
        "seconds": p.seconds,
        "bound": p.bound,
        "ceiling_tok_per_s": p.ceiling_tok_per_s,
        "components": {
            f"{c.component}/{c.type}" if c.type else c.component: {
                "bytes": c.bytes,
                "flops": c.flops,
                "seconds": c.seconds,
                "bound": c.bound,
            }
            for c in p.components
        },
    }


def data(a: Answer) -> dict[str, Any]:
    """Return an answer as the documented JSON."""
    fit = a.fit
    return {
        "model": {
            "name": a.spec.name,
            "architecture": a.spec.architecture,
            "format": a.spec.format,
            "file_type": a.spec.file_type,
            "n_params": a.spec.n_params,
            "active_params": a.spec.active_params,
            "n_bytes": a.spec.n_bytes,
            "source": a.spec.source,
            "confidence": a.spec.confidence,
        },
        "host": {**describe(a.host), "runtime": a.run.runtime, "backend": a.run.backend},
        "predictions": [_prediction_data(p) for p in a.predictions],
        "memory": {
            "n_context": fit.n_context,
            "weights_bytes": fit.use.weights_bytes,
            "kv_bytes": fit.use.kv_bytes,
            "recurrent_bytes": fit.use.recurrent_bytes,
            "compute_bytes": fit.use.compute_device_bytes + fit.use.compute_host_bytes,
            "device_bytes": fit.use.device_bytes,
            "host_bytes": fit.use.host_bytes,
            "need_bytes": fit.need_bytes,
            "available_bytes": fit.available_bytes,
            "fits": fit.fits,
            "largest_context": fit.largest_context,
        },
        "provenance": {
            "coefficients": a.coefficients,
            "calibrated": False,
            "evidence": a.predictions[0].evidence if a.predictions else None,
            "n_observations": a.predictions[0].n_observations if a.predictions else 0,
        },
        "warnings": list(a.warnings),
    }


def _records(a: Answer) -> list[dict[str, Any]]:
    return [
        {
            "model": a.spec.name,
            "file_type": a.spec.file_type,
            "host": a.host.name,
            "n_devices": a.host.n_devices,
            "runtime": a.run.runtime,
            "backend": a.run.backend,
            "test": label(p, a.n_gen),
            "phase": p.phase,
            "n_prompt": p.n_prompt,
            "n_depth": p.n_depth,
            "tok_per_s": p.tok_per_s,
            "low": p.low,
            "high": p.high,
            "level": p.level,
            "bound": p.bound,
            "evidence": p.evidence,
        }
        for p in a.predictions
    ]


def _bench_row(a: Answer, p: Prediction) -> tuple[str, ...]:
    spread = (p.high - p.low) / 2
    return (
        f"{a.spec.architecture} {plain(a.spec.name)} {a.spec.file_type}",
        size(a.spec.n_bytes),
        params(a.spec.n_params),
        a.run.backend,
        "99",
        label(p, a.n_gen),
        f"{p.tok_per_s:.2f} ± {spread:.2f}",
    )


def _bench_table(answers: Sequence[Answer]) -> Table:
    columns = ("model", "size", "params", "backend", "ngl", "test", "t/s")
    rows = tuple(_bench_row(a, p) for a in answers for p in a.predictions)
    return Table(columns, rows, frozenset(columns[1:]))


def single(a: Answer, explain: bool) -> Report:
    """Return the report for one model."""
    tables = [_table(a)]
    if explain:
        tables += [_memory_table(a.fit), *(_explained(p, a.n_gen) for p in a.predictions)]
    notes = (
        *(f"Note: {plain(w)}." for w in a.warnings),
        _source_note(a),
        f"Check it: {check_command(a)}",
    )
    return Report(
        (_title(a), f"  {_speeds(a)}", f"  {fit_text(a.fit)}"),
        tuple(tables),
        tuple(n for n in notes if n),
        data(a),
        _records(a),
        _bench_table([a]),
    )


def _short_fit(fit: Fit) -> str:
    return {True: "yes", False: "no", None: "?"}[fit.fits]


def _compare_row(a: Answer) -> tuple[str, ...]:
    decode, prefill = _first(a, "decode"), _first(a, "prefill")
    return (
        f"{plain(a.spec.name)} {a.spec.file_type}",
        size(a.spec.n_bytes),
        rate(decode.tok_per_s) if decode else "-",
        _range(decode) if decode else "-",
        rate(prefill.tok_per_s) if prefill else "-",
        _short_fit(a.fit),
    )


def comparison(answers: Sequence[Answer]) -> Report:
    """Return the report for several models on one host, fastest that fits first."""

    def key(a: Answer) -> tuple[bool, float]:
        decode = _first(a, "decode") or _first(a, "prefill")
        return (a.fit.fits is False, -(decode.tok_per_s if decode else 0.0))

    ranked = sorted(answers, key=key)
    best = ranked[0]
    columns = ("model", "size", "tg tok/s", "80 % interval", "pp tok/s", "fits")
    table = Table(columns, tuple(_compare_row(a) for a in ranked), frozenset(columns[1:5]))
    warnings = dict.fromkeys(w for a in ranked for w in a.warnings)
    verdict = (
        f"Fastest that fits on {_device(best)}: {plain(best.spec.name)} {best.spec.file_type}"
        if best.fit.fits is not False
        else f"None of these {len(ranked)} models fits on {_device(best)}"
    )
    notes = (*(f"Note: {plain(w)}." for w in warnings), _source_note(best))
    return Report(
        (verdict,),
        (table,),
        notes,
        {"results": [data(a) for a in ranked]},
        [record for a in ranked for record in _records(a)],
        _bench_table(ranked),
    )
