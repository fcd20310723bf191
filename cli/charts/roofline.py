"""The roofline plot: what bandwidth and arithmetic allow, and where the work lies under it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tokcast.cli.charts.scales import LogScale
from tokcast.cli.charts.svg import Canvas
from tokcast.cli.charts.theme import LIGHT, SERIES, Theme

LEFT, RIGHT, TOP, BOTTOM = 58.0, 16.0, 34.0, 42.0
# Of more pairs than this the parts of their phases are left out, and of all but the first host
# the lower ceilings: nobody could tell them apart.
MOST_WITH_PARTS = 2
_ORDER = ("component", "phase", "measured")
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True, slots=True)
class Slope:
    """A level of memory: bytes it moves a second."""

    label: str
    bytes_per_s: float


@dataclass(frozen=True, slots=True)
class Ceiling:
    """A format of arithmetic: operations a second."""

    label: str
    flops_per_s: float


@dataclass(frozen=True, slots=True)
class Point:
    """Work of a phase, or of one component of it: operations, bytes, seconds they take.

    `low` and `high` bound the operations a second, where an interval is known; `left` and
    `right` the operations a byte, where they are uncertain.
    """

    label: str
    phase: str
    kind: Literal["phase", "component", "measured"]
    flops: float
    bytes: float
    seconds: float
    low: float | None = None
    high: float | None = None
    left: float | None = None
    right: float | None = None

    @property
    def intensity(self) -> float:
        """Return operations a byte."""
        return self.flops / self.bytes

    @property
    def flops_per_s(self) -> float:
        """Return operations a second."""
        return self.flops / self.seconds


@dataclass(frozen=True, slots=True)
class Roofline:
    """One host's roof with the points of one model under it.

    `band` is the factor by which the roof may lie lower or higher, shown as a band.
    """

    label: str
    slopes: tuple[Slope, ...]
    ceilings: tuple[Ceiling, ...]
    points: tuple[Point, ...]
    band: tuple[float, float] | None = None

    @property
    def ridge(self) -> float | None:
        """Return operations a byte where the first slope meets the highest ceiling."""
        if not self.ceilings:
            return None
        return max(c.flops_per_s for c in self.ceilings) / self.slopes[0].bytes_per_s


def draw_roofline(
    roofs: Sequence[Roofline],
    title: str,
    *,
    width: float = 760,
    height: float = 460,
    theme: Theme = LIGHT,
    is_alone: bool = False,
) -> str:
    """Return the SVG of up to four hosts' roofs and the points under them.

    A drawing that stands alone has its title and a key.
    """
    x, y = _scales(roofs, width, height)
    canvas = Canvas(width, height, title, _said(roofs), theme)
    canvas.data = {"kind": "roofline"}
    if is_alone:
        canvas.key = tuple(zip(SERIES, (r.label for r in roofs), strict=False))
    _axes(canvas, x, y)
    hosts = list(dict.fromkeys((r.slopes, r.ceilings) for r in roofs))
    for i, host in enumerate(hosts):
        owner = next(r for r in roofs if (r.slopes, r.ceilings) == host)
        role = "roof" if len(hosts) == 1 else SERIES[roofs.index(owner)]
        shown = owner if i == 0 else replace(owner, ceilings=owner.ceilings[:1])
        _roof(canvas, x, y, shown, role, is_labelled=i == 0)
    for roof, role in zip(roofs, SERIES, strict=False):
        for point in sorted(roof.points, key=lambda p: _ORDER.index(p.kind)):
            if point.kind == "component" and len(roofs) > MOST_WITH_PARTS:
                continue
            _point(canvas, x, y, roof, point, role)
    _key(canvas)
    return canvas.render()


def _scales(roofs: Sequence[Roofline], width: float, height: float) -> tuple[LogScale, LogScale]:
    points = [p for r in roofs for p in r.points]
    ridges = [r.ridge for r in roofs if r.ridge]
    intensities = [*(p.intensity for p in points), *ridges]
    low = 10.0 ** math.floor(math.log10(min([*intensities, 0.5]) / 1.3))
    high = 10.0 ** math.ceil(math.log10(max([*intensities, 50.0]) * 1.3))
    rates = [p.flops_per_s for p in points]
    peaks = [c.flops_per_s for r in roofs for c in r.ceilings]
    tops = peaks or [high * r.slopes[0].bytes_per_s for r in roofs]
    floor = 10.0 ** math.floor(math.log10(min(rates or [min(tops) / 1e3]) / 1.5))
    return (
        LogScale(low, high, LEFT, width - RIGHT),
        LogScale(floor, max([*tops, *rates]) * 2.2, height - BOTTOM, TOP),
    )


def _said(roofs: Sequence[Roofline]) -> str:
    found = []
    for roof in roofs:
        if roof.ridge:
            found.append(f"{roof.label}: ridge at {roof.ridge:.3g} operations a byte")
        found += [
            f"{p.label} {p.intensity:.3g} operations a byte, {p.flops_per_s / 1e12:.3g} TFLOP/s"
            for p in roof.points
            if p.kind == "phase"
        ]
    return "Operations per second over operations per byte. " + "; ".join(found)


def _power(value: float) -> str:
    return "10" + str(round(math.log10(value))).translate(_SUPERSCRIPT)


def _axes(canvas: Canvas, x: LogScale, y: LogScale) -> None:
    foot, end = canvas.height - BOTTOM, canvas.width - RIGHT
    for tick in x.ticks():
        canvas.line(x(tick), TOP, x(tick), foot, "faint")
        shown = f"{tick:g}" if 0.01 <= tick <= 1000 else _power(tick)
        canvas.text(x(tick), foot + 17, shown, "soft", text_anchor="middle", font_size=11)
    for tick in y.ticks():
        canvas.line(LEFT, y(tick), end, y(tick), "faint")
        canvas.text(LEFT - 8, y(tick) + 4, _rate(tick), "soft", text_anchor="end", font_size=11)
    canvas.line(LEFT, foot, end, foot, "axis")
    canvas.text(12, 18, "operations / s", "soft", font_size=12)
    canvas.text(end, canvas.height - 7, "operations / byte", "soft", text_anchor="end")


def _rate(flops_per_s: float) -> str:
    for scale, name in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")):
        if flops_per_s >= scale * 0.999:
            return f"{flops_per_s / scale:.3g} {name}"
    return f"{flops_per_s:.3g}"


def _roof(
    canvas: Canvas, x: LogScale, y: LogScale, roof: Roofline, role: str, *, is_labelled: bool
) -> None:
    top = max((c.flops_per_s for c in roof.ceilings), default=math.inf)
    for i, slope in enumerate(roof.slopes):
        _slope(canvas, x, y, slope, top, role, is_main=i == 0, is_labelled=is_labelled)
    best = roof.slopes[0].bytes_per_s
    if roof.band is not None and math.isfinite(top):
        _band(canvas, x, y, best, top, roof.band, role)
    last_y = -math.inf
    for ceiling in sorted(roof.ceilings, key=lambda c: -c.flops_per_s):
        start = max(ceiling.flops_per_s / best, x.low)
        level = y(ceiling.flops_per_s)
        is_top = ceiling.flops_per_s == top
        dash = None if is_top else "5 4"
        thick = 2.0 if is_top else 1.0
        canvas.line(x(start), level, x.end, level, role, stroke_width=thick, stroke_dasharray=dash)
        if is_labelled and level - last_y >= 13:
            shown = f"{ceiling.label}, {_rate(ceiling.flops_per_s)}FLOP/s"
            canvas.text(
                x.end, level - 4, shown, "soft", text_anchor="end", font_size=10.5, halo=True
            )
            last_y = level
    if roof.ridge and x.low < roof.ridge < x.high:
        tip = f"{roof.label}: ridge at {roof.ridge:.3g} operations a byte"
        canvas.dot(x(roof.ridge), y(top), 3.5, role, tip)


def _band(
    canvas: Canvas,
    x: LogScale,
    y: LogScale,
    bandwidth: float,
    peak: float,
    band: tuple[float, float],
    role: str,
) -> None:
    """Shade between the roofs with bandwidth and peak times either factor."""
    edges = []
    for factor in band:
        start = max(x.low, y.low / (bandwidth * factor))
        corners = (start, min(peak / bandwidth, x.high), x.high)
        edges.append([(x(v), y(factor * min(v * bandwidth, peak))) for v in corners])
    canvas.area([*edges[0], *reversed(edges[1])], role, opacity=0.1)


def _slope(
    canvas: Canvas,
    x: LogScale,
    y: LogScale,
    slope: Slope,
    top: float,
    role: str,
    *,
    is_main: bool,
    is_labelled: bool,
) -> None:
    start = max(x.low, y.low / slope.bytes_per_s)
    end = min(x.high, top / slope.bytes_per_s, y.high / slope.bytes_per_s)
    if end <= start:
        return
    ends = [(x(v), y(v * slope.bytes_per_s)) for v in (start, end)]
    thick = 2.0 if is_main else 1.0
    canvas.path(ends, role, stroke_width=thick, stroke_dasharray=None if is_main else "5 4")
    if not is_labelled:
        return
    (x0, y0), (x1, y1) = ends
    angle = math.degrees(math.atan2(y1 - y0, x1 - x0))
    at = 0.04 if is_main else 0.3
    px, py = x0 + at * (x1 - x0), y0 + at * (y1 - y0) - 6
    shown = f"{slope.label}, {slope.bytes_per_s / 1e9:,.4g} GB/s"
    turn = f"rotate({angle:.1f} {px:.1f} {py:.1f})"
    canvas.text(px, py, shown, "soft", font_size=10.5, transform=turn, halo=True)


def _point(
    canvas: Canvas, x: LogScale, y: LogScale, roof: Roofline, point: Point, role: str
) -> None:
    px, py = x(point.intensity), y(point.flops_per_s)
    tip = (
        f"{roof.label}, {point.label}: {point.intensity:.3g} operations a byte,"
        f" {_rate(point.flops_per_s)}FLOP/s, {1e3 * point.seconds:.3g} ms"
    )
    if point.kind == "measured":
        canvas.dot(
            px,
            py,
            3.5,
            "panel",
            tip,
            stroke=canvas.theme[role],
            stroke_width=1.6,
            class_=f"f-panel s-{role}",
        )
        return
    if point.kind == "component":
        canvas.dot(px, py, 3.2, role, tip, opacity=0.45)
        return
    if point.low and point.high:
        canvas.line(px, y(point.low), px, y(point.high), role, stroke_width=6, opacity=0.3)
    if point.left and point.right:
        canvas.line(x(point.left), py, x(point.right), py, role, stroke_width=6, opacity=0.3)
    canvas.dot(px, py, 6.5, role, tip)
    is_right = px > x.end - 90
    canvas.text(
        px + (-11 if is_right else 11),
        py + 4,
        point.phase,
        "ink",
        font_size=12,
        font_weight=600,
        halo=True,
        text_anchor="end" if is_right else "start",
    )


def _key(canvas: Canvas) -> None:
    left = canvas.width - RIGHT - 284
    if left < 110:
        return
    entries = (("phase", 6.0, 1.0), ("component", 3.2, 0.45), ("measured", 3.5, 1.0))
    for i, (name, radius, opacity) in enumerate(entries):
        at = left + i * 98
        if name == "measured":
            canvas.add(
                "circle",
                cx=at,
                cy=14.0,
                r=radius,
                class_="f-panel s-a",
                fill=canvas.theme["panel"],
                stroke=canvas.theme["a"],
                stroke_width=1.6,
            )
        else:
            canvas.add(
                "circle",
                cx=at,
                cy=14.0,
                r=radius,
                class_="f-a",
                fill=canvas.theme["a"],
                opacity=opacity,
            )
        canvas.text(at + 11, 18, name, "soft", font_size=11)
