"""Drawings: well formed whatever they say, with points where they belong."""

import math
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcast.cli.charts.bars import Bar, draw_bars
from tokcast.cli.charts.depth import Curve, draw_depth, value_at
from tokcast.cli.charts.roofline import Ceiling, Point, Roofline, Slope, draw_roofline
from tokcast.cli.charts.scales import DepthScale, LinearScale, LogScale, depths, nice, top_of
from tokcast.cli.charts.svg import Canvas, text_of
from tokcast.cli.charts.theme import DARK, LIGHT, THEMES, theme_of
from tokcast.predictor.errors import InputError

SVG = "{http://www.w3.org/2000/svg}"
ROOF = Roofline(
    "a host",
    (Slope("GDDR", 1e12), Slope("link", 3e10)),
    (Ceiling("INT8", 6e14), Ceiling("FP32", 8e13)),
    (
        Point("decode", "decode", "phase", 1e10, 5e9, 0.01, low=8e11, high=1.2e12),
        Point("decode, ffn", "decode", "component", 8e9, 3e9, 0.006),
        Point("measured", "decode", "measured", 1e10, 5e9, 0.009),
    ),
)
CURVE = Curve("m on h", (0, 1024, 4096), (100.0, 90.0, 60.0), (80.0, 70.0, 50.0), (120, 110, 75))


def circles(svg: str) -> list[ET.Element]:
    return ET.fromstring(svg).findall(f".//{SVG}circle")


@given(st.text(max_size=40))
def test_any_text_can_be_written(text: str) -> None:
    canvas = Canvas(100, 50, text, text, LIGHT, key=(("a", text),))
    canvas.text(1, 2, text)
    canvas.dot(1, 2, 3, "a", text)
    root = ET.fromstring(canvas.render())
    assert len(root.findall(f".//{SVG}script")) == 0
    shown = root.findall(f"{SVG}g/{SVG}text")[0].text or ""
    plain = "".join(c for c in text if c.isprintable() and c not in "\r\n")
    assert all(c in shown for c in plain)


def test_attributes_cannot_be_left() -> None:
    assert text_of("\"'<>&\x00") == "&quot;&#x27;&lt;&gt;&amp;\ufffd"


def test_themes_have_the_same_roles() -> None:
    assert set(LIGHT) == set(DARK)
    assert THEMES["dark"] is DARK
    with pytest.raises(InputError, match="expected one of light, dark"):
        theme_of("pink")


def test_the_style_sheet_has_the_colours_of_the_themes() -> None:
    from pathlib import Path

    import tokcast.cli.web

    folder = Path(tokcast.cli.web.__file__).parent
    css = (folder / "static" / "app.css").read_text(encoding="utf-8")
    light, dark = css.split(':root[data-theme="dark"]', 1)
    for text, theme in ((light, LIGHT), (dark.split("}", 1)[0], DARK)):
        for role, colour in theme.items():
            assert f"--{role}: {colour};" in text


@pytest.mark.parametrize(("value", "expected"), [(0.7, 1.0), (1.0, 1.0), (1.1, 2.0), (23, 25)])
def test_nice(value: float, expected: float) -> None:
    assert nice(value) == pytest.approx(expected)


def test_an_axis_ends_at_a_round_step() -> None:
    assert top_of(274) == pytest.approx(300)
    assert top_of(1.0) == pytest.approx(1.0)
    assert LinearScale(300, 0, 100).ticks() == [0, 100, 200, 300]


def test_logarithmic_pixels() -> None:
    x = LogScale(1, 1000, 0, 300)
    assert [x(v) for v in (1, 10, 1000, 1e9, 1e-9)] == pytest.approx([0, 100, 300, 300, 0])
    assert x.ticks() == pytest.approx([1, 10, 100, 1000])


@given(st.integers(1, 10**6), st.integers(2, 40))
def test_depths_rise_from_zero_to_the_end(high: int, n: int) -> None:
    found = depths(high, n)
    assert found[0] == 0
    assert found[-1] == high
    assert list(found) == sorted(set(found))
    x = DepthScale(high, 50, 450)
    assert x(0) == 50
    assert x(high) == pytest.approx(450)


def test_values_between_are_by_proportion() -> None:
    assert value_at(CURVE, 512) == pytest.approx(95)
    assert value_at(CURVE, 4096) == pytest.approx(60)
    assert value_at(CURVE, 99999) == 60


def test_a_depth_drawing_marks_what_was_asked() -> None:
    svg = draw_depth([CURVE, CURVE], "Generating", at_depth=1024, is_alone=True)
    assert len(circles(svg)) == 2
    root = ET.fromstring(svg)
    assert root.get("data-kind") == "depth"
    assert "100 at depth 0" in (root.get("aria-label") or "")
    assert len(circles(draw_depth([CURVE], "Generating"))) == 0


def test_roofline_points_lie_where_they_should() -> None:
    svg = draw_roofline([ROOF], "Roofline", width=760, height=460)
    root = ET.fromstring(svg)
    by_tip = {c.findtext(f"{SVG}title") or "": c for c in root.iter(f"{SVG}circle")}
    decode = next(c for tip, c in by_tip.items() if "decode: 2 operations a byte" in tip)
    measured = next(c for tip, c in by_tip.items() if "measured" in tip)
    assert decode.get("cx") == measured.get("cx")
    assert float(measured.get("cy") or 0) < float(decode.get("cy") or 0)
    assert ROOF.ridge == 600
    assert any("ridge at 600" in tip for tip in by_tip)


def test_a_host_without_arithmetic_has_slopes_only() -> None:
    bare = Roofline("h", ROOF.slopes[:1], (), ROOF.points)
    assert bare.ridge is None
    assert "FLOP/s" not in (ET.fromstring(draw_roofline([bare], "x")).findtext(f"{SVG}text") or "")


@settings(deadline=None, max_examples=60)
@given(st.floats(1e3, 1e16), st.floats(1e3, 1e16), st.floats(1e-7, 1e4), st.integers(280, 2000))
def test_drawings_stay_inside(flops: float, n_bytes: float, seconds: float, width: int) -> None:
    roof = Roofline(
        "h", ROOF.slopes, ROOF.ceilings, (Point("p", "decode", "phase", flops, n_bytes, seconds),)
    )
    for c in circles(draw_roofline([roof], "x", width=width, height=320)):
        x, y = float(c.get("cx") or math.nan), float(c.get("cy") or math.nan)
        assert 0 <= x <= width
        assert 0 <= y <= 320


def test_bars_are_as_long_as_their_values() -> None:
    bars = [Bar("one", 50, 40, 60, "4 GiB"), Bar("two", 100, 90, 110, is_faded=True)]
    root = ET.fromstring(draw_bars(bars, "Quants"))
    first, second = root.findall(f"{SVG}rect")[1:]
    assert 2 * float(first.get("width") or 0) == pytest.approx(
        float(second.get("width") or 0), abs=0.2
    )
