"""A choice as a picture: speed over published loss, the size of a mark being the memory."""

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from pathlib import Path

from tokcast.cli.render import count, plain, rate
from tokcast.cli.select import Selection
from tokcast.cli.select_words import device, model_of
from tokcast.predictor.errors import InputError
from tokcast.predictor.select.ranking import front, ppl_ratio
from tokcast.predictor.select.rows import Row

WIDTH, HEIGHT = 860, 520
LEFT, RIGHT, TOP, BOTTOM = 64, 24, 44, 52
MOST_NAMED = 14
# Percent of perplexity below which published losses are noise: where the axis ends.
LEAST_LOSS = 0.05
_STYLE = (
    "text{font:11px sans-serif;fill:#3b4252}.t{font-size:14px;font-weight:600}"
    ".g{stroke:#e3e6eb}.c{fill:#9aa5b5;fill-opacity:.45}.f{fill:#c2452d;fill-opacity:.8}"
    ".n{font-size:9px}"
)

Scale = Callable[[float], float]


def draw(s: Selection, path: str) -> None:
    """Write the picture as SVG; raises InputError where there is nothing to draw or no way to."""
    if not path.lower().endswith(".svg"):
        raise InputError(f"--plot {path}: expected a file name that ends with .svg")
    text = picture(s)
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"--plot {path}: {error.strerror}; expected a file to write") from None


def picture(s: Selection) -> str:
    """Return the SVG; raises InputError where no candidate can be shown."""
    places = front(s.rows)
    shown = [
        (row, max(100 * (ratio - 1), LEAST_LOSS), i in places)
        for i, row in enumerate(s.rows)
        if row.is_feasible and (ratio := ppl_ratio(row)) is not None
    ]
    if not shown:
        raise InputError("--plot: no candidate that meets the wishes has a published loss to show")
    x = _scale([loss for _, loss, _ in shown], LEFT, WIDTH - RIGHT)
    y = _scale([row.decode.tok_per_s for row, _, _ in shown], HEIGHT - BOTTOM, TOP)
    # Those that nothing beats lie on top.
    marks = [_mark(x(loss), y(row.decode.tok_per_s), row, best) for row, loss, best in _last(shown)]
    title = f"{device(s)}: speed over loss, at a context of {count(s.wishes.context)}"
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
            f"<title>{escape(title)}</title><style>{_STYLE}</style>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
            _text(LEFT, 24, title, "t"),
            *_axes(shown, x, y),
            *marks,
            *_names(shown, x, y),
            "</svg>\n",
        )
    )


Shown = tuple[Row, float, bool]


def _last(shown: Sequence[Shown]) -> list[Shown]:
    return sorted(shown, key=lambda each: each[2])


def _scale(values: Sequence[float], start: float, end: float) -> Scale:
    """Return a logarithmic scale that leaves a little room on both sides."""
    low, high = math.log(min(values)) - 0.15, math.log(max(values)) + 0.15
    return lambda value: start + (end - start) * (math.log(value) - low) / (high - low)


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    words = escape(plain(text))
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{words}</text>'


def _mark(x: float, y: float, row: Row, is_best: bool) -> str:
    radius = 2 + math.sqrt(row.need_bytes / 1024**3) / 1.5
    c = row.candidate
    told = f"{model_of(row)} {c.quant}: {rate(row.decode.tok_per_s)} tok/s"
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" class="{"f" if is_best else "c"}">'
        f"<title>{escape(plain(told))}</title></circle>"
    )


def _ticks(values: Sequence[float]) -> Iterator[float]:
    low, high = min(values), max(values)
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        yield from (m * 10.0**power for m in (1, 2, 5) if low <= m * 10.0**power <= high)


def _axes(shown: Sequence[Shown], x: Scale, y: Scale) -> Iterator[str]:
    foot = HEIGHT - BOTTOM
    for tick in _ticks([loss for _, loss, _ in shown]):
        yield f'<path d="M{x(tick):.1f} {TOP}V{foot}" class="g"/>'
        yield _text(x(tick), foot + 16, f"{tick:g} %", anchor="middle")
    for tick in _ticks([row.decode.tok_per_s for row, _, _ in shown]):
        yield f'<path d="M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}" class="g"/>'
        yield _text(LEFT - 8, y(tick) + 4, f"{tick:g}", anchor="end")
    words = "published loss of the quantization, % perplexity; the larger a mark, the more memory"
    yield _text(LEFT, HEIGHT - 12, words)
    yield _text(LEFT - 8, TOP - 8, "tok/s", anchor="end")
    yield _text(WIDTH - RIGHT, 24, "red: nothing else is better in every respect", anchor="end")


def _names(shown: Sequence[Shown], x: Scale, y: Scale) -> Iterator[str]:
    """Yield the names of the best marks that nothing beats, where they don't overlap."""
    taken: list[tuple[float, float]] = []
    for row, loss, is_best in shown:
        at = x(loss), y(row.decode.tok_per_s)
        is_free = all(abs(at[1] - b) > 11 or abs(at[0] - a) > 130 for a, b in taken)
        if not is_best or not is_free or len(taken) >= MOST_NAMED:
            continue
        taken.append(at)
        anchor, shift = ("end", -8) if at[0] > WIDTH - 190 else ("start", 8)
        name = f"{model_of(row)} {row.candidate.quant}"
        yield _text(at[0] + shift, at[1] - 5, name, "n", anchor)
