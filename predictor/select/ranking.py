"""The order of rows, and which of them nothing else beats in every respect."""

from collections.abc import Callable, Iterable, Sequence

from tokcast.predictor.errors import InputError
from tokcast.predictor.select.rows import Goal, Row
from tokcast.predictor.select.types import PUBLISHED_AS, SIXTEEN_BITS, preference, type_loss

GOALS: tuple[Goal, ...] = ("size", "speed", "quality", "turn", "memory")
Key = tuple[float, ...]


def ppl_ratio(row: Row) -> float | None:
    """Return the published perplexity ratio, 1 for 16 bits and more, None without one."""
    if row.loss.ppl_ratio is not None:
        return row.loss.ppl_ratio.value
    return 1.0 if row.candidate.quant in SIXTEEN_BITS or is_as_published(row) else None


def is_as_published(row: Row) -> bool:
    """Return whether a file is of the quantized type that its model was published in."""
    c = row.candidate
    return c.quant == PUBLISHED_AS.get(c.spec.architecture)


def _by_size(row: Row) -> Key:
    c = row.candidate
    first, *rest = preference(c.quant, c.bits_per_weight, c.spec.architecture)
    return (first, -float(c.spec.n_params), *rest, -row.decode.tok_per_s)


def _by_quality(row: Row) -> Key:
    if is_as_published(row):
        return (False, 0.0, -row.decode.tok_per_s)
    known = type_loss(row.candidate.quant)
    return (known is None, known.ratio if known else 0.0, -row.decode.tok_per_s)


def _by_turn(row: Row) -> Key:
    if row.turn is None:
        raise InputError("--sort turn: expected a --workload, whose turns are meant")
    return (row.turn.later_s,)


_KEYS: dict[Goal, Callable[[Row], Key]] = {
    "size": _by_size,
    "speed": lambda row: (-row.decode.tok_per_s,),
    "quality": _by_quality,
    "turn": _by_turn,
    "memory": lambda row: (row.need_bytes,),
}


def goal_of(text: str) -> Goal:
    """Return the goal of that name; raises InputError for another."""
    for goal in GOALS:
        if goal == text.lower():
            return goal
    raise InputError(f"--sort {text!r}: expected one of {', '.join(GOALS)}")


def ranked(rows: Iterable[Row], goal: Goal) -> list[Row]:
    """Return rows, feasible ones first, best first by the goal; the rest by how far off.

    "size": most parameters first, types that lose at most `GOOD_LOSS` before all others; of a
    model's files, the type that `preference` takes.
    """
    key = _KEYS[goal]

    def place(row: Row) -> tuple[bool, float, Key]:
        far = max((miss.factor for miss in row.misses), default=0.0)
        return bool(row.misses), far, key(row)

    return sorted(rows, key=place)


def best_of_each(rows: Iterable[Row]) -> list[Row]:
    """Return the first row of every model, in the order given."""
    found: dict[str, Row] = {}
    for row in rows:
        found.setdefault(row.candidate.model, row)
    return list(found.values())


def _point(row: Row) -> Key | None:
    """Return what counts on the front, the smaller the better; None for what is on none."""
    known = type_loss(row.candidate.quant)
    if known is None or row.misses:
        return None
    return (-row.candidate.spec.n_params, known.ratio, -row.decode.tok_per_s, row.need_bytes)


def _beats(a: Key, b: Key) -> bool:
    return a[0] <= b[0] and a[1] <= b[1] and a[2] <= b[2] and a[3] <= b[3] and a != b


def is_unbeaten(row: Row, rows: Sequence[Row]) -> bool:
    """Return whether a row is on the front of all rows, without working the front out."""
    point = _point(row)
    if point is None:
        return False
    points = map(_point, rows)
    return not any(other is not None and _beats(other, point) for other in points)


def front(rows: Sequence[Row]) -> set[int]:
    """Return the places of rows that no other row beats: the Pareto front.

    One row beats another that is no better in parameters, loss of its type, decode speed or
    memory, and worse in one of them. Rows that miss a wish or whose type nothing was published
    of are on no front.
    """
    points = sorted((p, i) for i, row in enumerate(rows) if (p := _point(row)) is not None)
    kept: list[tuple[Key, int]] = []
    for point, i in points:
        # Sorted, so that no later point has more parameters than an earlier one.
        for at, (other, _) in enumerate(kept):
            if _beats(other, point):
                # Who beat one is likely to beat the next.
                kept.insert(0, kept.pop(at))
                break
        else:
            kept.append((point, i))
    return {i for _, i in kept}
