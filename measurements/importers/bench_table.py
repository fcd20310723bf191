"""llama-bench's tables, from a terminal or pasted into a thread.

Several tables in one text, in quotes or code fences, with or without outer bars; columns in any
order. What the driver printed above a table names its chip.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tokcast.measurements.importers.rows import Imported, Skipped, number, row
from tokcast.measurements.schema import Measurement
from tokcast.predictor.errors import InputError

_TEST = re.compile(r"(?P<what>pp|tg)\s*(?P<n>\d+)\s*(?:@\s*d\s*(?P<depth>\d+))?$", re.I)
_BOTH = re.compile(r"pp\s*\d+\s*\+\s*tg\s*\d+", re.I)
_PLUS_MINUS = re.compile(r"\s*(?:±|Â±|&plusmn;|\+/-|\+-)\s*")
_DEVICE = re.compile(
    r"(?:Device\s+\d+:\s*|ggml_vulkan:\s*\d+\s*=\s*|GPU name:\s*|model name\s*:\s*)"
    r"(?P<name>[^,|(]+)"
)
_BUILD = re.compile(r"build:\s*(?P<build>[0-9a-f]{6,}\s*(?:\(\d+\))?)")
_COLUMNS = {
    "n_threads": "n_threads",
    "threads": "n_threads",
    "th": "n_threads",
    "n_batch": "n_batch",
    "n_ubatch": "n_ubatch",
    "type_k": "type_k",
    "type_v": "type_v",
    "fa": "flash_attn",
    "flash_attn": "flash_attn",
    "ngl": "ngl",
    "n_gpu_layers": "ngl",
}
_UNITS = {"kib": 2.0**-20, "mib": 2.0**-10, "gib": 1.0, "tib": 1024.0}


def cells(line: str) -> list[str]:
    """Return a table line's cells; quote marks, fences and outer bars are left out."""
    text = re.sub(r"^[\s>`]+", "", line).strip().strip("`")
    parts = [re.sub(r"[*`]", "", c).strip() for c in text.split("|")]
    if text.startswith("|"):
        parts = parts[1:]
    return parts[:-1] if text.endswith("|") else parts


def _is_header(parts: list[str]) -> bool:
    lower = [p.lower() for p in parts]
    return "test" in lower and "t/s" in lower and "model" in lower


def _is_rule(parts: list[str]) -> bool:
    return all(re.fullmatch(r"[\s:\-]*", p) for p in parts)


def size_gib(text: str) -> float | None:
    """Return a printed size such as "3.56 GiB" in GiB."""
    value = number(text)
    unit = text.strip().rpartition(" ")[2].lower()
    return None if value is None else value * _UNITS.get(unit, 1.0)


def params_b(text: str) -> float | None:
    """Return a printed count such as "6.74 B" or "268.10 M" in billions."""
    value = number(text)
    if value is None:
        return None
    return {"m": value / 1e3, "b": value, "t": value * 1e3}.get(text.strip()[-1:].lower(), value)


def test_of(text: str) -> dict[str, Any]:
    """Return phase and lengths of a test's name; raises InputError for another test."""
    if _BOTH.match(text):
        raise InputError(f"{text}: prompt and generation in one figure; expected pp or tg alone")
    found = _TEST.match(text.strip())
    if found is None:
        raise InputError(f"test {text!r}: expected a name such as pp512, tg128 or pp512 @ d4096")
    is_prefill = found["what"].lower() == "pp"
    n = float(found["n"])
    return {
        "phase": "prefill" if is_prefill else "decode",
        "n_prompt": n if is_prefill else 0.0,
        "n_gen": 0.0 if is_prefill else n,
        "n_depth": float(found["depth"] or 0),
    }


def rate_of(text: str) -> tuple[float | None, float | None]:
    """Return tokens/s and their deviation from "1234.56 ± 1.23"."""
    parts = _PLUS_MINUS.split(text.strip())
    return number(parts[0]), number(parts[1]) if len(parts) > 1 else None


def _of_cells(named: Mapping[str, str]) -> dict[str, Any]:
    rate, deviation = rate_of(named["t/s"])
    values: dict[str, Any] = {
        "runtime": "llama.cpp",
        "model": named["model"],
        "tok_s": rate,
        "tok_s_std": deviation,
        "size_gib": size_gib(named.get("size", "")),
        "params_b": params_b(named.get("params", "")),
        "backend_raw": named.get("backend", ""),
        **test_of(named["test"]),
    }
    for column, field in _COLUMNS.items():
        if column in named:
            is_text = field in ("type_k", "type_v", "ngl")
            values[field] = named[column].upper() if is_text else number(named[column])
    if values.get("flash_attn", 0) is not None and values.get("flash_attn", 0) < 0:
        values["flash_attn"] = None
    placed = [f"{c}={named[c]}" for c in ("ot", "ts", "sm", "n_cpu_moe") if named.get(c)]
    return {**values, "placement": ";".join(placed)}


def _tables(text: str) -> Iterator[tuple[int, dict[str, str] | None, str]]:
    """Yield (line number, cells by column or None, line)."""
    columns: list[str] = []
    for n, line in enumerate(text.splitlines(), 1):
        parts = cells(line) if "|" in line else []
        if len(parts) < 3:
            if not line.strip(" >`"):
                columns = columns if line.strip() else []
            yield n, None, line
        elif _is_header(parts):
            columns = [p.lower() for p in parts]
        elif columns and not _is_rule(parts):
            yield n, dict(zip(columns, parts, strict=False)), line


def _chip_marks(line: str, device: str, build: str) -> tuple[str, str]:
    device_found, build_found = _DEVICE.search(line), _BUILD.search(line)
    return (
        device_found["name"].strip() if device_found else device,
        build_found["build"] if build_found else build,
    )


def read_tables(text: str, name: str) -> Imported:
    """Return the rows of every llama-bench table in a text."""
    found: list[dict[str, Any]] = []
    skipped: list[Skipped] = []
    device = ""
    last_build_at = 0
    for n, named, line in _tables(text):
        if named is None:
            device, build = _chip_marks(line, device, "")
            if build:
                # llama-bench prints its build under the table it belongs to.
                for values in found[last_build_at:]:
                    values["build"] = build
                last_build_at = len(found)
            continue
        try:
            if "t/s" not in named or "test" not in named:
                raise InputError("fewer cells than columns")
            values = {**_of_cells(named), "source": name, "device": device}
            row(values)
        except InputError as error:
            skipped.append(Skipped(f"line {n}", str(error)))
            continue
        found.append(values)
    rows: tuple[Measurement, ...] = tuple(row(values) for values in found)
    return Imported("llama-bench table", rows, tuple(skipped))
