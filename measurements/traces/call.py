"""One recorded call of a model, before calls are put together into tasks."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tokcast.predictor.errors import InputError

# English text and code in the common vocabularies; where only text was recorded.
CHARACTERS_PER_TOKEN = 4.0
LONGEST = 2**31


@dataclass(frozen=True, slots=True)
class Call:
    """A call as its trace has it; None is not recorded.

    `blocks` identify the prompt's leading pieces of `block_size` tokens; `scope` is where the same
    identifier means the same text. `turn` is the place within the session where it was recorded.
    `wait_seconds` is a pause before the call, `start_s` and `end_s` are times on one clock.
    `is_estimated`: lengths come from text, not from a count.
    """

    session: str
    n_input: int
    n_output: int
    turn: int | None = None
    start_s: float | None = None
    end_s: float | None = None
    wait_seconds: float | None = None
    n_cached: int | None = None
    blocks: tuple[Any, ...] = ()
    block_size: int = 0
    scope: str = ""
    is_estimated: bool = False
    where: str = ""


def whole(value: object, name: str) -> int:
    """Return a number of tokens; raises InputError for what is none."""
    number = real(value, name)
    if number != int(number):
        raise InputError(f"{name} is {value!r}: expected a whole number of tokens")
    return int(number)


def maybe_whole(value: object, name: str) -> int | None:
    """Return a number of tokens, None for a blank; raises InputError for what is neither."""
    return None if value is None or value == "" else whole(value, name)


def real(value: object, name: str) -> float:
    """Return a finite number from 0 up; raises InputError for what is none."""
    try:
        number = float(value) if isinstance(value, str | int | float) else math.nan
    except ValueError:
        number = math.nan
    if isinstance(value, bool) or not 0 <= number < 1e12:
        raise InputError(f"{name} is {_shown(value)}: expected a number from 0 up")
    if number >= LONGEST and "time" not in name:
        raise InputError(f"{name} is {_shown(value)}: expected fewer than 2^31 tokens")
    return number


def seconds(value: object, name: str, unit_s: float = 1.0) -> float | None:
    """Return a time in seconds, None for a blank; raises InputError for what is no time."""
    if value is None or value == "":
        return None
    try:
        number = float(value) * unit_s if isinstance(value, str | int | float) else math.nan
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{name} is {_shown(value)}: expected a time")
    return number


def text_tokens(value: object) -> int:
    """Return about how many tokens text, messages or other JSON have."""
    if value is None:
        return 0
    return math.ceil(_characters(value) / CHARACTERS_PER_TOKEN)


def _characters(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping) and "content" in value:
        calls = value.get("tool_calls")
        return _characters(value["content"]) + (len(json.dumps(calls)) if calls else 0)
    if isinstance(value, Mapping) and isinstance(value.get("text"), str):
        return len(str(value["text"]))
    if isinstance(value, Sequence):
        return sum(map(_characters, value))
    return len(json.dumps(value)) if value is not None else 0


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"
