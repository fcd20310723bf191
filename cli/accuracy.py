"""The page of the held-out error: its sections, and the files that `--save` writes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokcast.cli.plots import draw
from tokcast.cli.render import Report, Table, render
from tokcast.cli.score_tables import (
    coverage_table,
    floor_table,
    ladder_table,
    light_table,
    score_table,
    shot_table,
    sure_table,
)
from tokcast.fits.evaluate import PhaseEvaluation
from tokcast.fits.light import Violation
from tokcast.fits.paper import order_changes

PAGE = "accuracy.md"
DATA = "accuracy.json"
_OPENING = """# How accurate predictions are

This page is written by `tokcast evaluate --save docs` with {coefficients},
as [JSON](accuracy.json) too.
Every figure is of rows that the fit behind it did not see. Errors are percentages of the measured
tokens/s; *host mean* is the mean over chips of each chip's mean error, so that none outweighs
another, and *bias* the median of predicted over measured. What the splits and baselines are is
said in [evaluate](evaluate.md), how a prediction is made in [method](method.md).
"""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with what to know, the tables below it, and the name of its plot."""

    heading: str
    text: str
    tables: tuple[Table, ...]
    plot: str = ""


def _held_out(phase: str, p: PhaseEvaluation) -> Section:
    tables = []
    for split in dict.fromkeys(s.name for s in p.scores):
        found = [s for s in p.scores if s.name == split]
        tables.append(score_table(f"{phase}, {split}", {s.rows: s.ours for s in found}))
        tables.append(sure_table(f"{split}, drawn again", found))
        whole = next(s for s in found if s.rows == "all")
        tables.append(score_table(f"{split}: all rows", {"tokcast": whole.ours, **whole.baselines}))
    if p.floor:
        tables.append(floor_table(f"{phase}, noise floor: pairs", p.floor))
    text = (
        "For each split first our error by set of rows, then the range of 90 % in which it moves"
        " when chips are drawn again, then what simpler predictors make of the same rows. The"
        " noise floor is how far measurements lie apart that share all a user can state."
    )
    return Section(f"{phase.capitalize()}: held out", text, tuple(tables), "scatter")


def _kinds(phase: str, p: PhaseEvaluation) -> Section:
    tables = (score_table(f"{phase} by {key}", classes) for key, classes in p.breakdown.items())
    text = "Rows of chips left out, by what they are. Classes of fewer than ten rows are not shown."
    return Section(f"{phase.capitalize()}: by kind", text, tuple(tables))


def _ranges(phase: str, p: PhaseEvaluation) -> Section:
    text = (
        "How often the ranges hold, made from the errors on the chips of other folds, by what was"
        " left out: the model on this chip (same host), the chip (same chip family), its family"
        " (spec sheet only), and the model everywhere (new model). They are made to hold on a chip"
        " drawn like those measured, so that the host mean is what should come near the level;"
        " *upper/lower* is the width."
    )
    table = coverage_table(f"{phase}, range", p.coverage)
    return Section(f"{phase.capitalize()}: ranges", text, (table,))


def _few(phase: str, p: PhaseEvaluation) -> Section:
    text = (
        "Chips left out, k rows given back at random, the others scored; means over five draws."
        " First of a chip under one backend and runtime, whoever measured it; then of one"
        " author's rows with one driver stack, which is nearer to a machine of one's own."
        " *Same hosts* have more than ten rows."
    )
    table = shot_table(f"{phase}, rows given back", p.shots)
    return Section(f"{phase.capitalize()}: a few measurements", text, (table,), "curve")


def _paper(phase: str, p: PhaseEvaluation) -> Section:
    tables = [
        score_table(f"{phase}, {protocol}", scores)
        for protocol, scores in p.paper.items()
        if scores
    ]
    text = (
        "Rooflines whose factors by file type come from reference models: two thirds of a host's"
        " own models for its others, or all other hosts. On three hosts of its own the paper that"
        " proposed them reports 11.6, 16.8 and 36.0 % in decode and 18.7, 22.2 and 108.2 % in"
        " prefill, its hosts left out."
    )
    return Section(f"{phase.capitalize()}: rooflines with factors", text, tuple(tables))


def _order(phase: str, p: PhaseEvaluation) -> Section:
    swapped, shared = order_changes(p.ladder)
    text = (
        f"Types by speed where host, model, runtime and lengths are the same, Q4_K_M being 1. Of"
        f" {shared} comparisons of two types on two backends or runtimes that both have them,"
        f" {swapped} change the order: which file is the fastest is not a property of the file."
    )
    table = ladder_table(f"{phase}, ladder", p.ladder)
    return Section(f"{phase.capitalize()}: file types by speed", text, (table,), "ladder")


def sections(
    phases: Mapping[str, PhaseEvaluation], above: Sequence[Violation]
) -> tuple[Section, ...]:
    """Return the page's sections."""
    made = [
        part(phase, p)
        for phase, p in phases.items()
        for part in (_held_out, _kinds, _ranges, _few, _paper, _order)
    ]
    text = (
        "Measurements faster than the chip's published peaks allow, otherwise clean: the row, the"
        " chip's entry or the bytes are wrong. They are kept out."
    )
    table = (light_table("above the ceiling", above),) if above else ()
    return (*made, Section("Faster than light", text if above else "None.", table))


def _markdown(verdict: str, made: Sequence[Section], plots: Sequence[str], digest: str) -> str:
    blocks = [_OPENING.format(coefficients=f"coefficients {digest}"), f"{verdict}.\n"]
    for section in made:
        phase = section.heading.split(":")[0].lower()
        blocks.append(f"## {section.heading}\n\n{section.text}\n")
        picture = f"accuracy-{section.plot}-{phase}.svg"
        if picture in plots:
            blocks.append(f"![{section.heading}]({picture})\n")
        blocks += [
            render(Report((), (table,), (), {}, []), "md") + "\n" for table in section.tables
        ]
    return "\n".join(blocks)


def save(
    folder: Path,
    verdict: str,
    made: Sequence[Section],
    phases: Mapping[str, PhaseEvaluation],
    data: Mapping[str, Any],
) -> list[str]:
    """Write the page, its plots and the JSON; return what to say about it."""
    plots = draw(folder, phases)
    text = _markdown(verdict, made, plots or [], data["coefficients"])
    (folder / PAGE).write_text(text, encoding="utf-8")
    (folder / DATA).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")
    notes = [f"Written to {folder / PAGE} and {DATA}."]
    if plots is None:
        notes.append('Without plots: matplotlib is missing; pip install "tokcast[plots]" for them.')
    return notes
