"""How the prediction for one model is shown: a screen, verdict first."""

from collections.abc import Iterator

from tokcast.cli.explain import ledger_table, memory_table
from tokcast.cli.fitting import Fit
from tokcast.cli.placed_report import devices_table, placement_flags, server_note
from tokcast.cli.predict_answer import Answer
from tokcast.cli.predict_bench import bench_table, check_command
from tokcast.cli.predict_data import answer_data, records
from tokcast.cli.predict_words import (
    DOING,
    device_text,
    energy_notes_of,
    model_text,
    noted,
    range_text,
    range_title,
    source_notes,
    speed_text,
)
from tokcast.cli.render import Report, Table, rate

_BOUND = {
    "memory": "memory bandwidth",
    "compute": "arithmetic",
    "overhead": "launch overhead",
}


def single(a: Answer, explain: bool) -> Report:
    """Return the report for one model."""
    if a.tasks is not None:
        from tokcast.cli.tasks_report import task_report

        notes = (*energy_notes_of(a), *noted(a.warnings), *source_notes(a))
        return task_report(a, a.tasks, _verdict(a)[0], notes)
    return Report(
        verdict=_verdict(a),
        tables=tuple(_tables(a, explain)),
        notes=(*energy_notes_of(a), *noted((*a.warnings, *_server(a))), *source_notes(a)),
        data=answer_data(a),
        records=records(a),
        markdown=bench_table([a]),
        command=_commands(a),
    )


def _speeds(a: Answer) -> str:
    found = [speed_text(f) for phase in DOING if (f := a.first(phase)) is not None]
    condition = "With enough memory: " if a.fit.fits is False else ""
    depth = a.forecasts[0].n_depth
    return condition + ", ".join(found) + (f" at depth {depth}" if depth else "")


def _verdict(a: Answer) -> tuple[str, ...]:
    title = f"{model_text(a)} on {device_text(a)} ({a.run.runtime}, {a.run.backend})"
    lines = (f"  {_speeds(a)}", f"  {a.fit}")
    return (title, *(lines if a.fit.fits is not False else lines[::-1]))


def _table(a: Answer) -> Table:
    rows = tuple(
        (f.label, rate(p.tok_per_s), range_text(p), _BOUND[p.bound])
        for f in a.forecasts
        for p in (f.prediction,)
    )
    return Table(
        ("test", "tok/s", range_title(a), "bound by"), rows, frozenset({"tok/s", range_title(a)})
    )


def _tables(a: Answer, explain: bool) -> Iterator[Table]:
    yield _table(a)
    if a.energy is not None and a.energy.energies:
        from tokcast.cli.predict_energy import energy_table

        yield energy_table(a.forecasts, a.energy)
    if a.placement is not None and not isinstance(a.fit, Fit):
        yield devices_table(a.placement, a.fit)
    elif explain and isinstance(a.fit, Fit):
        yield memory_table(a.fit)
    if explain:
        yield from (ledger_table(f, f.label) for f in a.forecasts)


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
