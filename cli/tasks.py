"""`tokcast predict --workload` and `--trace`: how long a model takes over whole tasks."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tokcast.cli.fitting import Fit
from tokcast.cli.options import one_count
from tokcast.measurements.traces.read import read_trace
from tokcast.predictor.agents.operating import Point, operating_points
from tokcast.predictor.agents.profile import profile
from tokcast.predictor.agents.simulate import Middle, TimedTask, middle, simulate
from tokcast.predictor.agents.task import Task
from tokcast.predictor.batch_step import batch_step
from tokcast.predictor.coefficients import Coefficients
from tokcast.predictor.curve import decode_curve
from tokcast.predictor.errors import InputError
from tokcast.predictor.memory import LONGEST, Setting, memory
from tokcast.predictor.prefill_curve import prefill_curve
from tokcast.predictor.roofline import Question
from tokcast.predictor.spec import ModelSpec

MOST_TASKS = 100_000


@dataclass(frozen=True, slots=True)
class TaskLoad:
    """Tasks to be timed: drawn from a workload's distributions, or those of a trace."""

    name: str
    tasks: tuple[Task, ...]
    origin: str
    seed: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranged:
    """Median and 90th percentile in seconds, with the median's interval."""

    seconds: Middle
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class TaskForecast:
    """What tasks take on one host with one model.

    `context_wall` says what ends a context at `n_context` tokens: the model's training, the
    memory, or what was asked for. `n_fitting` is how many tasks memory holds at once, each with
    the context that 9 of 10 need; None where the memory is not known.
    """

    load: TaskLoad
    n_context: int
    context_wall: str
    timed: tuple[TimedTask, ...]
    first_token: Ranged
    unreused: Ranged
    turn: Ranged
    task: Ranged
    unreused_task: Ranged
    waiting: Middle | None
    n_fitting: int | None
    task_context: int
    points: tuple[Point, ...]

    @property
    def n_turns(self) -> int:
        """Return the turns that fit the context."""
        return sum(len(t.turns) for t in self.timed)

    @property
    def cut_share(self) -> float:
        """Return the share of tasks that outgrow the context."""
        return sum(t.is_cut for t in self.timed) / len(self.timed)

    @property
    def cut_turn(self) -> float | None:
        """Return the turn by which half of those are cut, None where all tasks fit."""
        turns = [len(t.turns) + 1 for t in self.timed if t.is_cut]
        return middle(turns).p50 if turns else None


def load_of(workload: str | None, trace: str | None, n_tasks: str, seed: str) -> TaskLoad | None:
    """Return the tasks asked for, None where none were; raises InputError naming the flag."""
    n = one_count(n_tasks, "--tasks")
    chosen = one_count(seed, "--seed", at_least=0)
    if n > MOST_TASKS:
        raise InputError(f"--tasks {n}: expected at most {MOST_TASKS}")
    if workload is not None and trace is not None:
        raise InputError("--workload and --trace: expected one of them")
    if trace is not None:
        return recorded(trace, n, chosen)
    return None if workload is None else drawn(workload.lower(), n, chosen)


def drawn(name: str, n: int, seed: int) -> TaskLoad:
    """Return n tasks drawn from a workload's distributions; raises InputError for its name."""
    p = profile(name)
    random = Random(seed)
    origin = (
        f"{n:,} tasks drawn (seed {seed}) from the distributions of {p.n_tasks:,} tasks,"
        f" {p.n_turns:,} calls ({p.source})"
    )
    return TaskLoad(p.name, tuple(p.draw(random) for _ in range(n)), origin, seed)


def recorded(path: str, n: int, seed: int) -> TaskLoad:
    """Return a trace's tasks, n of them where it has more; raises InputError as `read_trace`."""
    trace = read_trace(path)
    tasks, what = trace.tasks, f"{len(trace.tasks):,} tasks"
    if len(tasks) > n:
        tasks = tuple(Random(seed).sample(tasks, n))
        what = f"{n:,} of {len(trace.tasks):,} tasks (seed {seed})"
    origin = f"{what}, {sum(map(len, tasks)):,} calls of a trace ({trace.format})"
    return TaskLoad(Path(path).name, tasks, origin, seed, trace.notes)


def forecast(
    spec: ModelSpec,
    q: Question,
    coefficients: Coefficients,
    fit: Fit,
    asked: int | None,
    load: TaskLoad,
) -> TaskForecast:
    """Return what tasks take; `q.workload` has cache types and micro-batch.

    Raises InputError where no task's first turn fits the context.
    """
    n_context, wall = context_of(spec, fit, asked)
    reading = prefill_curve(spec, q, coefficients)
    writing = decode_curve(spec, q, coefficients)
    timed = simulate(load.tasks, n_context, reading.seconds, lambda depth: 1 / writing.at(depth)[0])
    task_context = round(middle(t.peak_context for t in timed).p90)
    n_fitting = tasks_in_memory(spec, fit, q, task_context)
    pace = _Pace(reading.low, reading.high, writing.low, writing.high)
    waits = [t.seconds + t.wait_seconds for t in timed if _has_waits(t)]
    return TaskForecast(
        load=load,
        n_context=n_context,
        context_wall=wall,
        timed=timed,
        first_token=pace.ranged([(t.first_token_s, 0.0) for x in timed for t in x.turns]),
        unreused=pace.ranged([(t.unreused_s, 0.0) for x in timed for t in x.turns]),
        turn=pace.ranged([(t.first_token_s, t.answer_s) for x in timed for t in x.turns]),
        task=pace.ranged([_sums(t, is_reused=True) for t in timed if t.turns]),
        unreused_task=pace.ranged([_sums(t, is_reused=False) for t in timed if t.turns]),
        waiting=middle(waits) if waits else None,
        n_fitting=n_fitting,
        task_context=task_context,
        points=operating_points(timed, batch_step(spec, q, coefficients).seconds, n_fitting)
        if n_fitting != 0
        else (),
    )


@dataclass(frozen=True, slots=True)
class _Pace:
    """The intervals of reading and of writing, as multiples of the predicted rates."""

    reading_low: float
    reading_high: float
    writing_low: float
    writing_high: float

    def ranged(self, seconds: Sequence[tuple[float, float]]) -> Ranged:
        """Return the middle of times spent reading and writing; both err to one side together."""
        return Ranged(
            middle(r + w for r, w in seconds),
            middle(r / self.reading_high + w / self.writing_high for r, w in seconds).p50,
            middle(r / self.reading_low + w / self.writing_low for r, w in seconds).p50,
        )


def _sums(task: TimedTask, *, is_reused: bool) -> tuple[float, float]:
    read = sum(t.first_token_s if is_reused else t.unreused_s for t in task.turns)
    return read, sum(t.answer_s for t in task.turns)


def _has_waits(task: TimedTask) -> bool:
    return bool(task.turns) and any(t.turn.wait_seconds for t in task.turns)


def context_of(spec: ModelSpec, fit: Fit, asked: int | None) -> tuple[int, str]:
    """Return the longest context, and what ends it: what was asked for, memory or training."""
    trained = spec.context_length or LONGEST
    limits = [(trained, "that the model was trained for")]
    if fit.largest_context:
        limits.append((fit.largest_context, "that memory holds"))
    if asked is not None:
        limits.append((asked, "asked for"))
    # Of equal limits the training's is named: more memory would not help.
    return min(limits, key=lambda limit: limit[0])


def tasks_in_memory(spec: ModelSpec, fit: Fit, q: Question, n_context: int) -> int | None:
    """Return how many caches of a context memory holds beside one model; None if not known."""
    if fit.available_bytes is None:
        return None
    use = memory(spec, n_context, Setting.of(q.workload))
    each = use.kv_bytes + use.recurrent_bytes
    need = use.unified_bytes if fit.is_unified else use.device_bytes
    left = fit.available_bytes - (need - each)
    if left < each:
        return 0
    return int(left // each) if each else None
