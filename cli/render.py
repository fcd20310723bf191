"""Turning results into text: the only place that knows display units."""

import csv
import io
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tokcast.predictor.errors import InputError

FORMATS = ("table", "json", "jsonl", "csv", "md")
GIB = 1024.0**3


@dataclass(frozen=True, slots=True)
class Table:
    """Columns by name and rows of display text; columns in `right` are right-aligned."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Report:
    """A command's answer: the verdict, what supports it, and the same as data.

    `data` is what JSON prints; `records` are its flat rows for jsonl and csv; `markdown` replaces
    the tables where another table is customary (llama-bench's, for predictions).
    """

    verdict: tuple[str, ...]
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    data: Mapping[str, Any]
    records: Sequence[Mapping[str, Any]]
    markdown: Table | None = field(default=None)


def plain(text: str) -> str:
    """Return text with control characters escaped, so that a file can't drive the terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def width() -> int:
    """Return the columns to lay text out for: the terminal's, at most 100, at least 60."""
    return min(100, max(60, shutil.get_terminal_size((80, 24)).columns))


def wrap(text: str, indent: str = "  ") -> list[str]:
    """Return the text as lines that fit the screen, continuation lines indented."""
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width():
            lines.append(line)
            line = indent + word
        else:
            line = f"{line} {word}" if line else word
    return [*lines, line]


def layout(table: Table) -> list[str]:
    """Return a table as aligned lines under a header."""
    rows = [table.columns, *table.rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(table.columns))]

    def line(row: Sequence[str]) -> str:
        cells = (
            cell.rjust(w) if name in table.right else cell.ljust(w)
            for cell, w, name in zip(row, widths, table.columns, strict=True)
        )
        return "  ".join(cells).rstrip()

    return [line(row) for row in rows]


def _markdown(table: Table) -> list[str]:
    rule = tuple("--:" if name in table.right else "---" for name in table.columns)
    rows = (table.columns, rule, *table.rows)
    return ["| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in rows]


def _csv(records: Sequence[Mapping[str, Any]]) -> str:
    names = list(dict.fromkeys(name for record in records for name in record))
    out = io.StringIO()
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue().rstrip("\n")


def _as_table(report: Report) -> str:
    blocks = ["\n".join(report.verdict)]
    blocks += ["\n".join(layout(t)) for t in report.tables]
    notes = [line for note in report.notes for line in wrap(note)]
    if notes:
        blocks.append("\n".join(notes))
    return "\n\n".join(block for block in blocks if block)


def _as_markdown(report: Report) -> str:
    tables = (report.markdown,) if report.markdown is not None else report.tables
    return "\n\n".join("\n".join(_markdown(t)) for t in tables)


def render(report: Report, output: str) -> str:
    """Return the report in one of FORMATS; raises InputError for another."""
    if output == "table":
        return _as_table(report)
    if output == "json":
        return json.dumps(report.data, indent=2, ensure_ascii=False)
    if output == "jsonl":
        return "\n".join(json.dumps(r, ensure_ascii=False) for r in report.records)
    if output == "csv":
        return _csv(report.records)
    if output == "md":
        return _as_markdown(report)
    raise InputError(f"-o {output}: unknown format; expected one of {', '.join(FORMATS)}")


def rate(tok_per_s: float) -> str:
    """Return tokens/s with three significant digits and thousands separated."""
    if tok_per_s >= 100:
        return f"{tok_per_s:,.0f}"
    return f"{tok_per_s:.1f}" if tok_per_s >= 10 else f"{tok_per_s:.2f}"


def size(n_bytes: float) -> str:
    """Return bytes in GiB or MiB."""
    gib = n_bytes / GIB
    return f"{gib:.2f} GiB" if gib >= 1 else f"{gib * 1024:.1f} MiB"


def params(n: float) -> str:
    """Return a parameter count as llama-bench prints it."""
    return f"{n / 1e9:.2f} B" if n >= 1e9 else f"{n / 1e6:.2f} M"


def count(n: int) -> str:
    """Return tokens, in k of 1024 where that is exact."""
    return f"{n // 1024}k" if n >= 1024 and n % 1024 == 0 else str(n)
