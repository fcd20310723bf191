"""Speed over how much of a model is off the cards, with the interval as a band."""

from collections.abc import Sequence
from dataclasses import dataclass

from tokcast.cli.charts.scales import LinearScale, nice, top_of
from tokcast.cli.charts.svg import Canvas
from tokcast.cli.charts.theme import LIGHT, Theme
from tokcast.cli.render import rate

LEFT, RIGHT, TOP, BOTTOM = 52.0, 18.0, 30.0, 38.0
# The most dots that can be told apart.
MOST_DOTS = 60


@dataclass(frozen=True, slots=True)
class Step:
    """Tokens/s with its interval where `n_away` layers are not whole on the cards."""

    n_away: int
    name: str
    tok_per_s: float
    low: float
    high: float
    fits: bool


def draw_steps(
    steps: Sequence[Step],
    title: str,
    n_bare: int = 0,
    min_tok_per_s: float | None = None,
    *,
    width: float = 760,
    height: float = 360,
    theme: Theme = LIGHT,
) -> str:
    """Return the SVG of a sweep; what does not fit is drawn in grey.

    The first `n_bare` steps only take experts off the cards; a line parts them from the rest.
    """
    most = max(max(s.high for s in steps), min_tok_per_s or 0.0)
    x = LinearScale(float(max(steps[-1].n_away, 1)), LEFT, width - RIGHT)
    y = LinearScale(top_of(most * 1.02), height - BOTTOM, TOP)
    said = f"from {rate(steps[0].tok_per_s)} to {rate(steps[-1].tok_per_s)} tokens per second"
    canvas = Canvas(width, height, title, f"Speed by layers off the cards: {said}.", theme)
    canvas.key = (("a", "fits"), ("overhead", "does not fit"))
    _axes(canvas, x, y)
    upper = [(x(s.n_away), y(s.high)) for s in steps]
    lower = [(x(s.n_away), y(s.low)) for s in steps]
    canvas.area([*upper, *reversed(lower)], "a", opacity=0.14)
    if n_bare > 0:
        at = x(n_bare)
        canvas.line(at, TOP, at, height - BOTTOM, "soft", stroke_dasharray="3 4")
        for text, anchor, shift in (("experts", "end", -6), ("whole layers", "start", 6)):
            canvas.text(at + shift, TOP + 10, text, "soft", text_anchor=anchor, font_size=11)
    if min_tok_per_s is not None:
        at = y(min_tok_per_s)
        canvas.line(LEFT, at, width - RIGHT, at, "bad", stroke_dasharray="3 4")
    canvas.path([(x(s.n_away), y(s.tok_per_s)) for s in steps], "overhead", stroke_width=1.5)
    fitting = [(x(s.n_away), y(s.tok_per_s)) for s in steps if s.fits]
    if len(fitting) > 1:
        canvas.path(fitting, "a", stroke_width=2.5)
    for step in steps[:: max(1, len(steps) // MOST_DOTS)]:
        tip = f"{step.name}: {rate(step.tok_per_s)} tok/s"
        canvas.dot(x(step.n_away), y(step.tok_per_s), 3.0, "a" if step.fits else "overhead", tip)
    return canvas.render()


def _axes(canvas: Canvas, x: LinearScale, y: LinearScale) -> None:
    foot, end = canvas.height - BOTTOM, canvas.width - RIGHT
    for tick in y.ticks():
        canvas.line(LEFT, y(tick), end, y(tick), "faint")
        canvas.text(LEFT - 8, y(tick) + 4, f"{tick:,.6g}", "soft", text_anchor="end", font_size=11)
    canvas.line(LEFT, foot, end, foot, "axis")
    step = max(1, int(nice(x.high / 10)))
    for tick in range(0, int(x.high) + 1, step):
        canvas.line(x(tick), foot, x(tick), foot + 4, "axis")
        canvas.text(x(tick), foot + 17, str(tick), "soft", text_anchor="middle", font_size=11)
    canvas.text(LEFT - 40, 17, "tokens / s", "soft", font_size=11.5)
    words = "layers off the cards: first their experts (-ncmoe), then all (-ngl)"
    canvas.text(end, canvas.height - 5, words, "soft", text_anchor="end", font_size=11)
