"""Hosts that are not in the registry: from a file, from numbers, or a known one corrected."""

import math
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, get_args

from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host, Kind

_RATES = (
    "matrix_fp16_flops_per_s",
    "matrix_fp32acc_flops_per_s",
    "fp16_flops_per_s",
    "fp32_flops_per_s",
    "int8_ops_per_s",
)
_NUMBERS = (
    "bytes_per_s",
    "memory_bytes",
    *_RATES,
    "cache_bytes",
    "clock_hz",
    "tdp_w",
    "link_bytes_per_s",
)
_COUNTS = ("n_cores", "n_devices", "launch_year")
_TEXTS = ("chip", "vendor", "kind", "architecture", "memory_type", "confidence")
_KEYS = (*_TEXTS, *_NUMBERS, *_COUNTS, "flops_per_s", "source", "notes")
_GIVEN = "given by the user"
# Less than any machine that runs a model has: a figure in GB/s, GB, TFLOPS or GHz.
_LEAST = {
    "bytes_per_s": (1e8, 1e9),
    "link_bytes_per_s": (1e7, 1e9),
    "memory_bytes": (2.0**20, 2.0**30),
    "clock_hz": (1e6, 1e9),
    **dict.fromkeys((*_RATES, "flops_per_s"), (1e8, 1e12)),
}


def from_toml(path: str | Path) -> Host:
    """Return the host that a TOML file describes, in SI units.

    `chip` and `bytes_per_s` are required. `flops_per_s` is the rate of the vector units, FP16 and
    FP32 alike, for a chip whose rates by format are not known. The `[source]` table has the same
    keys as the numbers; a number without a source becomes a note. Raises InputError, with file
    and key, for a file that cannot be read, an unknown key or a value of the wrong kind.
    """
    table = _table(Path(path))
    unknown = sorted(set(table) - set(_KEYS))
    if unknown:
        raise InputError(f"{path}: unknown key {unknown[0]!r}, expected one of {', '.join(_KEYS)}")
    missing = [key for key in ("chip", "bytes_per_s") if key not in table]
    if missing:
        raise InputError(f"{path}: {missing[0]} is missing, expected at least chip and bytes_per_s")
    values = {key: _checked(value, key, path) for key, value in table.items()}
    source = values.pop("source", {})
    unsourced = [key for key in values if key in (*_NUMBERS, "flops_per_s") and key not in source]
    notes = (*values.pop("notes", ()), *(f"{path} gives no source for {k}" for k in unsourced))
    flops_per_s = values.pop("flops_per_s", None)
    if flops_per_s is not None:
        values = {"fp16_flops_per_s": flops_per_s, "fp32_flops_per_s": flops_per_s} | values
    facts = {"vendor": "", "kind": "discrete_gpu", "architecture": ""} | values
    return Host(name=facts.pop("chip"), **facts, source=source, notes=notes)


def from_numbers(
    bytes_per_s: float, flops_per_s: float | None = None, memory_bytes: float | None = None
) -> Host:
    """Return a host of which only these numbers are known.

    The rate is taken for that of the vector units, FP16 and FP32 alike, which every chip has.
    """
    numbers = {
        "bytes_per_s": bytes_per_s,
        "fp16_flops_per_s": flops_per_s,
        "fp32_flops_per_s": flops_per_s,
        "memory_bytes": memory_bytes,
    }
    given: dict[str, Any] = {key: value for key, value in numbers.items() if value is not None}
    missing = () if flops_per_s else ("no compute rate given: prefill is taken as memory-bound",)
    return Host(
        name="custom host",
        vendor="",
        kind="discrete_gpu",
        architecture="",
        **given,
        source=dict.fromkeys(given, _GIVEN),
        notes=missing,
    )


def override(
    host: Host,
    bytes_per_s: float | None = None,
    flops_per_s: float | None = None,
    memory_bytes: float | None = None,
) -> Host:
    """Return the host with the numbers that someone knows better; None leaves one as it is.

    `flops_per_s` stands for the chip's `peak_flops_per_s`. The other rates keep their proportion
    to it, as when a power limit lowers the clock.
    """
    changed: dict[str, Any] = {}
    if bytes_per_s is not None:
        changed["bytes_per_s"] = bytes_per_s
    if memory_bytes is not None:
        changed["memory_bytes"] = memory_bytes
    if flops_per_s is not None:
        changed |= _rescaled(host, flops_per_s)
    if not changed:
        return host
    source = {**host.source, **dict.fromkeys(changed, _GIVEN)}
    return replace(host, **changed, source=source)


def peak_flops_per_s(host: Host) -> float | None:
    """Return the rate by which a chip is usually called: FP16, of matrix units if it has them.

    FP32 for a processor, and where no FP16 rate is known.
    """
    if host.kind == "cpu":
        return host.fp32_flops_per_s
    return host.matrix_fp16_flops_per_s or host.fp16_flops_per_s or host.fp32_flops_per_s


def _rescaled(host: Host, flops_per_s: float) -> dict[str, float]:
    peak = peak_flops_per_s(host)
    if not peak:
        return {"fp16_flops_per_s": flops_per_s, "fp32_flops_per_s": flops_per_s}
    rates = {key: getattr(host, key) for key in _RATES}
    return {key: rate * flops_per_s / peak for key, rate in rates.items() if rate is not None}


def _table(path: Path) -> dict[str, Any]:
    # Only those who have such a file pay for the parser.
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}: expected a TOML host file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a TOML host file: {error}") from None


def _checked(value: object, key: str, path: str | Path) -> Any:
    if key == "source":
        return _sources(value, path)
    if key == "notes":
        return _sentences(value, path)
    if key in _TEXTS:
        return _text(value, key, path)
    if isinstance(value, bool) or not isinstance(value, int | float):
        _refuse(path, key, value, "a number in SI units, such as 400e9")
    if not math.isfinite(value) or value <= 0:
        _refuse(path, key, value, "a positive, finite number")
    least, usual = _LEAST.get(key, (0.0, 1.0))
    if value < least:
        _refuse(path, key, value, f"SI units, perhaps {value * usual:g}")
    if key in _COUNTS and value != int(value):
        _refuse(path, key, value, "a whole number")
    return int(value) if key in _COUNTS else float(value)


def _text(value: object, key: str, path: str | Path) -> str:
    choices = {"kind": get_args(Kind), "confidence": ("high", "medium", "low")}.get(key)
    if not isinstance(value, str) or not value.strip():
        _refuse(path, key, value, "text")
    if choices and value not in choices:
        _refuse(path, key, value, "one of " + ", ".join(choices))
    return value.strip()


def _sentences(value: object, path: str | Path) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(note, str) for note in value):
        _refuse(path, "notes", value, "a list of sentences")
    return tuple(value)


def _sources(value: object, path: str | Path) -> Mapping[str, str]:
    if not isinstance(value, dict):
        _refuse(path, "source", value, "a table with the same keys as the numbers")
    for key, text in value.items():
        if key not in _KEYS or not isinstance(text, str):
            _refuse(path, f"source.{key}", text, "a text, under the name of one of the numbers")
    return value


def _refuse(path: str | Path, key: str, value: object, expected: str) -> NoReturn:
    raise InputError(f"{path}: {key} = {value!r}, expected {expected}")
