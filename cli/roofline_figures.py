"""`tokcast roofline figures` and the formulas of docs/roofline.md: ours beside the published."""

from collections.abc import Iterator
from typing import Any

from tokcast.cli.render import Report, Table, render
from tokcast.predictor.errors import InputError
from tokcast.predictor.roofs.records import TOLERANCE, Figure, Formula, Section, sections

_RELATION = {"equals": "", "at least": "≥ ", "at most": "≤ "}


def short(value: float) -> str:
    """Return a figure with three significant digits, thousands separated."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _off(figure: Figure, ours: float) -> str:
    if figure.sets:
        return "an input"
    if figure.relation != "equals":
        return "kept" if figure.holds(ours) else "broken"
    return f"{100 * (ours / figure.published - 1):+.1f} %"


def _words(figure: Figure) -> Iterator[str]:
    if figure.sets:
        yield f"{figure.sets} is set by it."
    if figure.explained:
        yield figure.explained


def _chosen(text: str | None) -> tuple[Section, ...]:
    if text is None:
        return sections()
    found = tuple(s for s in sections() if text.lower() in s.title.lower())
    if not found:
        titles = ", ".join(s.title for s in sections())
        raise InputError(f"{text!r}: no section of that name; expected a part of: {titles}")
    return found


def _figures(chosen: tuple[Section, ...]) -> Iterator[tuple[Section, Formula, Figure, float]]:
    for section in chosen:
        for formula in section.formulas:
            for figure in formula.figures:
                yield section, formula, figure, figure.value()


def _row(figure: Figure, ours: float) -> tuple[str, ...]:
    shown = f"{_RELATION[figure.relation]}{short(ours)}"
    return (figure.what, short(figure.published), shown, figure.unit, _off(figure, ours))


def _record(section: Section, formula: Formula, figure: Figure, ours: float) -> dict[str, Any]:
    return {
        "section": section.title,
        "formula": formula.name,
        "figure": figure.what,
        "published": figure.published,
        "ours": ours,
        "unit": figure.unit,
        "relation": figure.relation,
        "holds": figure.holds(ours),
        "explained": figure.explained,
        "sets": figure.sets,
        "source": formula.source,
    }


COLUMNS = ("figure", "published", "ours", "unit", "off")
_RIGHT = frozenset({"published", "ours", "off"})


def report(text: str | None) -> Report:
    """Return every published figure beside ours; raises InputError for an unknown section."""
    chosen = _chosen(text)
    found = list(_figures(chosen))
    free = [(figure, ours) for _, _, figure, ours in found if not figure.sets]
    n_held = sum(figure.holds(ours) for figure, ours in free)
    tables = tuple(
        Table(
            COLUMNS,
            tuple(_row(figure, ours) for of, _, figure, ours in found if of is section),
            _RIGHT,
        )
        for section in chosen
        if any(of is section for of, *_ in found)
    )
    notes = tuple(
        f"{figure.what}: {words}" for _, _, figure, _ in found for words in _words(figure)
    )
    records = [_record(*entry) for entry in found]
    verdict = (
        f"{n_held} of {len(free)} published figures come out within {100 * TOLERANCE:.0f} %,"
        f" or keep their bound; {len(found) - len(free)} more set an input",
    )
    return Report(verdict, tables, notes, {"figures": records}, records)


def run(text: str | None, output: str) -> int:
    """Print the figures; exit code 1 if one neither holds nor is explained."""
    made = report(text)
    print(render(made, output))
    return 0 if all(r["holds"] or r["explained"] for r in made.records) else 1


def page() -> str:
    """Return the formulas, units, sources and figures as the Markdown of docs/roofline.md."""
    return "\n".join(line for s in sections() for line in _section_lines(s))


def _section_lines(section: Section) -> Iterator[str]:
    yield f"### {section.title}\n"
    for formula in section.formulas:
        yield f"**{formula.name}**, {formula.unit}: `{formula.formula}`\n"
        yield f"{formula.where} Source: {formula.source}.\n"
        if formula.figures:
            yield from _figure_lines(formula)


def _figure_lines(formula: Formula) -> Iterator[str]:
    yield "| figure | published | here | unit | off | inputs |"
    yield "|---|--:|--:|---|--:|---|"
    for figure in formula.figures:
        cells = (*_row(figure, figure.value()), _inputs(figure))
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    yield ""
    for figure in formula.figures:
        for words in _words(figure):
            yield f"{figure.what}: {words}\n"


def _inputs(figure: Figure) -> str:
    return ", ".join(f"{name} {_value(value)}" for name, value in figure.arguments.items())


def _value(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:.4g}"
