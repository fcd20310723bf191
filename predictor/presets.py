"""Workloads by name: how long prompts and answers are, from traces of real use.

The figures are medians; `data/workloads.json` has them with their sources, licences and doubts.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tokcast.predictor.errors import InputError

_DATA = Path(__file__).parent / "data" / "workloads.json"


@dataclass(frozen=True, slots=True)
class Preset:
    """A workload's median lengths in tokens.

    `new_input` is what a turn after the first adds beside the previous answer, which stays in
    the cache; None where tasks have one turn and nothing is said. `reuse` is the share of a later
    turn's prompt that was in an earlier one.
    """

    name: str
    profile: str
    description: str
    first_input: int
    new_input: int | None
    output: int
    turns: int
    context_at_end: int
    reuse: float | None
    n_tasks: int
    n_requests: int
    tokens_counted_by: str
    licence: str
    sources: tuple[str, ...]
    doubts: tuple[str, ...]

    @property
    def middle(self) -> int:
        """Return the tokens cached before the middle one of the later turns."""
        return max((self.first_input + self.context_at_end) // 2 - self.turn_input, 0)

    @property
    def turn_input(self) -> int:
        """Return the tokens that a later turn has to read."""
        return self.first_input if self.new_input is None else max(self.new_input, 1)


@cache
def _data() -> Mapping[str, Any]:
    data: Mapping[str, Any] = json.loads(_DATA.read_bytes())["presets"]
    return data


def names() -> tuple[str, ...]:
    """Return the presets' names."""
    return tuple(_data())


def preset(name: str) -> Preset:
    """Return a preset; raises InputError for an unknown name."""
    plain = _data().get(name.lower())
    if plain is None:
        raise InputError(f"--workload {name!r}: expected one of {', '.join(names())}")
    lists = {key: tuple(plain[key]) for key in ("sources", "doubts")}
    return Preset(name=name.lower(), **{**plain, **lists})
