"""What `energy train` is asked: a model's config.json, and a recipe under the flags."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from tokcast.predictor.catalogue import known_name
from tokcast.predictor.errors import InputError
from tokcast.predictor.text import printable
from tokcast.predictor.training.config import from_config
from tokcast.predictor.training.named import from_catalogue
from tokcast.predictor.training.shape import TrainShape

_MOST_FILE_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Request:
    """Flags as typed; None where not given, so that a recipe's values and then defaults apply."""

    config: str
    host: str | None = None
    devices: str | None = None
    strategy: str | None = None
    batch: str | None = None
    length: str | None = None
    micro: str | None = None
    steps: str | None = None
    precision: str | None = None
    recompute: bool | None = None
    power_limit: str | None = None
    link: str | None = None
    speedup: str | None = None
    watts: str | None = None
    threads: str | None = None
    bandwidth: str | None = None
    tflops: str | None = None
    memory: str | None = None
    price: str | None = None
    grid: str | None = None


RECIPE = tuple(f.name for f in fields(Request) if f.name != "config")


def shape_of(path: Path) -> tuple[TrainShape, tuple[str, ...]]:
    """Return the model of a config.json, or of the catalogue where no such file is.

    Raises InputError for a file that can't be read or holds no Transformer.
    """
    name = known_name(path.name)
    if name is not None and not path.exists():
        return from_catalogue(name), ()
    return from_config(_json(path), str(path))


def with_recipe(request: Request) -> tuple[Path, Request]:
    """Return the model's path and the request, over a recipe's values where it names one.

    Raises InputError for a recipe that can't be read or has a field nobody knows.
    """
    path = Path(request.config)
    if path.suffix.lower() != ".toml":
        return path, request
    import tomllib

    try:
        table = tomllib.loads(_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not a TOML recipe: {error}") from None
    unknown = sorted(table.keys() - {"model", *RECIPE})
    if unknown:
        raise InputError(
            f"{path}: unknown field {printable(unknown[0], 40)!r}; expected model and any of"
            f" {', '.join(RECIPE)}"
        )
    model = table.pop("model", None)
    if not isinstance(model, str):
        raise InputError(
            f"{path}: model is missing; expected the path of its config.json, or a name of the"
            " catalogue"
        )
    given = {name: _as_text(path, name, value) for name, value in table.items()}
    typed = {n: getattr(request, n) for n in RECIPE if getattr(request, n) is not None}
    return path.parent / model, replace(request, **(given | typed))


def _as_text(path: Path, name: str, value: object) -> str | bool:
    if name == "recompute":
        if isinstance(value, bool):
            return value
        raise InputError(f"{path}: recompute is {value!r}; expected true or false")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InputError(f"{path}: {name} is {value!r}; expected text or a number")
    return str(value)


def _text(path: Path) -> str:
    if path.is_dir():
        path = path / "config.json"
    try:
        with path.open("rb") as file:
            raw = file.read(_MOST_FILE_BYTES + 1)
    except OSError as error:
        raise InputError(
            f"--config {path}: {error.strerror or error}; expected a config.json, a TOML recipe,"
            " or a plain Transformer of the catalogue by its name"
        ) from None
    if len(raw) > _MOST_FILE_BYTES:
        raise InputError(f"--config {path}: over 1 MiB; expected a config.json or a TOML recipe")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(
            f"--config {path}: not text; expected a config.json or a TOML recipe"
        ) from None


def _json(path: Path) -> Mapping[str, object]:
    try:
        found = json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"--config {path}: no JSON ({error}); expected a config.json") from None
    if not isinstance(found, dict):
        raise InputError(f"--config {path}: no JSON object; expected a model's config.json")
    return found
