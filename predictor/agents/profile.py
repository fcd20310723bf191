"""Workloads as distributions: how long the prompts, answers and tasks of real use are.

`data/profiles.json` has quantiles computed from traces of real use by
`benchmarks/workload_profiles.py`, for the workloads that `presets` names.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from tokcast.predictor.agents.quantiles import Quantiles
from tokcast.predictor.agents.task import Task, Turn
from tokcast.predictor.presets import preset

_DATA = Path(__file__).parents[1] / "data" / "profiles.json"


@dataclass(frozen=True, slots=True)
class Profile:
    """Distributions of one workload, lengths in tokens.

    A later turn's prompt is the one before with its answer and `growth` more; where growth is
    negative the conversation was cut back. In a `lost` share of later turns the cache does not
    hold what it might, and `lost_share` of the prompt is read again. `wait_seconds` is None where
    nothing was recorded between turns.
    """

    name: str
    first_input: Quantiles
    growth: Quantiles
    output: Quantiles
    turns: Quantiles
    lost: float
    lost_share: Quantiles
    wait_seconds: Quantiles | None
    wait_kind: str
    n_tasks: int
    n_turns: int
    source: str

    def draw(self, random: Random) -> Task:
        """Return one task."""
        n_turns = max(round(self.turns.at(random.random())), 1)
        found = [self._first(random)]
        for _ in range(n_turns - 1):
            found.append(self._later(random, found[-1]))
        return tuple(found)

    def _first(self, random: Random) -> Turn:
        n_input = max(round(self.first_input.at(random.random())), 1)
        return Turn(n_input, 0, max(round(self.output.at(random.random())), 1), 0.0)

    def _later(self, random: Random, before: Turn) -> Turn:
        growth = round(self.growth.at(random.random()))
        n_input = max(before.n_context + growth, 1)
        n_cached = min(before.n_context, n_input)
        if self.lost and random.random() < self.lost:
            n_cached = min(n_cached, round(n_input * (1 - self.lost_share.at(random.random()))))
        wait = self.wait_seconds
        return Turn(
            n_input,
            n_cached,
            max(round(self.output.at(random.random())), 1),
            None if wait is None else wait.at(random.random()),
        )


@cache
def _data() -> Mapping[str, Any]:
    data: Mapping[str, Any] = json.loads(_DATA.read_bytes())
    return data


def profile(name: str) -> Profile:
    """Return a workload's distributions; raises InputError for an unknown name."""
    name = preset(name).name
    p = tuple(_data()["probabilities"])
    plain = _data()["profiles"][name]

    def of(key: str) -> Quantiles:
        return Quantiles(p, tuple(plain[key]))

    return Profile(
        name=name,
        first_input=of("first_input"),
        growth=of("growth"),
        output=of("output"),
        turns=of("turns"),
        lost=plain["lost"],
        lost_share=of("lost_share"),
        wait_seconds=None if plain["wait_seconds"] is None else of("wait_seconds"),
        wait_kind=plain["wait_kind"],
        n_tasks=plain["n_tasks"],
        n_turns=plain["n_turns"],
        source=plain["source"],
    )
