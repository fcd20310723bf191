"""llama-bench's machine-readable output: json, jsonl, csv and sql, over its versions.

Fields come and go (`use_mmap` became `load_mode`, `n_depth` and `n_cpu_moe` were added), so all
but the rate and the lengths may be missing.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from tokcast.measurements.importers.rows import GIB, Imported, Skipped, number, row
from tokcast.measurements.schema import Measurement
from tokcast.predictor.errors import InputError

_INSERT = re.compile(
    r"INSERT\s+INTO\s+\w+\s*\((?P<columns>[^)]*)\)\s*VALUES\s*\((?P<values>.*?)\)\s*;", re.I | re.S
)
_SQL_VALUE = re.compile(r"'((?:[^']|'')*)'|([^,\s][^,]*)")


def _device(r: Mapping[str, Any]) -> str:
    gpu = str(r.get("gpu_info") or "").strip()
    on_cpu = str(r.get("n_gpu_layers", "")) == "0" or not gpu
    return str(r.get("cpu_info") or "") if on_cpu else gpu


def _count(r: Mapping[str, Any], name: str) -> float | None:
    value = number(r.get(name))
    return None if value is None or value < 0 else value


def measurement(r: Mapping[str, Any], name: str) -> Measurement:
    """Return the row of one llama-bench record; raises InputError where it holds no figure."""
    n_prompt, n_gen = number(r.get("n_prompt")) or 0.0, number(r.get("n_gen")) or 0.0
    if (n_prompt > 0) == (n_gen > 0):
        raise InputError(f"pp{n_prompt:g}+tg{n_gen:g}: expected a prompt or a generation alone")
    n_bytes, n_params = number(r.get("model_size")), number(r.get("model_n_params"))
    commit, build = r.get("build_commit"), r.get("build_number")
    device = _device(r)
    return row(
        {
            "source": name,
            "device": device,
            "n_devices": max(1, len([d for d in device.split(",") if d.strip()])),
            "runtime": "llama.cpp",
            "backend_raw": str(r.get("backends") or r.get("backend") or ""),
            "build": f"{commit} ({build})" if commit else "",
            "date": str(r.get("test_time") or "")[:19].replace("T", " "),
            "model": str(r.get("model_type") or ""),
            "model_file": str(r.get("model_filename") or "").replace("\\", "/").rpartition("/")[2],
            "size_gib": None if n_bytes is None else n_bytes / GIB,
            "params_b": None if n_params is None else n_params / 1e9,
            "phase": "prefill" if n_prompt > 0 else "decode",
            "n_prompt": n_prompt,
            "n_gen": n_gen,
            "n_depth": number(r.get("n_depth")) or 0.0,
            "n_batch": _count(r, "n_batch"),
            "n_ubatch": _count(r, "n_ubatch"),
            "flash_attn": _count(r, "flash_attn"),
            "type_k": str(r.get("type_k") or "").upper(),
            "type_v": str(r.get("type_v") or "").upper(),
            "n_threads": _count(r, "n_threads"),
            "ngl": str(r.get("n_gpu_layers", "")),
            "placement": _placement(r),
            "tok_s": number(r.get("avg_ts")),
            "tok_s_std": number(r.get("stddev_ts")),
        }
    )


def _placement(r: Mapping[str, Any]) -> str:
    found = []
    if (number(r.get("n_cpu_moe")) or 0) > 0:
        found.append(f"n_cpu_moe={r['n_cpu_moe']}")
    overrides = str(r.get("tensor_buft_overrides") or "none")
    if overrides.lower() not in ("none", ""):
        found.append(f"ot={overrides}")
    split = [p for p in re.split(r"[/;,]", str(r.get("tensor_split") or "")) if number(p)]
    if len(split) > 1:
        found.append(f"ts={r['tensor_split']}")
    return ";".join(found)


def from_records(records: Iterable[Mapping[str, Any]], name: str, kind: str) -> Imported:
    """Return the rows of records, those without a figure with their reason."""
    rows, skipped = [], []
    for n, record in enumerate(records, 1):
        try:
            rows.append(measurement(record, name))
        except InputError as error:
            skipped.append(Skipped(f"record {n}", str(error)))
    return Imported(kind, tuple(rows), tuple(skipped))


def read_json(text: str, name: str) -> list[Mapping[str, Any]]:
    """Return the records of a JSON list, cut off ones included up to where they were cut."""
    decoder = json.JSONDecoder()
    try:
        whole = decoder.decode(text)
    except json.JSONDecodeError as error:
        found = whole_objects(text, decoder)
        if not found:
            raise InputError(f"{name}: not JSON: {error}") from error
        return found
    listed = whole if isinstance(whole, list) else [whole]
    return [r for r in listed if isinstance(r, dict)]


def whole_objects(text: str, decoder: json.JSONDecoder) -> list[Mapping[str, Any]]:
    """Return the objects of a list that was cut off, or of one object a line."""
    found: list[Mapping[str, Any]] = []
    at = text.find("{")
    while at >= 0:
        try:
            value, end = decoder.raw_decode(text, at)
        except json.JSONDecodeError:
            break
        found.append(value)
        at = text.find("{", end)
    return found


def read_csv(text: str) -> list[Mapping[str, Any]]:
    """Return the records of llama-bench's CSV; lines of a log around it are left out."""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if "avg_ts" in line), 0)
    return [dict(r) for r in csv.DictReader(io.StringIO("\n".join(lines[start:])))]


def read_sql(text: str) -> list[Mapping[str, Any]]:
    """Return the records of llama-bench's INSERT statements."""
    found: list[Mapping[str, Any]] = []
    for match in _INSERT.finditer(text):
        columns = [c.strip() for c in match["columns"].split(",")]
        values = [
            quoted.replace("''", "'") if plain == "" else plain.strip()
            for quoted, plain in _SQL_VALUE.findall(match["values"])
        ]
        found.append(dict(zip(columns, values, strict=False)))
    return found
