"""`tokcast energy sweep`: training steps timed on this machine, a row each, to be gone on with."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tokcast.cli.measuring import default_threads, detected
from tokcast.cli.options import one_count
from tokcast.cli.progress import Progress, bar, say
from tokcast.cli.render import Report, Table, check_format, render
from tokcast.hosts.quantity import parse_seconds
from tokcast.measurements.lock import exclusive
from tokcast.measurements.store import open_store
from tokcast.measurements.train_sweep import Conditions, left, plan, sweep
from tokcast.measurements.training_runs import TrainRun
from tokcast.predictor.errors import InputError
from tokcast.predictor.training.work import flops

MOST_POINTS = 2000


def run(to: str, points: str, budget: str, threads: str | None, output: str) -> int:
    """Take what a CSV lacks of a sweep, within the budget; exit code 1 while more is left."""
    check_format(output)
    path = Path(to)
    if not path.absolute().parent.is_dir():
        raise InputError(f"--to {to!r}: its folder is missing; expected a place to write to")
    n_points = one_count(points, "--points")
    if n_points > MOST_POINTS:
        raise InputError(f"--points {n_points}: expected 1 to {MOST_POINTS}")
    conditions = Conditions(
        host=detected("CPU"),
        n_threads=1 if threads is None else default_threads(threads),
        budget_s=parse_seconds(budget),
    )
    planned = plan(n_points)
    todo = left(planned, path)
    taken: list[TrainRun] = []
    with Progress() as progress, exclusive(open_store().path.parent, say):

        def tell(row: TrainRun) -> None:
            taken.append(row)
            done = len(planned) - len(todo) + len(taken)
            progress(f"{bar(done, len(planned))} {row.point.shape.name}")

        if todo:
            sweep(todo, path, conditions, tell)
    n_left = len(todo) - len(taken)
    print(render(_report(path, taken, n_left, conditions), output))
    return 0 if n_left == 0 else 1


def _report(path: Path, taken: Sequence[TrainRun], n_left: int, where: Conditions) -> Report:
    columns = ("model", "length", "batch", "processes", "a step", "spread", "Gflop/s")
    rows = tuple(
        (
            r.point.shape.name,
            str(r.point.n_length),
            str(r.point.n_batch),
            "1" if r.point.n_devices == 1 else f"{r.point.n_devices} {r.point.strategy}",
            f"{r.seconds * 1e3:,.0f} ms",
            f"{100 * (r.slowest - r.fastest) / r.seconds:.0f} %",
            f"{flops(r.point.shape, r.point.step) / r.seconds / 1e9:,.0f}",
        )
        for r in taken
    )
    verdict = (
        f"{len(taken)} points taken on {where.host.name}, {where.n_threads} thread(s) a process;"
        f" {n_left} left",
    )
    notes = (
        f"Rows are in {path}; the same command goes on behind them.",
        "Time is measured. No meter: joules come from watts that are stated when predicting.",
    )
    records = [
        {**(row := asdict(r)).pop("point"), **{k: v for k, v in row.items() if k != "point"}}
        for r in taken
    ]
    data = {"taken": records, "left": n_left, "file": str(path)}
    table = Table(columns, rows, frozenset(columns[1:3] + columns[4:]))
    return Report(verdict, (table,) if rows else (), notes, data, records)
