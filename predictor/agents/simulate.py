"""How long tasks take: every turn's reading and answering on top of the context so far."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from tokcast.predictor.agents.quantiles import quantile
from tokcast.predictor.agents.task import Task, Turn
from tokcast.predictor.errors import InputError

# Seconds of reading new tokens on cached ones; seconds of one generated token at a depth.
Reading = Callable[[int, int], float]
Writing = Callable[[int], float]


@dataclass(frozen=True, slots=True)
class Timed:
    """A turn with its seconds: to the first token with its cache and without, then the answer."""

    turn: Turn
    first_token_s: float
    unreused_s: float
    answer_s: float

    @property
    def seconds(self) -> float:
        """Return the seconds of the turn with its cache."""
        return self.first_token_s + self.answer_s


@dataclass(frozen=True, slots=True)
class TimedTask:
    """The turns of a task that the context holds; `is_cut` where the next one would not fit."""

    turns: tuple[Timed, ...]
    is_cut: bool

    @property
    def seconds(self) -> float:
        """Return the model's seconds with its cache."""
        return sum(t.seconds for t in self.turns)

    @property
    def unreused_seconds(self) -> float:
        """Return the model's seconds where every turn reads its whole prompt."""
        return sum(t.unreused_s + t.answer_s for t in self.turns)

    @property
    def wait_seconds(self) -> float:
        """Return what tools and people took between the turns."""
        return sum(t.turn.wait_seconds or 0.0 for t in self.turns)

    @property
    def peak_context(self) -> int:
        """Return the most tokens that were in the cache."""
        return max((t.turn.n_context for t in self.turns), default=0)


@dataclass(frozen=True, slots=True)
class Middle:
    """The median and the 90th percentile of something, and its mean."""

    p50: float
    p90: float
    mean: float


def middle(values: Iterable[float]) -> Middle:
    """Return median, 90th percentile and mean; raises InputError for no values."""
    ranked = sorted(values)
    return Middle(quantile(ranked, 0.5), quantile(ranked, 0.9), sum(ranked) / max(len(ranked), 1))


def simulate(
    tasks: Sequence[Task], n_context: int, reading: Reading, writing: Writing
) -> tuple[TimedTask, ...]:
    """Return tasks with their seconds, cut off where a turn would not fit `n_context` tokens.

    A generated token takes what it takes in the middle of its answer. Raises InputError for
    no tasks, and where not one first turn fits.
    """
    if not tasks or n_context < 1:
        raise InputError(
            f"{len(tasks)} tasks in a context of {n_context}: expected one of each at least"
        )
    found = tuple(_timed_task(task, n_context, reading, writing) for task in tasks)
    if not any(t.turns for t in found):
        shortest = min(task[0].n_context for task in tasks)
        raise InputError(
            f"no task's first turn fits a context of {n_context}: the shortest needs {shortest};"
            " take a smaller model, a cache type of fewer bits or more memory"
        )
    return found


def _timed_task(task: Task, n_context: int, reading: Reading, writing: Writing) -> TimedTask:
    turns: list[Timed] = []
    for turn in task:
        if turn.n_context > n_context:
            return TimedTask(tuple(turns), is_cut=True)
        first = reading(turn.n_read, turn.n_input - turn.n_read)
        turns.append(
            Timed(
                turn,
                first,
                first if turn.n_read == turn.n_input else reading(turn.n_input, 0),
                turn.n_output * writing(turn.n_input + turn.n_output // 2),
            )
        )
    return TimedTask(tuple(turns), is_cut=False)
