"""How forecasts of tasks are shown, and the same as data."""

from collections.abc import Sequence
from typing import Any

from tokcast.cli.names import short_name
from tokcast.cli.predict_answer import Answer
from tokcast.cli.predict_data import answer_data
from tokcast.cli.render import Report, Table, count, duration, rate
from tokcast.cli.tasks import Ranged, TaskForecast
from tokcast.predictor.agents.operating import Point

_WALLS = {
    "": "",
    "memory": "memory",
    "saturation": "saturated",
    "patience": "under 10 tok/s each",
}


def _share(value: float) -> str:
    return f"{100 * value:.0f} %"


def _speed(t: TaskForecast) -> str:
    turn, task = t.turn.seconds, t.task.seconds
    return (
        f"{t.load.name}: {duration(turn.p50)} a turn (90 % within {duration(turn.p90)}),"
        f" {duration(task.p50)} a task (90 % within {duration(task.p90)})"
    )


def wall_text(t: TaskForecast) -> str:
    """Return where tasks outgrow the context."""
    where = f"the context of {count(t.n_context)} {t.context_wall}"
    if t.cut_turn is None:
        return f"Every task fits {where}"
    n_never = sum(not x.turns for x in t.timed) / len(t.timed)
    never = f"{_share(n_never)} in their first prompt, " if n_never else ""
    return (
        f"{_share(t.cut_share)} of the tasks outgrow {where} ({never}half of them by turn"
        f" {t.cut_turn:.0f}) and end there"
    )


def saturation_text(t: TaskForecast) -> str:
    """Return the first wall as more tasks run at once."""
    if not t.points:
        return f"Memory holds not one task of {count(t.task_context)} tokens, which 9 of 10 need"
    first = next((p for p in t.points if p.wall), t.points[-1])
    best = max(t.points, key=lambda p: p.tasks_per_hour)
    walls = {
        "memory": f"memory is full at {first.n_tasks} at once",
        "saturation": f"{first.n_tasks} at once gets hardly more done than half as many",
        "patience": f"{first.n_tasks} at once write under 10 tok/s each",
        "": f"no wall up to {first.n_tasks} at once",
    }
    return f"First wall: {walls[first.wall]}; at most {rate(best.tasks_per_hour)} tasks an hour"


def _time_table(t: TaskForecast) -> Table:
    def row(name: str, r: Ranged) -> tuple[str, ...]:
        s = r.seconds
        return (name, duration(s.p50), f"{duration(r.low)} - {duration(r.high)}", duration(s.p90))

    rows = [
        row("first token", t.first_token),
        row("first token, nothing reused", t.unreused),
        row("turn", t.turn),
        row("task", t.task),
        row("task, nothing reused", t.unreused_task),
    ]
    if t.waiting is not None:
        w = t.waiting
        rows.append(("task with tools' and people's time", duration(w.p50), "", duration(w.p90)))
    columns = ("one task at a time", "median", "80 % range", "p90")
    return Table(columns, tuple(rows), frozenset(columns[1:]))


def _point_table(points: Sequence[Point]) -> Table:
    columns = ("at once", "tok/s", "each", "turn", "p90", "tasks/h", "reading", "wall")
    rows = tuple(
        (
            str(p.n_tasks),
            rate(p.tok_per_s),
            rate(p.tok_per_s_each),
            duration(p.turn.p50),
            duration(p.turn.p90),
            rate(p.tasks_per_hour),
            _share(p.reading_share),
            _WALLS[p.wall],
        )
        for p in points
    )
    return Table(columns, rows, frozenset(columns[:-1]))


def _notes(a: Answer, t: TaskForecast) -> tuple[str, ...]:
    found = [f"{t.load.origin}; {t.n_turns:,} turns fit."]
    found += [f"Note: {note}." for note in t.load.notes]
    if t.points:
        found.append(
            f"at once: tasks always busy, each with a context of {count(t.task_context)}, which 9"
            " of 10 need; each: a task's tokens/s while no prompt is read."
        )
        found.append("Passes shared by several tasks are derived, not fitted: see docs/agents.md.")
    return tuple(found)


def task_report(a: Answer, t: TaskForecast, title: str, notes: Sequence[str]) -> Report:
    """Return the report for one model."""
    tables = [_time_table(t)]
    if t.points:
        tables.append(_point_table(t.points))
    condition = "With enough memory, " if a.fit.fits is False else ""
    return Report(
        verdict=(
            title,
            f"  {condition}{_speed(t)}",
            f"  {wall_text(t)}",
            f"  {saturation_text(t)}",
        ),
        tables=tuple(tables),
        notes=(*_notes(a, t), *notes),
        data={**answer_data(a), "workload": task_data(t)},
        records=task_records(a, t),
    )


def task_comparison(answers: Sequence[tuple[Answer, TaskForecast]], notes: Sequence[str]) -> Report:
    """Return the report for several models, the quickest task that fits first."""
    ranked = sorted(
        answers, key=lambda x: (x[0].fit.fits is False, x[1].cut_share, x[1].task.seconds.p50)
    )
    columns = ("model", "turn", "p90", "task", "first token", "outgrow", "context", "tasks/h")
    rows = tuple(
        (
            f"{short_name(a.spec.name)} {a.spec.file_type}".strip(),
            duration(t.turn.seconds.p50),
            duration(t.turn.seconds.p90),
            duration(t.task.seconds.p50),
            duration(t.first_token.seconds.p50),
            _share(t.cut_share),
            count(t.n_context),
            rate(max((p.tasks_per_hour for p in t.points), default=0.0)),
        )
        for a, t in ranked
    )
    a, t = ranked[0]
    return Report(
        verdict=(f"Fewest tasks cut, then quickest: {rows[0][0]}, {_speed(t)}",),
        tables=(Table(columns, rows, frozenset(columns[1:])),),
        notes=(*_notes(a, t)[:1], *notes),
        data={"results": [{**answer_data(a), "workload": task_data(t)} for a, t in ranked]},
        records=[row for a, t in ranked for row in task_records(a, t)],
    )


def _ranged(r: Ranged) -> dict[str, float]:
    s = r.seconds
    return {"p50": s.p50, "p90": s.p90, "mean": s.mean, "p50_low": r.low, "p50_high": r.high}


def task_data(t: TaskForecast) -> dict[str, Any]:
    """Return a forecast as JSON values, in seconds."""
    return {
        "name": t.load.name,
        "origin": t.load.origin,
        "seed": t.load.seed,
        "n_tasks": len(t.timed),
        "n_turns": t.n_turns,
        "n_context": t.n_context,
        "context_wall": t.context_wall,
        "cut_share": t.cut_share,
        "cut_turn": t.cut_turn,
        "first_token_seconds": _ranged(t.first_token),
        "first_token_unreused_seconds": _ranged(t.unreused),
        "turn_seconds": _ranged(t.turn),
        "task_seconds": _ranged(t.task),
        "task_unreused_seconds": _ranged(t.unreused_task),
        "task_with_waits_p50_seconds": None if t.waiting is None else t.waiting.p50,
        "n_fitting": t.n_fitting,
        "task_context": t.task_context,
        "points": [_point(p) for p in t.points],
        "notes": list(t.load.notes),
    }


def _point(p: Point) -> dict[str, Any]:
    return {
        "n_tasks": p.n_tasks,
        "tok_per_s": p.tok_per_s,
        "tok_per_s_each": p.tok_per_s_each,
        "turn_p50_seconds": p.turn.p50,
        "turn_p90_seconds": p.turn.p90,
        "tasks_per_hour": p.tasks_per_hour,
        "reading_share": p.reading_share,
        "wall": p.wall,
    }


def task_records(a: Answer, t: TaskForecast) -> list[dict[str, Any]]:
    """Return a flat row for each number of tasks at once."""
    head = {
        "model": a.spec.name,
        "file_type": a.spec.file_type,
        "host": a.host.name,
        "workload": t.load.name,
        "n_context": t.n_context,
        "cut_share": t.cut_share,
        "first_token_p50_seconds": t.first_token.seconds.p50,
        "first_token_unreused_p50_seconds": t.unreused.seconds.p50,
        "task_p50_seconds": t.task.seconds.p50,
        "task_p90_seconds": t.task.seconds.p90,
    }
    return [{**head, **_point(p)} for p in t.points] or [head]
