"""The exponents of the scaling laws as a picture: intervals beside the roofline's own."""

from collections.abc import Sequence
from pathlib import Path

from tokcast.cli.charts.svg import Canvas
from tokcast.cli.charts.theme import THEMES
from tokcast.predictor.errors import InputError
from tokcast.predictor.scaling import Exponent, Law

WIDTH, LEFT, RIGHT, ROW, TOP = 760.0, 250.0, 30.0, 20.0, 24.0
LEAST, MOST = -2.0, 2.0


def draw(laws: Sequence[Law], path: str) -> None:
    """Write the picture as SVG; raises InputError where it can't be written."""
    if not path.lower().endswith(".svg"):
        raise InputError(f"--plot {path}: expected a file name that ends with .svg")
    try:
        Path(path).write_text(picture(laws) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"--plot {path}: {error.strerror}; expected a file to write") from None


def _x(value: float) -> float:
    inside = min(max(value, LEAST), MOST)
    return LEFT + (WIDTH - LEFT - RIGHT) * (inside - LEAST) / (MOST - LEAST)


def picture(laws: Sequence[Law]) -> str:
    """Return the SVG: a line an exponent, its 95 % interval, and the roof's own as a tick."""
    lines = [(law, name, e) for law in laws for name, e in law.exponents.items()]
    height = TOP + ROW * len(lines) + 40
    canvas = Canvas(
        WIDTH,
        height,
        "Exponents of the scaling laws",
        "Each with its 95 % interval, beside what the memory roof alone would give.",
        THEMES["light"],
        key=(("a", "exponent, 95 % interval"), ("b", "memory roof alone")),
    )
    foot = TOP + ROW * len(lines)
    for tick in (-2, -1, 0, 1, 2):
        canvas.line(_x(tick), TOP - 8, _x(tick), foot, "faint")
        canvas.text(
            _x(tick), foot + 16, f"{tick:+d}" if tick else "0", "soft", text_anchor="middle"
        )
    for i, (law, name, e) in enumerate(lines):
        _line(canvas, TOP + ROW * i + ROW / 2, f"{law.response}, {law.group}: {name}", e)
    return canvas.render()


def _line(canvas: Canvas, y: float, label: str, e: Exponent) -> None:
    canvas.text(LEFT - 12, y + 4, label, text_anchor="end")
    canvas.line(_x(e.low), y, _x(e.high), y, "a", stroke_width=2)
    if e.roofline is not None:
        canvas.line(_x(e.roofline), y - 7, _x(e.roofline), y + 7, "b", stroke_width=2.5)
    canvas.dot(_x(e.value), y, 4, "a", f"{label} {e.value:+.2f}")
