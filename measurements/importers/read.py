"""Reading any of the formats tokcast imports."""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tokcast.measurements.importers import bench_records, others
from tokcast.measurements.importers.bench_table import read_tables
from tokcast.measurements.importers.rows import Imported, Skipped
from tokcast.measurements.schema import COLUMNS, BadRow, Measurement, open_text, read_rows
from tokcast.predictor.errors import InputError

EXPECTED = (
    "llama-bench output (md, csv, json, jsonl, sql), mlx_lm.benchmark or LocalScore output,"
    " or the columns of docs/measure.md"
)


def _own(text: str, name: str) -> Imported:
    rows: list[Measurement] = []
    skipped: list[Skipped] = []
    for item in read_rows(io.StringIO(text), name):
        if isinstance(item, BadRow):
            skipped.append(Skipped(f"line {item.line}", item.reason))
        else:
            rows.append(item)
    return Imported("interchange CSV", tuple(rows), tuple(skipped))


def _of_json(records: list[Mapping[str, Any]], name: str, kind: str) -> Imported:
    if records and "accelerator_info" in records[0]:
        return others.read_localscore(records[0], name)
    return bench_records.from_records(records, name, kind)


def _is_own(text: str) -> bool:
    columns = set(text[:4096].splitlines()[0].strip("\ufeff").split(",")) if text.strip() else set()
    return {"phase", "tok_s", "chip"} <= columns and bool(columns & set(COLUMNS))


def read_text(text: str, name: str) -> Imported:
    """Return the figures in a text; raises InputError where its format isn't known."""
    start = text.lstrip("\ufeff \t\r\n")
    if _is_own(start):
        return _own(start, name)
    if start.startswith(("[", "{")):
        kind = "llama-bench json" if start.startswith("[") else "llama-bench jsonl"
        return _of_json(bench_records.read_json(start, name), name, kind)
    if "INSERT INTO" in text.upper():
        return bench_records.from_records(bench_records.read_sql(text), name, "llama-bench sql")
    if "avg_ts" in text and "n_prompt" in text and '"avg_ts"' not in text:
        return bench_records.from_records(bench_records.read_csv(text), name, "llama-bench csv")
    if "prompt_tps=" in text:
        return others.read_mlx(text, name)
    if "|" in text and "pp t/s" in text:
        return others.read_localscore_table(text, name)
    if "|" in text and "t/s" in text:
        return read_tables(text, name)
    return _embedded(text, name)


def _embedded(text: str, name: str) -> Imported:
    """Return the records of JSON that a log surrounds."""
    at = text.find("{")
    found = bench_records.whole_objects(text[max(at, 0) :], json.JSONDecoder()) if at >= 0 else []
    if any("avg_ts" in r for r in found):
        return _of_json(found, name, "llama-bench json")
    raise InputError(f"{name}: no figures found; expected {EXPECTED}")


def read_file(path: Path) -> Imported:
    """Return the figures of a file, gzipped or not; raises InputError as `read_text`."""
    with open_text(path) as stream:
        return read_text(stream.read(), path.name)
