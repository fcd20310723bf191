"""What every importer fills in: a row of the interchange schema from what was printed."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tokcast.measurements.importers.naming import backend_of, chip_of, file_type_of, model_of
from tokcast.measurements.schema import Measurement
from tokcast.predictor.errors import InputError

GIB = 1024.0**3
_TEXT = frozenset(f.name for f in fields(Measurement) if f.type is str)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A line or record that holds no usable figure, and why."""

    where: str
    reason: str


@dataclass(frozen=True, slots=True)
class Imported:
    """What a file held; `kind` names its format."""

    kind: str
    rows: tuple[Measurement, ...]
    skipped: tuple[Skipped, ...] = ()


def number(value: Any) -> float | None:
    """Return the first number in a cell, thousands separators removed; None without one."""
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, (int, float)):
        return float(value)
    found = re.search(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", str(value or "").replace(",", ""), re.I)
    return float(found[0]) if found else None


def row(values: Mapping[str, Any]) -> Measurement:
    """Return a row with blanks for all that is not given.

    The model's identity, file type and chip are worked out where the values don't give them.
    Raises InputError when the figure isn't a rate.
    """
    given = {k: v for k, v in values.items() if v is not None}
    rate = given.get("tok_s")
    if not isinstance(rate, float) or not 0 < rate < 1e9:
        raise InputError(f"t/s is {given.get('tok_s')!r}; expected tokens/s above 0")
    file_type = given.get("file_type") or file_type_of(
        f"{given.get('model', '')}", given.get("model_file", "")
    )
    model_id = given.get("model_id") or model_of(
        given.get("model", ""), given.get("model_file", ""), given.get("params_b")
    )
    chip = given.get("chip") or chip_of(given.get("device", ""))
    backend = backend_of(given.get("backend_raw", given.get("backend", "")))
    filled: dict[str, Any] = {
        f.name: given.get(f.name, "" if f.name in _TEXT else None) for f in fields(Measurement)
    }
    filled |= {
        "chip": chip,
        "n_devices": int(given.get("n_devices", 1)),
        "backend": backend,
        "file_type": file_type,
        "quant": given.get("quant") or file_type,
        "model_id": model_id,
        "flags": frozenset(given.get("flags", ())),
    }
    return Measurement(**filled)
