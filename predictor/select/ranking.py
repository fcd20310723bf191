"""The order of rows, and which of them nothing else beats in every respect."""

import math
from collections.abc import Callable, Iterable, Sequence

from tokcast.predictor.errors import InputError
from tokcast.predictor.select.rows import Goal, Row

GOALS: tuple[Goal, ...] = ("size", "speed", "quality", "turn", "memory")
# Quantizations published to lose no more than this are taken as good ones of a model.
GOOD_LOSS = 1.02
# Without a published figure, so many bits a weight are taken for a better sign than fewer.
MANY_BITS = 4.5
# Speeds of one step of so much count as alike when quantizations of one model are compared.
ALIKE = 1.15
_SIXTEEN_BITS = frozenset({"F16", "BF16", "F32", "mlx-bf16"})

Key = tuple[float, ...]


def ppl_ratio(row: Row) -> float | None:
    """Return the published perplexity ratio, 1 for 16 bits and more, None without one."""
    if row.loss.ppl_ratio is not None:
        return row.loss.ppl_ratio.value
    return 1.0 if row.candidate.quant in _SIXTEEN_BITS else None


def _standing(row: Row) -> int:
    """Return how what is published of a file's loss speaks for it: the lower, the better.

    0 for a small loss, 2 for a larger one; 1 where nothing is published of a file of `MANY_BITS`
    or more, 3 where it has fewer. One other model says too little of this one.
    """
    ratio, figure = ppl_ratio(row), row.loss.ppl_ratio
    if ratio is not None and ratio > GOOD_LOSS:
        return 2
    is_thin = figure is not None and figure.n == 1 and figure.of.endswith("models")
    if ratio is not None and not is_thin:
        return 0
    return 1 if row.candidate.bits_per_weight >= MANY_BITS else 3


def _by_size(row: Row) -> Key:
    standing, ratio = _standing(row), ppl_ratio(row) or 0.0
    size, speed = -float(row.candidate.spec.n_params), -row.decode.tok_per_s
    if standing == 0:
        alike = -math.floor(math.log(-speed) / math.log(ALIKE))
        return (standing, size, alike, ratio, speed)
    return (standing, size, ratio, -row.candidate.bits_per_weight)


def _by_quality(row: Row) -> Key:
    ratio = ppl_ratio(row)
    return (ratio is None, ratio or 0.0, -row.decode.tok_per_s)


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

    "size": most parameters first, quantizations with a published loss of at most `GOOD_LOSS`
    before all others; of a model's, those of the highest speed, within a step of `ALIKE`, and of
    these the one that loses least.
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
    ratio = ppl_ratio(row)
    if ratio is None or row.misses:
        return None
    return (-row.candidate.spec.n_params, ratio, -row.decode.tok_per_s, row.need_bytes)


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

    One row beats another that is no better in parameters, published perplexity ratio, decode
    speed or memory, and worse in one of them. Rows that miss a wish or have no published
    figure are on no front.
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
