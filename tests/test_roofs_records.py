"""Published figures come out of the formulas, or the difference is explained."""

import pytest
from cli_tools import good, refused

from tokcast.predictor.errors import InputError
from tokcast.predictor.roofs.records import Figure, section, sections

FIGURES = [
    pytest.param(figure, id=f"{s.title}: {formula.name}: {figure.what}")
    for s in sections()
    for formula in s.formulas
    for figure in formula.figures
]


@pytest.mark.parametrize("figure", FIGURES)
def test_a_published_figure_is_reproduced_or_explained(figure: Figure) -> None:
    ours = figure.value()
    assert ours > 0
    if figure.holds(ours):
        assert not figure.explained or figure.relation != "equals", "explains what needs no reason"
    else:
        assert any(c.isdigit() for c in figure.explained), f"{ours}: explain it in numbers"


def test_every_formula_has_a_unit_symbols_and_a_source() -> None:
    for s in sections():
        for formula in s.formulas:
            assert formula.unit
            assert formula.where.endswith(".")
            assert formula.source
            assert not formula.source.endswith(".")


def test_what_counts_as_reproduced() -> None:
    base = {"what": "x", "published": 100.0, "unit": "s", "call": "", "arguments": {}}
    equal = Figure(**base)
    assert equal.holds(102.9)
    assert not equal.holds(103.1)
    assert Figure(**base, relation="at least").holds(500.0)
    assert not Figure(**base, relation="at least").holds(96.0)
    assert Figure(**base, relation="at most").holds(5.0)
    assert not Figure(**base, relation="at most").holds(104.0)


def test_a_picked_attribute() -> None:
    figure = Figure("x", 3.0, "", "fractions:Fraction", {"numerator": 3}, pick="numerator")
    assert figure.value() == 3


@pytest.mark.parametrize("text", ["title = 1 2", "title = 'x'", "title='x'\n[[formula]]\nname='y'"])
def test_a_damaged_section_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"^my\.toml: .*expected title and \[\[formula\]\]"):
        section(text, "my.toml")


def test_the_command_shows_every_figure() -> None:
    shown = good("roofline", "figures", "-o", "jsonl")
    assert len(shown.splitlines()) == len(FIGURES)
    assert "no section of that name" in refused("roofline", "figures", "weather")
