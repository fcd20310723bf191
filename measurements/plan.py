"""What a calibration measures: synthetic models that tell the terms of the time apart.

Quantization types at one shape, two sizes, many thin layers against few wide ones, a large
vocabulary, experts, and depths; as much of it as the time allows, several launches of each.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from tokcast.measurements.protocol import Rule
from tokcast.measurements.record import Task
from tokcast.measurements.synthetic import need_bytes
from tokcast.measurements.synthetic_mlx import MlxShape
from tokcast.measurements.synthetic_shape import Shape, shaped
from tokcast.predictor.errors import InputError
from tokcast.predictor.header import Header
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

_SMALL = Shape("Q4_K", 8, 1024, 4096, 16, 4)
_DEEP = Shape("Q4_K", 28, 512, 1536, 8, 4)
# Attention that is wide beside the model: the keys of most current models are 128 long.
_HEADS = Shape("Q4_K", 14, 768, 2048, 16, 8, head_length=128)
_WIDE = Shape("Q4_K", 10, 2048, 5632, 16, 4)
_WIDE_FAST = Shape("Q4_K", 10, 4096, 11008, 32, 8)
_VOCABULARY = Shape("Q8_0", 12, 640, 2048, 4, 1, n_vocab=131072, head_length=256)
_EXPERTS = Shape("Q4_K", 12, 768, 512, 12, 4, n_expert=32, n_expert_used=4)
_MORE_EXPERTS = Shape("Q4_K", 8, 1024, 512, 16, 8, n_expert=32, n_expert_used=8)


@dataclass(frozen=True, slots=True)
class Item:
    """One model and its tests; `key` names it within the plan."""

    key: str
    shape: Shape | MlxShape
    tests: tuple[Task, ...]

    @property
    def header(self) -> Header:
        """Return the header of the model to be made; for MLX one of nearly its size."""
        if isinstance(self.shape, MlxShape):
            return shaped(_alike(self.shape))
        return shaped(self.shape)


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


_MLX_ALIKE = {4: "Q4_0", 8: "Q8_0", 16: "F16"}


def _alike(s: MlxShape) -> Shape:
    """Return the GGUF shape that moves about as many bytes as an MLX one."""
    return Shape(
        _MLX_ALIKE[s.bits],
        s.n_layer,
        s.width,
        s.n_ff,
        s.n_head,
        s.n_head_kv,
        s.n_vocab,
        n_expert=s.n_expert,
        n_expert_used=s.n_expert_used,
    )


def _tests(depths: Sequence[int], n_prompt: int, n_gen: int = 16) -> tuple[Task, ...]:
    found: list[Task] = []
    for depth in depths:
        found.append(Task("decode", n_gen, depth))
        found.append(Task("prefill", n_prompt if depth == 0 else 128, depth))
    return tuple(found)


def _of_type(type_name: str, shape: Shape = _SMALL) -> Shape:
    return replace(shape, type=type_name)


def _shapes(is_fast: bool) -> Iterator[tuple[Shape, tuple[int, ...], int]]:
    """Yield shapes with their depths and prompt lengths, the most telling ones first."""
    deep, flat = (0, 512, 2048), (0,)
    yield _SMALL, deep, 512
    yield _of_type("Q8_0"), flat, 512
    yield _HEADS, deep, 128
    yield _DEEP, (0, 1024), 128
    yield (_WIDE_FAST if is_fast else _WIDE), (0, 1024), 128
    yield _VOCABULARY, (0, 1024), 128
    yield _EXPERTS, (0, 1024), 512
    yield _MORE_EXPERTS, (0, 512), 128
    yield _of_type("Q6_K"), flat, 512
    yield _of_type("F16", replace(_SMALL, n_layer=6)), flat, 128
    yield _of_type("Q5_0"), flat, 128
    yield _of_type("Q5_K"), flat, 128
    yield _of_type("Q4_0"), flat, 512
    yield _of_type("IQ4_XS"), flat, 128
    yield _of_type("Q8_0", _EXPERTS), flat, 128
    yield _of_type("Q3_K"), flat, 128
    yield _of_type("Q2_K"), flat, 128
    yield _of_type("MXFP4", _EXPERTS), flat, 128
    yield _of_type("BF16", replace(_SMALL, n_layer=6)), flat, 128
    yield _of_type("Q8_0", _DEEP), (0, 2048), 512
    yield _of_type("IQ3_S"), flat, 128
    yield _of_type("Q6_K", _WIDE), flat, 128


def _items(is_fast: bool) -> Iterator[Item]:
    for shape, depths, n_prompt in _shapes(is_fast):
        key = shape.name.removeprefix("synthetic-")
        yield Item(f"{key}-v{shape.n_vocab // 1000}k", shape, _tests(depths, n_prompt))


def _mlx_items() -> Iterator[Item]:
    """Yield MLX models: bits at one shape, a deep, a wide and an expert one."""
    for shape, depths in (
        (MlxShape(4, 8, 2048, 5632, 32, 8), (0, 512, 2048)),
        (MlxShape(8, 8, 2048, 5632, 32, 8), (0,)),
        (MlxShape(4, 28, 1024, 3072, 16, 4), (0, 1024)),
        (MlxShape(4, 10, 4096, 11008, 32, 8), (0,)),
        (MlxShape(4, 12, 1024, 768, 16, 4, n_expert=32, n_expert_used=4), (0, 1024)),
        (MlxShape(16, 6, 2048, 5632, 32, 8), (0,)),
        (MlxShape(8, 12, 1024, 768, 16, 4, n_expert=32, n_expert_used=4), (0,)),
    ):
        yield Item(shape.name.removeprefix("synthetic-"), shape, _tests(depths, 512))


def test_seconds(spec: ModelSpec, test: Task, bytes_per_s: float, flops_per_s: float) -> float:
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
        once = test_seconds(spec, test, bytes_per_s, flops_per_s)
        seconds += once * rule.n_warmups + max(once * rule.min_samples, rule.min_seconds)
    deepest = max(test.n_depth for test in item.tests)
    if deepest:
        fill = Task("prefill", deepest, 0)
        seconds += test_seconds(spec, fill, bytes_per_s, flops_per_s)
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
    for item in _mlx_items() if is_mlx else _items(bytes_per_s > FAST_BYTES_PER_S):
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
