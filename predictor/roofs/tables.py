"""Descriptions in TOML: read, and checked key by key."""

import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from tokcast.predictor.errors import InputError

# Beyond any machine's or program's, and far from the end of a float.
LARGEST = 1e60
_FOLDER = Path(__file__).with_name("data")


def shipped(name: str) -> Path:
    """Return the path of an example that comes with the project."""
    return _FOLDER / f"{name}.toml"


def read(path: Path) -> Mapping[str, Any]:
    """Return a file's tables; raises InputError for one that can't be read or is no TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}; expected a TOML file") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not TOML: {error}") from None


def check_keys(table: Mapping[str, Any], where: str, allowed: Collection[str]) -> None:
    """Raise InputError for a key that means nothing here."""
    for key in table:
        if key not in allowed:
            raise InputError(f"{where}: unknown key {key!r}; expected {', '.join(allowed)}")


def text(table: Mapping[str, Any], key: str, where: str) -> str:
    """Return a text that must be there."""
    value = table.get(key)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where}: {key} is {value!r}; expected text")
    return value.strip()


def number(value: object, where: str, at_least: float | None = None) -> float:
    """Return a finite number above 0, or of at least so much; raises InputError naming it."""
    least = "above 0" if at_least is None else f"of {at_least:g} or more"
    expected = f"expected a number {least}, in SI units"
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InputError(f"{where} is {value!r}; {expected}")
    if not abs(value) < LARGEST:
        raise InputError(f"{where} is not finite, or beyond {LARGEST:g}; {expected}")
    if value <= 0 if at_least is None else value < at_least:
        raise InputError(f"{where} is {value:g}; {expected}")
    return float(value)


def numbers(value: object, where: str, at_least: float | None = None) -> dict[str, float]:
    """Return a table of numbers by name, of which there must be one."""
    if not isinstance(value, Mapping) or not value:
        raise InputError(f"{where} is {value!r}; expected a table of numbers by name")
    return {key: number(v, f"{where}.{key}", at_least) for key, v in value.items()}


def table_of(table: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    """Return the [key] table, which must be there."""
    found = table.get(key)
    if not isinstance(found, Mapping):
        raise InputError(f"{where}: {key} is {found!r}; expected a [{key}] table")
    return found


def entries(table: Mapping[str, Any], key: str, where: str) -> list[Mapping[str, Any]]:
    """Return the [[key]] tables, of which there must be one."""
    found = table.get(key)
    if not isinstance(found, list) or not found or not all(isinstance(x, dict) for x in found):
        raise InputError(f"{where}: no [[{key}]]; expected one or more")
    return found
