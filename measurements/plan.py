"""How much of what a calibration can measure its time allows: launches, in order."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from tokcast.measurements.plan_items import Item, gguf_items, mlx_items
from tokcast.measurements.protocol import Rule
from tokcast.measurements.record import Task
from tokcast.measurements.synthetic import need_bytes
from tokcast.predictor.errors import InputError
from tokcast.predictor.ledger import Workload, ledger
from tokcast.predictor.model import model_spec
from tokcast.predictor.spec import ModelSpec
from tokcast.predictor.work import total

# Launches of each model; twice as many where a quarter of an hour or more is given.
MAX_LAUNCHES = 3
# A launch's file is written before it and removed after it; none is larger than this.
MOST_DISK_BYTES = 1.6e9
MOST_MEMORY_SHARE = 0.25
# Starting a process, importing and loading, per launch.
START_S = 1.2
# Shares of the nameplate peaks that small models reach, for the expected time only.
_OF_BANDWIDTH, _OF_PEAK = 0.5, 0.8
# Beyond this bandwidth small models are all overhead, so that larger ones are needed.
FAST_BYTES_PER_S = 200e9


@dataclass(frozen=True, slots=True)
class Launch:
    """One launch of an item; `number` counts from 1."""

    item: Item
    number: int
    expected_seconds: float

    @property
    def key(self) -> str:
        """Return the item's key with the launch's number."""
        return f"{self.item.key}#{self.number}"


@dataclass(frozen=True, slots=True)
class Plan:
    """Launches in order, each round through all items; `disk_bytes` is the largest file's size."""

    launches: tuple[Launch, ...]
    rule: Rule
    disk_bytes: int
    digest: str
    budget_seconds: float

    @property
    def expected_seconds(self) -> float:
        """Return how long all launches should take."""
        return sum(launch.expected_seconds for launch in self.launches)

    @property
    def items(self) -> tuple[Item, ...]:
        """Return the models, each once."""
        return tuple({launch.item.key: launch.item for launch in self.launches}.values())


def repetition_seconds(
    spec: ModelSpec, test: Task, bytes_per_s: float, flops_per_s: float
) -> float:
    """Return about how long one repetition of a test takes."""
    load = Workload(test.phase, test.n if test.phase == "prefill" else 1, test.n_depth)
    n_bytes, flops = total(ledger(spec, load))
    once = n_bytes / (_OF_BANDWIDTH * bytes_per_s) + flops / (_OF_PEAK * flops_per_s)
    return once * (test.n if test.phase == "decode" else 1)


def expected_seconds(item: Item, rule: Rule, bytes_per_s: float, flops_per_s: float) -> float:
    """Return about how long one launch of an item takes, the cache's filling included."""
    spec = model_spec(item.header)
    seconds = START_S
    for test in item.tests:
        once = repetition_seconds(spec, test, bytes_per_s, flops_per_s)
        seconds += once * rule.n_warmups + max(once * rule.min_samples, rule.min_seconds)
    deepest = max(test.n_depth for test in item.tests)
    if deepest:
        fill = Task("prefill", deepest, 0)
        seconds += repetition_seconds(spec, fill, bytes_per_s, flops_per_s)
    return seconds


def parse_budget(text: str) -> float:
    """Return seconds from "60s", "5m" or "1h"; raises InputError for less than 20 s."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(s|m|min|h)?\s*", text)
    if found is None:
        raise InputError(f"--budget {text!r}: expected a time such as 60s, 5m or 20m")
    seconds = float(found[1]) * {"s": 1, None: 1, "m": 60, "min": 60, "h": 3600}[found[2]]
    if not 20 <= seconds <= 86400:
        raise InputError(f"--budget {text!r}: expected 20s to 24h")
    return seconds


def rule_of(budget_seconds: float) -> Rule:
    """Return how often tests are repeated under a budget."""
    if budget_seconds < 120:
        return Rule(min_samples=3, min_seconds=0.25, retry_seconds=1.5)
    if budget_seconds < 900:
        return Rule(min_samples=4, min_seconds=0.5, retry_seconds=3.0)
    return Rule(min_samples=5, min_seconds=1.0, retry_seconds=8.0)


def make(
    budget_seconds: float,
    bytes_per_s: float,
    flops_per_s: float,
    memory_bytes: float,
    setting: str,
    is_mlx: bool = False,
) -> Plan:
    """Return the plan that a budget allows; `setting` names host and runtime for its digest.

    Raises InputError where not even the first model fits the free memory.
    """
    rule = rule_of(budget_seconds)
    fitting: list[tuple[Item, float, int]] = []
    for item in mlx_items() if is_mlx else gguf_items(bytes_per_s > FAST_BYTES_PER_S):
        size = need_bytes(item.header)
        if size <= min(MOST_MEMORY_SHARE * memory_bytes, MOST_DISK_BYTES):
            fitting.append((item, expected_seconds(item, rule, bytes_per_s, flops_per_s), size))
    launches: list[Launch] = []
    left = 0.9 * budget_seconds
    most = MAX_LAUNCHES * (2 if budget_seconds >= 900 else 1)
    for number in range(1, most + 1):
        for item, seconds, _ in fitting:
            if seconds > left and launches:
                continue
            left -= seconds
            launches.append(Launch(item, number, seconds))
    if not launches:
        raise InputError(f"{memory_bytes / 1e9:.1f} GB of free memory: too little to calibrate")
    kept = {launch.item.key for launch in launches}
    digest = _digest(launches, rule, setting)
    largest = max(size for item, _, size in fitting if item.key in kept)
    return Plan(tuple(launches), rule, largest, digest, budget_seconds)


def _digest(launches: Sequence[Launch], rule: Rule, setting: str) -> str:
    """Return what tells plans apart; expected times, which vary with free memory, don't."""
    parts = [[launch.key, [asdict(t) for t in launch.item.tests]] for launch in launches]
    text = json.dumps([parts, asdict(rule), setting], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
