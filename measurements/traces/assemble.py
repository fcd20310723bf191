"""From recorded calls to tasks: sessions in order, with what was in the cache."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tokcast.measurements.traces.call import Call
from tokcast.predictor.agents.task import Task, Turn
from tokcast.predictor.errors import InputError


@dataclass(frozen=True, slots=True)
class Trace:
    """A trace's tasks, and what a reader of figures from it should know."""

    name: str
    format: str
    tasks: tuple[Task, ...]
    notes: tuple[str, ...] = ()

    @property
    def n_turns(self) -> int:
        """Return how many calls of a model there are."""
        return sum(map(len, self.tasks))


def assemble(name: str, format_: str, calls: Sequence[Call]) -> Trace:
    """Return the tasks of a trace, in the order their first calls have in the file.

    The previous answer counts as cached where the prompt grew by at least as much, as in a cache
    that keeps what it generated. Where nothing tells what was cached, a session's prompt is taken
    to begin with the one before. Raises InputError for missing turns and clocks that run backwards.
    """
    used = [c for c in calls if c.n_input > 0]
    if not used:
        raise InputError(f"{name}: {len(calls)} calls, none with a prompt; expected one at least")
    sessions: dict[str, list[Call]] = {}
    for call in used:
        sessions.setdefault(call.session, []).append(call)
    seen: dict[str, set[object]] = {}
    tasks = tuple(_task(name, _ordered(name, session), seen) for session in sessions.values())
    return Trace(name, format_, tasks, _notes(calls, used, tasks))


def _ordered(name: str, calls: list[Call]) -> list[Call]:
    """Return a session's calls by turn where that is recorded, else as they stand."""
    turns = [c.turn for c in calls if c.turn is not None]
    if len(turns) == len(calls):
        calls = sorted(calls, key=lambda c: c.turn or 0)
        _check_turns(name, calls)
    for before, call in pairwise(calls):
        if before.start_s is not None and call.start_s is not None:
            _check_clock(name, before, call)
    return calls


def _check_turns(name: str, calls: list[Call]) -> None:
    first = calls[0].turn or 0
    for i, call in enumerate(calls):
        if call.turn == first + i:
            continue
        what = f"turn {first + i} is missing"
        if i and call.turn == calls[i - 1].turn:
            what = f"turn {call.turn} is there twice"
        raise InputError(
            f"{name}{call.where}: session {call.session[:40]!r}, {what}; expected every turn once,"
            " from the first on"
        )
    if first not in (0, 1):
        raise InputError(
            f"{name}{calls[0].where}: session {calls[0].session[:40]!r} begins with turn {first};"
            " expected 0 or 1, all turns before it are missing"
        )


def _check_clock(name: str, before: Call, call: Call) -> None:
    start, end = before.start_s or 0.0, call.start_s or 0.0
    if end < start:
        raise InputError(
            f"{name}{call.where}: the clock runs backwards in session {call.session[:40]!r}, from"
            f" {start:g} s to {end:g} s; expected calls in the order they began"
        )


def _task(name: str, calls: list[Call], seen: dict[str, set[object]]) -> Task:
    turns: list[Turn] = []
    before: Call | None = None
    for call in calls:
        cached = _cached(call, before, seen)
        try:
            turns.append(Turn(call.n_input, cached, call.n_output, _wait(call, before)))
        except InputError as error:
            raise InputError(f"{name}{call.where}: {error}") from None
        before = call
    return tuple(turns)


def _cached(call: Call, before: Call | None, seen: dict[str, set[object]]) -> int:
    """Return the leading tokens of the prompt that a cache which evicts nothing holds."""
    cached = _recorded(call, seen)
    if cached is None:
        grows = before is not None and call.n_input >= before.n_input
        cached = before.n_input if before is not None and grows else 0
    if before is not None and cached >= before.n_input - call.block_size:
        # The answer before came back as part of the prompt.
        cached = max(cached, min(before.n_input + before.n_output, call.n_input))
    return min(cached, call.n_input)


def _recorded(call: Call, seen: dict[str, set[object]]) -> int | None:
    if not call.blocks:
        return call.n_cached
    known = seen.setdefault(call.scope, set())
    n_known = 0
    for block in call.blocks:
        if block not in known:
            break
        n_known += 1
    known.update(call.blocks)
    return min(n_known * call.block_size, call.n_input)


def _wait(call: Call, before: Call | None) -> float | None:
    if call.wait_seconds is not None or before is None:
        return call.wait_seconds
    if call.start_s is not None and before.end_s is not None:
        return max(call.start_s - before.end_s, 0.0)
    return None


def _notes(calls: Sequence[Call], used: Sequence[Call], tasks: Sequence[Task]) -> tuple[str, ...]:
    found = []
    if len(used) < len(calls):
        found.append(f"{len(calls) - len(used)} calls without a prompt are left out")
    n_guessed = sum(c.is_estimated for c in used)
    if n_guessed:
        found.append(f"lengths of {n_guessed} calls are a quarter of their characters, not counted")
    is_told = any(c.blocks or c.n_cached is not None for c in used)
    if not is_told and any(len(task) > 1 for task in tasks):
        found.append(
            "nothing tells what was cached: a prompt is taken to begin with the one before"
        )
    if all(len(task) == 1 for task in tasks):
        found.append("no sessions in it: every call is a task of one turn")
    return tuple(found)
