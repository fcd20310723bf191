"""SVG as text, element by element, with everything escaped."""

import re
from dataclasses import dataclass, field
from html import escape

from tokcast.cli.charts.theme import Theme

FONT = "Inter, 'Segoe UI', 'Helvetica Neue', Roboto, 'DejaVu Sans', Arial, sans-serif"
# Characters that XML 1.0 has no way to write, not even escaped.
_UNWRITABLE = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def text_of(value: str) -> str:
    """Return text as it may stand in SVG, in an attribute as well."""
    return escape(_UNWRITABLE.sub("\ufffd", value))


def number(value: float) -> str:
    """Return a coordinate with a tenth of a pixel."""
    return f"{value:.1f}".removesuffix(".0")


def _attributes(pairs: dict[str, object]) -> str:
    found = []
    for name, value in pairs.items():
        if value is None:
            continue
        shown = number(value) if isinstance(value, float) else text_of(str(value))
        found.append(f' {name.rstrip("_").replace("_", "-")}="{shown}"')
    return "".join(found)


@dataclass(slots=True)
class Canvas:
    """A drawing of `width` x `height` pixels under construction.

    Every element names its colour by role: a class that the page's style sheet paints, and the
    theme's own colour for a file that stands alone. Such a file has a `key` of (role, label) and
    its title above what is drawn.
    """

    width: float
    height: float
    title: str
    description: str
    theme: Theme
    data: dict[str, object] = field(default_factory=dict)
    key: tuple[tuple[str, str], ...] = ()
    _parts: list[str] = field(default_factory=list)

    def add(self, tag: str, content: str = "", /, **attributes: object) -> None:
        """Add an element; `content` is markup already."""
        opening = f"<{tag}{_attributes(attributes)}"
        self._parts.append(f"{opening}>{content}</{tag}>" if content else f"{opening}/>")

    def open(self, **attributes: object) -> None:
        """Start a group."""
        self._parts.append(f"<g{_attributes(attributes)}>")

    def close(self) -> None:
        """End the group."""
        self._parts.append("</g>")

    def line(self, x1: float, y1: float, x2: float, y2: float, role: str, **more: object) -> None:
        """Add a straight line."""
        more = {"stroke_width": 1, **more}
        self.add(
            "line", x1=x1, y1=y1, x2=x2, y2=y2, class_=f"s-{role}", stroke=self.theme[role], **more
        )

    def path(self, points: list[tuple[float, float]], role: str, **more: object) -> None:
        """Add a polyline."""
        more = {"stroke_width": 2, "stroke_linejoin": "round", "stroke_linecap": "round", **more}
        drawn = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)
        self.add("path", d=drawn, fill="none", class_=f"s-{role}", stroke=self.theme[role], **more)

    def area(self, points: list[tuple[float, float]], role: str, **more: object) -> None:
        """Add a filled shape."""
        drawn = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points) + "Z"
        self.add("path", d=drawn, class_=f"f-{role}", fill=self.theme[role], **more)

    def rect(self, x: float, y: float, w: float, h: float, role: str, **more: object) -> None:
        """Add a rectangle."""
        more = {"class_": f"f-{role}", "fill": self.theme[role], **more}
        self.add("rect", x=x, y=y, width=w, height=h, **more)

    def text(self, x: float, y: float, text: str, role: str = "ink", **more: object) -> None:
        """Add a line of text; it may hold anything."""
        more = {"font_size": 12, **more}
        if more.pop("halo", False):
            # A rim in the ground's colour keeps text readable over lines.
            more |= {"paint_order": "stroke", "stroke": self.theme["panel"], "stroke_width": 4}
            more["class_"] = f"f-{role} s-panel"
        more = {"class_": f"f-{role}", **more}
        self.add("text", text_of(text), x=x, y=y, fill=self.theme[role], **more)

    def dot(self, x: float, y: float, r: float, role: str, tip: str, **more: object) -> None:
        """Add a point that says what it is."""
        content = f"<title>{text_of(tip)}</title>"
        rim = {"stroke": self.theme["panel"], "stroke_width": 1.5}
        more = {"class_": f"f-{role} s-panel", "fill": self.theme[role], **rim, **more}
        self.add("circle", content, cx=x, cy=y, r=r, **more)

    def render(self) -> str:
        """Return the drawing as a whole SVG document."""
        lines, extra = self._heading()
        height = number(self.height + extra)
        head = _attributes(
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "width": number(self.width),
                "height": height,
                "viewBox": f"0 0 {number(self.width)} {height}",
                "role": "img",
                "font-family": FONT,
                "aria-label": f"{self.title}. {self.description}",
                **{f"data-{name}": value for name, value in self.data.items()},
            }
        )
        about = f"<title>{text_of(self.title)}</title><desc>{text_of(self.description)}</desc>"
        ground = f'<rect class="f-panel" width="100%" height="100%" fill="{self.theme["panel"]}"/>'
        body = "".join(self._parts)
        if extra:
            body = f'{lines}<g transform="translate(0 {number(extra)})">{body}</g>'
        return f"<svg{head}>{about}{ground}{body}</svg>"

    def _heading(self) -> tuple[str, float]:
        """Return title and key of a file that stands alone, and their height."""
        if not self.key:
            return "", 0.0
        top = Canvas(self.width, 0, "", "", self.theme)
        top.text(12, 24, self.title, font_size=15, font_weight=650)
        for i, (role, label) in enumerate(self.key):
            top.rect(12, 37 + 18 * i, 10, 10, role, rx=2.5)
            top.text(28, 46 + 18 * i, label, "soft")
        return "".join(top._parts), 38.0 + 18 * len(self.key)
