"""Several tasks at once: how much a host gets done, and which wall ends it.

With n tasks always busy a turn takes R = n P + O T(n): it waits for the reading P of all, and
writes its O tokens in passes shared by n. While one writes, the others' reading stops it for the
share f = (n - 1) / n X P of the time, X = n / R being the turns done a second; so a turn that
reads p and writes o takes (p + o T(n)) / (1 - f), whose mean is R.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tokcast.predictor.agents.simulate import Middle, Timed, TimedTask, middle

Wall = Literal["", "memory", "saturation", "patience"]
# Seconds of a pass that writes a token for each of n sequences at a depth.
Pass = Callable[[int, int], float]
# Twice as many tasks that get less than this much more done: the host is saturated.
LEAST_GAIN = 1.1
# Fewer tokens a second than this and reading along is slow going.
PATIENCE_TOK_PER_S = 10.0
# The walls are looked for at so many tasks at most.
MOST_TASKS = 1024


@dataclass(frozen=True, slots=True)
class Point:
    """What a host does with `n_tasks` always busy; tokens/s are those written, of all together.

    `tok_per_s_each` is how fast a task sees its answer while nobody else's prompt is read.
    """

    n_tasks: int
    tok_per_s: float
    tok_per_s_each: float
    turn: Middle
    tasks_per_hour: float
    reading_share: float
    wall: Wall


def operating_points(
    timed: Sequence[TimedTask], one_pass: Pass, n_fitting: int | None
) -> tuple[Point, ...]:
    """Return points at 1, 2, 4 … tasks up to what memory holds, marked where a wall begins.

    `n_fitting` is how many tasks memory holds, None where it is not known. The first wall is the
    first point marked; points end two after it, or at memory's.
    """
    turns = [t for task in timed for t in task.turns]
    depth = _mean_depth(turns)
    counts = _counts(n_fitting)
    found: list[Point] = []
    for n in counts:
        last = found[-1] if found else None
        found.append(_point(n, turns, len(timed), one_pass(n, depth), last, n == n_fitting))
        if sum(bool(p.wall) for p in found) > 2:
            break
    return tuple(found)


def _counts(n_fitting: int | None) -> list[int]:
    most = MOST_TASKS if n_fitting is None else min(n_fitting, MOST_TASKS)
    counts = [2**i for i in range(most.bit_length())]
    return counts if counts[-1] == most else [*counts, most]


def _mean_depth(turns: Sequence[Timed]) -> int:
    """Return the mean context over the tokens that are written."""
    n_written = sum(t.turn.n_output for t in turns)
    at = sum(t.turn.n_output * (t.turn.n_input + t.turn.n_output / 2) for t in turns)
    return round(at / max(n_written, 1))


def _point(
    n: int, turns: Sequence[Timed], n_timed: int, pass_s: float, last: Point | None, is_full: bool
) -> Point:
    read_s = sum(t.first_token_s for t in turns) / len(turns)
    n_output = sum(t.turn.n_output for t in turns) / len(turns)
    turn_s = n * read_s + n_output * pass_s
    turns_per_s = n / turn_s
    reading = turns_per_s * read_s
    left = 1 - reading * (n - 1) / n
    seconds = middle((t.first_token_s + t.turn.n_output * pass_s) / left for t in turns)
    per_hour = 3600 * turns_per_s * n_timed / len(turns)
    wall: Wall = ""
    if is_full:
        wall = "memory"
    elif last is not None and per_hour < LEAST_GAIN * last.tasks_per_hour:
        wall = "saturation"
    elif 1 / pass_s < PATIENCE_TOK_PER_S and n > 1:
        wall = "patience"
    return Point(n, turns_per_s * n_output, 1 / pass_s, seconds, per_hour, reading, wall)
