"""How the predictions for several models on one host are compared."""

from collections.abc import Sequence

from tokcast.cli.explain import ledger_table
from tokcast.cli.predict_answer import Answer, Forecast
from tokcast.cli.predict_bench import bench_table
from tokcast.cli.predict_data import answer_data, records
from tokcast.cli.predict_words import (
    device_text,
    energy_notes_of,
    model_text,
    noted,
    range_text,
    range_title,
    source_notes,
    speed_text,
)
from tokcast.cli.render import Report, Table, rate, size


def comparison(answers: Sequence[Answer], explain: bool) -> Report:
    """Return the report for several models on one host, fastest that fits first."""
    timed = [(a, a.tasks) for a in answers if a.tasks is not None]
    if timed:
        from tokcast.cli.tasks_report import task_comparison

        return task_comparison(timed, source_notes(timed[0][0])[1:])
    ranked = sorted(answers, key=_best_first)
    tables = [_compared(ranked)]
    if explain:
        tables += [
            ledger_table(f, f"{f.label}, {model_text(a)}") for a in ranked for f in a.forecasts
        ]
    warnings = [
        w if w in a.asked.host_notes else f"{model_text(a)}: {w}"
        for a in ranked
        for w in a.warnings
    ]
    return Report(
        (_best(ranked),),
        tuple(tables),
        (
            *energy_notes_of(ranked[0])[-1:],
            *noted(tuple(dict.fromkeys(warnings))),
            *source_notes(ranked[0])[1:],
        ),
        {"results": [answer_data(a) for a in ranked]},
        [record for a in ranked for record in records(a)],
        bench_table(ranked),
    )


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
    columns = {
        "model": [model_text(a) for a in ranked],
        "size": [size(a.spec.n_bytes) for a in ranked],
    }
    if decode is not None:
        columns[decode.label] = [_rate_of(a.first("decode")) for a in ranked]
        columns[range_title(ranked[0])] = [_range_of(a) for a in ranked]
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
    return range_text(decode.prediction) if decode is not None else "-"


def _best(ranked: Sequence[Answer]) -> str:
    best, device = ranked[0], device_text(ranked[0])
    if best.fit.fits is False:
        return f"None of these {len(ranked)} models fits on {device}"
    which = "Fastest that fits" if best.fit.fits else "Fastest"
    f = best.first("decode") or best.forecasts[0]
    return f"{which} on {device}: {model_text(best)}, {speed_text(f)}"
