"""Horizontal bars with intervals: quants of a model, hosts for a model, sensitivities."""

from collections.abc import Sequence
from dataclasses import dataclass

from tokcast.cli.charts.scales import LinearScale, top_of
from tokcast.cli.charts.svg import Canvas
from tokcast.cli.charts.theme import LIGHT, Theme
from tokcast.cli.render import cut, rate

LEFT, RIGHT, TOP, BOTTOM, ROW = 216.0, 168.0, 42.0, 30.0, 26.0


@dataclass(frozen=True, slots=True)
class Bar:
    """A value in tokens/s with its interval; `note` stands beside it, `is_faded` sets it back."""

    label: str
    value: float
    low: float
    high: float
    note: str = ""
    is_faded: bool = False


def draw_bars(bars: Sequence[Bar], title: str, *, width: float = 760, theme: Theme = LIGHT) -> str:
    """Return the SVG of one bar a row, in the order given."""
    height = TOP + ROW * len(bars) + BOTTOM
    x = LinearScale(top_of(max(b.high for b in bars)), LEFT, width - RIGHT)
    said = "; ".join(f"{b.label}: {rate(b.value)} tokens per second" for b in bars)
    canvas = Canvas(width, height, title, said, theme)
    canvas.text(12, 20, cut(f"{title}, tok/s", 90), font_size=14, font_weight=650)
    foot = height - BOTTOM
    for tick in x.ticks():
        canvas.line(x(tick), TOP - 6, x(tick), foot, "faint")
        canvas.text(x(tick), foot + 17, f"{tick:,.6g}", "soft", text_anchor="middle", font_size=11)
    for i, bar in enumerate(bars):
        _bar(canvas, x, bar, TOP + ROW * i)
    return canvas.render()


def _bar(canvas: Canvas, x: LinearScale, bar: Bar, top: float) -> None:
    middle = top + ROW / 2
    opacity = 0.35 if bar.is_faded else 1.0
    canvas.text(LEFT - 10, middle + 4, cut(bar.label, 27), "ink", text_anchor="end")
    length = max(x(bar.value) - LEFT, 1.0)
    canvas.rect(LEFT, top + 5, length, ROW - 10, "a", rx=3, opacity=0.85 * opacity)
    canvas.line(x(bar.low), middle, x(bar.high), middle, "ink", stroke_width=1.5, opacity=0.7)
    for end in (bar.low, bar.high):
        canvas.line(x(end), middle - 4, x(end), middle + 4, "ink", stroke_width=1.5, opacity=0.7)
    shown = f"{rate(bar.value)} · {bar.note}".removesuffix(" · ")
    canvas.text(canvas.width - RIGHT + 12, middle + 4, cut(shown, 28), "soft", font_size=11)
