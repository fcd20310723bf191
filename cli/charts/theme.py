"""The colours of drawings that stand alone; the page's style sheet has the same by role."""

from collections.abc import Mapping

from tokcast.predictor.errors import InputError

Theme = Mapping[str, str]

SERIES = ("a", "b", "c", "d")
LIGHT: Theme = {
    "panel": "#ffffff",
    "ink": "#1b1f27",
    "soft": "#5c6472",
    "faint": "#e6e8ec",
    "axis": "#b9bfc9",
    "roof": "#39414f",
    "a": "#2563d9",
    "b": "#c2570c",
    "c": "#0b7f5f",
    "d": "#a3348f",
    "memory": "#2563d9",
    "compute": "#c2570c",
    "overhead": "#7a8290",
    "good": "#0b7f5f",
    "bad": "#bf2c38",
}
DARK: Theme = {
    "panel": "#161a21",
    "ink": "#eceef2",
    "soft": "#a2abb9",
    "faint": "#272d37",
    "axis": "#4b5462",
    "roof": "#c3cad6",
    "a": "#6ea0ff",
    "b": "#f59b52",
    "c": "#3fc79b",
    "d": "#e07fcd",
    "memory": "#6ea0ff",
    "compute": "#f59b52",
    "overhead": "#8a94a3",
    "good": "#3fc79b",
    "bad": "#ff7d86",
}
THEMES: Mapping[str, Theme] = {"light": LIGHT, "dark": DARK}


def theme_of(name: str) -> Theme:
    """Return a theme by name; raises InputError for another."""
    if name not in THEMES:
        raise InputError(f"theme {name!r}: expected one of {', '.join(THEMES)}")
    return THEMES[name]
