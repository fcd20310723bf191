"""Speed over context depth, with the interval as a band."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from tokcast.cli.charts.scales import DepthScale, LinearScale, top_of
from tokcast.cli.charts.svg import Canvas
from tokcast.cli.charts.theme import LIGHT, SERIES, Theme
from tokcast.cli.render import count, rate

LEFT, RIGHT, TOP, BOTTOM = 52.0, 18.0, 30.0, 38.0


@dataclass(frozen=True, slots=True)
class Curve:
    """Tokens/s, low and high at depths in tokens; `measured` are (depth, tokens/s, source)."""

    label: str
    depths: tuple[int, ...]
    tok_per_s: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    measured: tuple[tuple[int, float, str], ...] = ()


def draw_depth(
    curves: Sequence[Curve],
    title: str,
    *,
    at_depth: int | None = None,
    width: float = 640,
    height: float = 300,
    theme: Theme = LIGHT,
    is_alone: bool = False,
) -> str:
    """Return the SVG of up to four curves; `at_depth` marks the depth asked about.

    A drawing that stands alone has its title and a key.
    """
    longest = max(c.depths[-1] for c in curves)
    tallest = max(max(c.high) for c in curves)
    tallest = max([tallest, *(m[1] for c in curves for m in c.measured)])
    x = DepthScale(max(longest, 1), LEFT, width - RIGHT)
    y = LinearScale(top_of(tallest * 1.02), height - BOTTOM, TOP)
    said = "; ".join(
        f"{c.label}: {rate(c.tok_per_s[0])} at depth 0,"
        f" {rate(c.tok_per_s[-1])} at {count(c.depths[-1])}"
        for c in curves
    )
    canvas = Canvas(width, height, title, f"Tokens per second over context depth. {said}", theme)
    canvas.data = {"kind": "depth", "left": LEFT, "right": width - RIGHT, "high": x.high}
    if is_alone:
        canvas.key = tuple(zip(SERIES, (c.label for c in curves), strict=False))
    _axes(canvas, x, y)
    for curve, role in zip(curves, SERIES, strict=False):
        upper = [(x(d), y(v)) for d, v in zip(curve.depths, curve.high, strict=True)]
        lower = [(x(d), y(v)) for d, v in zip(curve.depths, curve.low, strict=True)]
        canvas.area([*upper, *reversed(lower)], role, opacity=0.14)
    if at_depth is not None:
        canvas.line(x(at_depth), TOP, x(at_depth), height - BOTTOM, "soft", stroke_dasharray="3 4")
    for curve, role in zip(curves, SERIES, strict=False):
        _curve(canvas, x, y, curve, role, at_depth)
    return canvas.render()


def _curve(
    canvas: Canvas, x: DepthScale, y: LinearScale, curve: Curve, role: str, at_depth: int | None
) -> None:
    points = [(x(d), y(v)) for d, v in zip(curve.depths, curve.tok_per_s, strict=True)]
    canvas.path(points, role, stroke_width=2.5)
    for depth, speed, source in curve.measured:
        if depth <= x.high:
            tip = f"measured: {rate(speed)} tok/s at depth {count(depth)} ({source})"
            canvas.dot(
                x(depth),
                y(speed),
                3.5,
                "panel",
                tip,
                stroke=canvas.theme[role],
                stroke_width=1.8,
                class_=f"f-panel s-{role}",
            )
    if at_depth is not None and at_depth <= curve.depths[-1]:
        speed = value_at(curve, at_depth)
        tip = f"{curve.label}: {rate(speed)} tok/s at depth {count(at_depth)}"
        canvas.dot(x(at_depth), y(speed), 5.0, role, tip)


def value_at(curve: Curve, depth: int) -> float:
    """Return the speed at a depth, between two known ones by proportion."""
    pairs = list(zip(curve.depths, curve.tok_per_s, strict=True))
    for (d0, v0), (d1, v1) in pairwise(pairs):
        if d0 <= depth <= d1:
            return v0 + (v1 - v0) * (depth - d0) / (d1 - d0)
    return pairs[-1][1]


def _axes(canvas: Canvas, x: DepthScale, y: LinearScale) -> None:
    foot = canvas.height - BOTTOM
    for tick in y.ticks():
        canvas.line(LEFT, y(tick), canvas.width - RIGHT, y(tick), "faint")
        canvas.text(LEFT - 8, y(tick) + 4, f"{tick:,.6g}", "soft", text_anchor="end", font_size=11)
    canvas.line(LEFT, foot, canvas.width - RIGHT, foot, "axis")
    for depth in x.ticks():
        canvas.line(x(depth), foot, x(depth), foot + 4, "axis")
        canvas.text(x(depth), foot + 17, count(depth), "soft", text_anchor="middle", font_size=11)
    canvas.text(LEFT - 40, 17, "tokens / s", "soft", font_size=11.5)
    end = canvas.width - RIGHT
    canvas.text(end, canvas.height - 5, "context depth", "soft", text_anchor="end", font_size=11)
