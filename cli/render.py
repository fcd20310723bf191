"""Turning results into text: the only place that knows display units."""

import io
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tokcast.predictor.errors import InputError

FORMATS = ("table", "json", "jsonl", "csv", "md")
GIB = 1024.0**3
# Text is laid out for at most so many columns however wide the terminal is, and no fewer.
WIDEST, NARROWEST, USUAL = 100, 60, 80
GAP = "  "
# A column of text is never made narrower than this.
_SHORTEST_CELL = 12


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
    the tables where another table is customary (llama-bench's, for predictions). `command` are
    lines to copy. Text may hold anything: it is made printable here.
    """

    verdict: tuple[str, ...]
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    data: Mapping[str, Any]
    records: Sequence[Mapping[str, Any]]
    markdown: Table | None = field(default=None)
    command: str = ""


def plain(text: str) -> str:
    """Return text with control characters escaped, so that a file can't drive the terminal."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def cut(text: str, n: int) -> str:
    """Return text of at most n characters; an ellipsis stands for what is left out."""
    return text if len(text) <= n else text[: n - 1].rstrip() + "…"


def squeeze(text: str, n: int) -> str:
    """Return text of at most n characters with what is left out taken from its middle."""
    if len(text) <= n:
        return text
    n_end = n // 2
    return text[: n - n_end - 1] + "…" + text[-n_end:]


def width() -> int:
    """Return the columns to lay text out for: `COLUMNS`, else the terminal's, within bounds."""
    given = os.environ.get("COLUMNS", "")
    try:
        columns = int(given) if given.isdigit() else os.get_terminal_size(1).columns
    except OSError:
        columns = USUAL
    return min(WIDEST, max(NARROWEST, columns or USUAL))


def wrap(text: str, indent: str = GAP, columns: int = 0) -> list[str]:
    """Return the text as lines that fit the screen or so many columns.

    Lines but the first are indented, further than the text itself is.
    """
    start = text[: len(text) - len(text.lstrip(" "))]
    lines, line = [], start
    for word in text.split():
        if line.strip() and len(line) + 1 + len(word) > (columns or width()):
            lines.append(line)
            line = start + indent + word
        else:
            line = f"{line} {word}" if line.strip() else line + word
    return [*lines, line]


def layout(table: Table) -> list[str]:
    """Return a table as aligned lines under a header.

    Where it is too wide for the screen, its columns of text give way, the widest first: the last
    one by wrapping, another by an ellipsis in each cell's middle.
    """
    rows = [tuple(plain(cell) for cell in row) for row in (table.columns, *table.rows)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(table.columns))]
    over = sum(widths) + len(GAP) * (len(widths) - 1) - width()
    texts = [i for i, name in enumerate(table.columns) if name not in table.right]
    for i in sorted(texts, key=lambda i: -widths[i]):
        given = min(max(over, 0), max(widths[i] - _SHORTEST_CELL, 0))
        widths[i] -= given
        over -= given

    def lines(row: Sequence[str]) -> Iterator[str]:
        *cells, last = (
            cell.rjust(w) if name in table.right else cell
            for cell, w, name in zip(row, widths, table.columns, strict=True)
        )
        start = [squeeze(cell, w).ljust(w) for cell, w in zip(cells, widths, strict=False)]
        for part in wrap(last, "", widths[-1]):
            yield GAP.join([*start, part]).rstrip()
            start = [" " * len(cell) for cell in start]

    return [line for row in rows for line in lines(row)]


# A name from a file opens no column, tag or link in markdown.
_INERT = str.maketrans({c: "\\" + c for c in "|<["})


def _markdown(table: Table) -> list[str]:
    rule = tuple("--:" if name in table.right else "---" for name in table.columns)
    rows = (table.columns, rule, *table.rows)
    return ["| " + " | ".join(plain(c).translate(_INERT) for c in row) + " |" for row in rows]


def _csv(records: Sequence[Mapping[str, Any]]) -> str:
    import csv

    names = list(dict.fromkeys(name for record in records for name in record))
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_csv_cell(record.get(name)) for name in names] for record in records)
    return out.getvalue().rstrip("\n")


def _csv_cell(value: Any) -> str:
    if value is None:
        return ""
    return plain(value) if isinstance(value, str) else _json(value)


def _json(value: Any, indent: int | None = None) -> str:
    # ASCII, so that no character of a file's reaches a terminal; not a number is a defect here.
    return json.dumps(value, indent=indent, allow_nan=False)


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(line for text in texts for line in wrap(plain(text)))


def _as_table(report: Report) -> str:
    blocks = [_lines(report.verdict), *("\n".join(layout(t)) for t in report.tables)]
    # Commands are not wrapped, so that they can be copied.
    last = [_lines(report.notes), *map(plain, report.command.split("\n"))]
    blocks.append("\n".join(text for text in last if text))
    return "\n\n".join(block for block in blocks if block)


def _as_markdown(report: Report) -> str:
    tables = (report.markdown,) if report.markdown is not None else report.tables
    return "\n\n".join("\n".join(_markdown(t)) for t in tables)


def check_format(output: str) -> None:
    """Raise InputError unless `output` is one of FORMATS."""
    if output not in FORMATS:
        raise InputError(f"-o {output}: unknown format; expected one of {', '.join(FORMATS)}")


def render(report: Report, output: str) -> str:
    """Return the report in one of FORMATS; raises InputError for another."""
    check_format(output)
    if output == "json":
        return _json(report.data, indent=2)
    if output == "jsonl":
        return "\n".join(_json(r) for r in report.records)
    if output == "csv":
        return _csv(report.records)
    return _as_markdown(report) if output == "md" else _as_table(report)


def rate(tok_per_s: float) -> str:
    """Return tokens/s with three significant digits and thousands separated."""
    if tok_per_s >= 100:
        return f"{tok_per_s:,.0f}"
    return f"{tok_per_s:.1f}" if tok_per_s >= 10 else f"{tok_per_s:.2f}"


def size(n_bytes: float) -> str:
    """Return bytes in GiB, MiB or KiB; 0 is just that."""
    if n_bytes >= GIB:
        return f"{n_bytes / GIB:.2f} GiB"
    if n_bytes >= 1024**2:
        return f"{n_bytes / 1024**2:.1f} MiB"
    return f"{n_bytes / 1024:.1f} KiB" if n_bytes else "0"


def params(n: float) -> str:
    """Return a parameter count as llama-bench prints it."""
    return f"{n / 1e9:.2f} B" if n >= 1e9 else f"{n / 1e6:.2f} M"


def count(n: int) -> str:
    """Return tokens, in k of 1024 where that is short."""
    if n < 1024 or n % 256:
        return str(n)
    return f"{n / 1024:.2f}".rstrip("0").rstrip(".") + "k"


def duration(seconds: float) -> str:
    """Return a time in the unit that keeps it short: ms, s, min, h or days."""
    for unit, name in ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s")):
        # Two of a unit at least, so that little is lost to rounding.
        if seconds >= 2 * unit:
            return f"{_three(seconds / unit)} {name}"
    return f"{_three(seconds)} s" if seconds >= 0.995 else f"{1e3 * seconds:.0f} ms"


def _three(value: float) -> str:
    if value >= 99.5:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 9.95 else f"{value:.2f}"
