"""Measured runs as they come: JSON lines, or CSV with a header."""

import csv
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tokcast.cli.render import cut
from tokcast.predictor.errors import InputError
from tokcast.predictor.precision.adapt import Run

LONGEST_LINE, DEEPEST = 1 << 16, 1 << 24
# Names of the same column in what other programs write; llama-bench's among them.
_COLUMNS = {
    "plan": ("plan", "file_type", "quant"),
    "tok_per_s": ("tok_per_s", "avg_ts"),
    "n_depth": ("n_depth",),
    "outlier": ("outlier", "activation_outlier"),
}


def runs_of(lines: Iterable[str], name: str) -> Iterator[Run]:
    """Yield the runs of JSON lines, or of CSV with a header, as they come; raises InputError."""
    columns: list[str] = []
    for n, line in enumerate(lines, 1):
        text, where = line.strip(), f"{name} line {n}"
        if len(text) > LONGEST_LINE:
            raise InputError(f"{where}: expected at most {LONGEST_LINE} characters")
        if not text:
            continue
        if text.startswith("{"):
            yield _run(_json(text, where), where)
        elif columns:
            cells = next(csv.reader([text]))
            yield _run(dict(zip(columns, cells, strict=False)), where)
        else:
            columns = [cell.strip() for cell in next(csv.reader([text]))]
            if not set(columns) & set(_COLUMNS["plan"]):
                raise InputError(
                    f"{where}: {cut(text, 40)!r}; expected JSON lines, or a header with plan,"
                    " tok_per_s and n_depth"
                )


def _json(text: str, where: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InputError(f"{where}: {cut(text, 40)!r} is no JSON object; expected one a line")
    return found


def _run(row: Mapping[str, Any], where: str) -> Run:
    plan = _cell(row, "plan")
    if not isinstance(plan, str) or not plan.strip():
        raise InputError(f"{where}: no plan; expected the name of the plan that was run")
    speed = _number(row, "tok_per_s", where)
    if speed is None or speed <= 0:
        raise InputError(f"{where}: tok_per_s is {speed}; expected a speed above 0")
    depth = _number(row, "n_depth", where) or 0.0
    if not 0 <= depth <= DEEPEST or depth != int(depth):
        raise InputError(f"{where}: n_depth is {depth:g}; expected whole tokens up to {DEEPEST}")
    outlier = _number(row, "outlier", where)
    if outlier is not None and outlier < 0:
        raise InputError(f"{where}: outlier is {outlier:g}; expected 0 or more")
    return Run(plan.strip(), speed, int(depth), outlier)


def _cell(row: Mapping[str, Any], column: str) -> Any:
    return next((row[name] for name in _COLUMNS[column] if row.get(name) not in (None, "")), None)


def _number(row: Mapping[str, Any], column: str, where: str) -> float | None:
    value = _cell(row, column)
    if value is None:
        return None
    try:
        found = float("nan") if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found):
        raise InputError(f"{where}: {column} is {cut(str(value), 20)!r}; expected a number")
    return found
