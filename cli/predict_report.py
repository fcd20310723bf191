"""How predictions are shown: a screen for one model, a comparison for several."""

import shlex
from collections.abc import Sequence

from tokcast.cli.explain import ledger_table, memory_table
from tokcast.cli.fitting import PlacedFit
from tokcast.cli.names import short_name
from tokcast.cli.placed_report import (
    bench_flags,
    devices_table,
    machine_words,
    placement_flags,
    server_note,
)
from tokcast.cli.predict import Answer, Forecast
from tokcast.cli.predict_data import answer_data, records
from tokcast.cli.predict_energy import energy_notes, energy_table
from tokcast.cli.render import Report, Table, params, rate, size
from tokcast.predictor.prediction import Prediction

_BOUND = {
    "memory": "memory bandwidth",
    "compute": "arithmetic",
    "overhead": "launch overhead",
}
_DOING = {"decode": "generating", "prefill": "reading"}


def _range(p: Prediction) -> str:
    return f"{rate(p.low)} - {rate(p.high)}"


def _speed(f: Forecast) -> str:
    p = f.prediction
    return f"{rate(p.tok_per_s)} tok/s {_DOING[p.phase]} ({_range(p)})"


def _speeds(a: Answer) -> str:
    found = [_speed(f) for phase in _DOING if (f := a.first(phase)) is not None]
    condition = "With enough memory: " if a.fit.fits is False else ""
    depth = a.forecasts[0].n_depth
    return condition + ", ".join(found) + (f" at depth {depth}" if depth else "")


def _model(a: Answer) -> str:
    return f"{short_name(a.spec.name)} {a.spec.file_type}".strip()


def _device(a: Answer) -> str:
    if a.placement is not None:
        return machine_words(a.placement.devices)
    n = f"{a.host.n_devices}x " if a.host.n_devices > 1 else ""
    return f"{n}{a.host.name}"


def _verdict(a: Answer) -> tuple[str, ...]:
    title = f"{_model(a)} on {_device(a)} ({a.run.runtime}, {a.run.backend})"
    lines = (f"  {_speeds(a)}", f"  {a.fit}")
    return (title, *(lines if a.fit.fits is not False else lines[::-1]))


def _range_title(a: Answer) -> str:
    return f"{100 * a.forecasts[0].prediction.level:.0f} % range"


def _table(a: Answer) -> Table:
    rows = tuple(
        (f.label, rate(p.tok_per_s), _range(p), _BOUND[p.bound])
        for f in a.forecasts
        for p in (f.prediction,)
    )
    return Table(
        ("test", "tok/s", _range_title(a), "bound by"), rows, frozenset({"tok/s", _range_title(a)})
    )


def _source_notes(a: Answer) -> tuple[str, ...]:
    n = max(f.prediction.n_observations for f in a.forecasts)
    if a.is_calibrated:
        return (
            f"Read from {a.spec.source}.",
            f"Evidence: calibrated on this machine ({a.calibration}); coefficients"
            f" {a.coefficients}.",
        )
    return (
        f"Read from {a.spec.source}.",
        f"Evidence: {a.evidence}; coefficients {a.coefficients} fitted on {n:,} published"
        f" {a.run.backend} configurations.",
    )


def _server(a: Answer) -> tuple[str, ...]:
    decode = a.first("decode")
    if a.placement is None or decode is None:
        return ()
    return server_note(decode.prediction)


def _commands(a: Answer) -> str:
    check = f"Check it: {check_command(a)}"
    if a.placement is None or not a.placement.flags:
        return check
    return f"Run it: llama-server -m MODEL {placement_flags(a.placement, a.fit.n_context)}\n{check}"


def _noted(warnings: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"Note: {w.rstrip('.')}." for w in warnings)


def _listed(numbers: Sequence[int]) -> str:
    return ",".join(map(str, dict.fromkeys(numbers))) or "0"


def check_command(a: Answer) -> str:
    """Return the command that measures what was predicted."""
    asked = a.asked
    is_file = a.spec.source.endswith(".gguf") and "://" not in a.spec.source
    model = shlex.quote(a.spec.source) if is_file else "MODEL"
    if a.run.runtime == "mlx":
        n_prompt, n_gen = (asked.n_prompts or (0,))[0], (asked.n_gens or (0,))[0]
        return f"mlx_lm.benchmark --model MODEL -p {n_prompt} -g {n_gen}"
    words = [f"llama-bench -m {model} -p {_listed(asked.n_prompts)} -n {_listed(asked.n_gens)}"]
    words.append(f"-d {_listed([f.n_depth for f in a.forecasts])}")
    if asked.n_ubatch != 512:
        words.append(f"-ub {asked.n_ubatch}")
    for flag, kind in (("-ctk", asked.type_k), ("-ctv", asked.type_v)):
        if kind != "F16":
            words.append(f"{flag} {kind.lower()}")
    if not asked.flash_attention:
        words.append("-fa 0")
    if a.placement is not None and a.placement.flags:
        words.append(bench_flags(a.placement))
    return " ".join(words)


def _bench_table(answers: Sequence[Answer]) -> Table:
    columns = ("model", "size", "params", "backend", "ngl", "test", "t/s")
    rows = tuple(
        (
            _model(a),
            size(a.spec.n_bytes),
            params(a.spec.n_params),
            a.run.backend,
            str(a.placement.n_gpu_layers) if a.placement else "99",
            f.label,
            f"{f.prediction.tok_per_s:.2f} ± {(f.prediction.high - f.prediction.low) / 2:.2f}",
        )
        for a in answers
        for f in a.forecasts
    )
    return Table(columns, rows, frozenset(columns[1:]))


def single(a: Answer, explain: bool) -> Report:
    """Return the report for one model."""
    if a.tasks is not None:
        from tokcast.cli.tasks_report import task_report

        return task_report(a, a.tasks, _verdict(a)[0], (*_noted(a.warnings), *_source_notes(a)))
    tables = [_table(a)]
    if a.energy is not None and a.energy.energies:
        tables.append(energy_table(a.forecasts, a.energy))
    if a.placement is not None and isinstance(a.fit, PlacedFit):
        tables.append(devices_table(a.placement, a.fit))
    elif explain and not isinstance(a.fit, PlacedFit):
        tables.append(memory_table(a.fit))
    if explain:
        tables += [*(ledger_table(f, f.label) for f in a.forecasts)]
    return Report(
        verdict=_verdict(a),
        tables=tuple(tables),
        notes=(*_energy_notes(a), *_noted((*a.warnings, *_server(a))), *_source_notes(a)),
        data=answer_data(a),
        records=records(a),
        markdown=_bench_table([a]),
        command=_commands(a),
    )


def _energy_notes(a: Answer) -> tuple[str, ...]:
    return () if a.energy is None else energy_notes(a.forecasts, a.energy)


def _joules(a: Answer) -> str:
    """Return joules a token of the first generation, or of the first test."""
    if a.energy is None or not a.energy.energies:
        return "-"
    first = a.first("decode") or a.forecasts[0]
    return f"{a.energy.energies[a.forecasts.index(first)].joules_per_token:.3g}"


def _best_first(a: Answer) -> tuple[bool, float]:
    f = a.first("decode") or a.forecasts[0]
    return (a.fit.fits is False, -f.prediction.tok_per_s)


def _deepest(a: Answer) -> Forecast | None:
    """Return generation at the greatest depth, where there are several."""
    found = [f for f in a.forecasts if f.prediction.phase == "decode"]
    deepest = max(found, key=lambda f: f.n_depth, default=None)
    return deepest if deepest is not None and deepest.n_depth > found[0].n_depth else None


def _rate_of(f: Forecast | None) -> str:
    return rate(f.prediction.tok_per_s) if f is not None else "-"


def _compared(ranked: Sequence[Answer]) -> Table:
    """Return a line a model: size, speeds at the first depth, generation at the deepest."""
    deep = {f.n_depth for a in ranked if (f := _deepest(a)) is not None}
    decode, prefill = ranked[0].first("decode"), ranked[0].first("prefill")
    columns = {"model": [_model(a) for a in ranked], "size": [size(a.spec.n_bytes) for a in ranked]}
    if decode is not None:
        columns[decode.label] = [_rate_of(a.first("decode")) for a in ranked]
        columns[_range_title(ranked[0])] = [_range_of(a) for a in ranked]
    if deep:
        columns["deep" if len(deep) > 1 else f"@ d{max(deep)}"] = [
            _rate_of(_deepest(a)) for a in ranked
        ]
    if prefill is not None:
        columns[prefill.label] = [_rate_of(a.first("prefill")) for a in ranked]
    if any(a.energy is not None for a in ranked):
        columns["J/token"] = [_joules(a) for a in ranked]
    if len({a.run for a in ranked}) > 1:
        columns["backend"] = [a.run.backend for a in ranked]
    right = frozenset(columns) - {"model", "backend"}
    columns["fits"] = [{True: "yes", False: "no", None: "?"}[a.fit.fits] for a in ranked]
    return Table(tuple(columns), tuple(zip(*columns.values(), strict=True)), right)


def _range_of(a: Answer) -> str:
    decode = a.first("decode")
    return _range(decode.prediction) if decode is not None else "-"


def _best(ranked: Sequence[Answer]) -> str:
    best, device = ranked[0], _device(ranked[0])
    if best.fit.fits is False:
        return f"None of these {len(ranked)} models fits on {device}"
    which = "Fastest that fits" if best.fit.fits else "Fastest"
    f = best.first("decode") or best.forecasts[0]
    return f"{which} on {device}: {_model(best)}, {_speed(f)}"


def comparison(answers: Sequence[Answer], explain: bool) -> Report:
    """Return the report for several models on one host, fastest that fits first."""
    timed = [(a, a.tasks) for a in answers if a.tasks is not None]
    if timed:
        from tokcast.cli.tasks_report import task_comparison

        return task_comparison(timed, _source_notes(timed[0][0])[1:])
    ranked = sorted(answers, key=_best_first)
    tables = [_compared(ranked)]
    if explain:
        tables += [ledger_table(f, f"{f.label}, {_model(a)}") for a in ranked for f in a.forecasts]
    warnings = [
        w if w in a.asked.host_notes else f"{_model(a)}: {w}" for a in ranked for w in a.warnings
    ]
    return Report(
        (_best(ranked),),
        tuple(tables),
        (
            *_energy_notes(ranked[0])[-1:],
            *_noted(tuple(dict.fromkeys(warnings))),
            *_source_notes(ranked[0])[1:],
        ),
        {"results": [answer_data(a) for a in ranked]},
        [record for a in ranked for record in records(a)],
        _bench_table(ranked),
    )
