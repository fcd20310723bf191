"""The protocol of the paper behind the project, on our cohort.

"Roofline-shaped predictors with quantization-specific scale factors fitted on reference models":
decode charging total or active parameters, and for prefill P2, two operations per active
parameter and token over the peak. On every host the factors come from its reference models and
are tested on its others; leaving a host out, they come from all other hosts. The paper had three
hosts; ours are those of the cohort with enough models.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from tokcast.fits.observations import Observation
from tokcast.fits.scores import Score, score
from tokcast.fits.splits import folds

Floats = npt.NDArray[np.float64]
Split = tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]
# Reference and held-out models of a host: this many at least, a third of them held out.
FEWEST_MODELS = 4
FEWEST_PAIRS = 2


def decode_seconds(o: Observation, active: bool) -> float:
    """Return the seconds a token that the parameters' bytes take at the nameplate bandwidth.

    All of the file's parameters, or those that a token uses, at the file's mean width.
    """
    share = o.spec.active_params / o.spec.n_params if active else 1.0
    return o.spec.n_bytes * share / o.host.bytes_per_s


def prefill_seconds(o: Observation, active: bool) -> float:
    """Return two operations per parameter and token over the highest published rate."""
    params = o.spec.active_params if active else o.spec.n_params
    peak = o.host.matrix_fp16_flops_per_s or o.host.fp16_flops_per_s or o.host.fp32_flops_per_s
    return 2.0 * params / (peak or 1e12)


def _factors(log_efficiency: Floats, types: Sequence[str]) -> tuple[dict[str, float], float]:
    by_type: dict[str, list[float]] = defaultdict(list)
    for value, name in zip(log_efficiency, types, strict=True):
        by_type[name].append(value)
    return {t: float(np.median(v)) for t, v in by_type.items()}, float(np.median(log_efficiency))


def residuals(
    observations: Sequence[Observation],
    splits: Sequence[Split],
    active: bool,
) -> Floats:
    """Return log(measured / predicted), (n,), NaN where never tested.

    A file type without a reference takes the median of all.
    """
    seconds = decode_seconds if observations[0].phase == "decode" else prefill_seconds
    log_efficiency = np.log([o.tok_per_s * seconds(o, active) for o in observations])
    types = [o.file_type for o in observations]
    found = np.full(len(observations), np.nan)
    for train, test in splits:
        factor, default = _factors(log_efficiency[train], [types[i] for i in train])
        for i in test:
            found[i] = log_efficiency[i] - factor.get(types[i], default)
    return found


def host_splits(
    observations: Sequence[Observation],
) -> Iterator[Split]:
    """Yield each host's (reference, held-out) rows: two thirds and one third of its models."""
    by_host: dict[tuple[str, str], list[int]] = defaultdict(list)
    for i, o in enumerate(observations):
        by_host[o.host.name, o.run.backend].append(i)
    for rows in by_host.values():
        models = [observations[i].model_id for i in rows]
        if len(set(models)) < FEWEST_MODELS:
            continue
        train, test = next(iter(folds(models, 3)))
        yield np.array(rows)[train], np.array(rows)[test]


def paper_scores(
    observations: Sequence[Observation], leave_host: Sequence[Split], ours: Floats
) -> dict[str, dict[str, Score]]:
    """Return the paper's models' scores on its two kinds of splits, ours beside the second.

    `leave_host` are splits by chip, `ours` our residuals under them, (n,).
    """
    hosts = np.array([o.host.name for o in observations])
    is_p2 = observations[0].phase == "prefill"
    names = {
        False: "total parameters, factor per type",
        True: "P2: active parameters, factor per type"
        if is_p2
        else "active parameters, factor per type",
    }
    left = "host left out"
    protocols = {"host's own reference models": list(host_splits(observations)), left: leave_host}
    made: dict[str, dict[str, Score]] = {}
    for protocol, splits in protocols.items():
        found = {name: residuals(observations, splits, active) for active, name in names.items()}
        if protocol == left:
            found["tokcast"] = ours
        made[protocol] = {
            name: score(values[known], list(hosts[known]))
            for name, values in found.items()
            if (known := np.isfinite(values)).any()
        }
    return made


# --- the low-bit ladder

REFERENCE = "Q4_K_M"


@dataclass(frozen=True, slots=True)
class Rung:
    """A file type's speed relative to Q4_K_M's, of one backend and runtime.

    `by_bytes` is what the bytes of the same models alone say.
    """

    stack: str
    file_type: str
    n_hosts: int
    n_pairs: int
    factor: float
    by_bytes: float


def ladder(observations: Sequence[Observation]) -> list[Rung]:
    """Return the rungs of each backend and runtime, fastest first.

    Only rows of one host, model, runtime and workload are compared, so that little else differs:
    a type's factor is the median over such sets of its speed over Q4_K_M's.
    """
    stacks: dict[str, list[Observation]] = defaultdict(list)
    for o in observations:
        if not o.file_type.startswith("mlx"):
            stacks[f"{o.run.backend}, {o.run.runtime}"].append(o)
    rungs = [r for stack, rows in stacks.items() for r in _rungs(stack, rows)]
    return sorted(rungs, key=lambda r: (r.stack, -r.factor))


def _rungs(stack: str, rows: Sequence[Observation]) -> Iterator[Rung]:
    sets: dict[tuple[object, ...], dict[str, list[Observation]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for o in rows:
        sets[o.host.name, o.model_id, o.workloads][o.file_type].append(o)
    compared = [s for s in sets.values() if REFERENCE in s and len(s) > 1]
    by_type: dict[str, list[tuple[str, float, float]]] = defaultdict(list)
    for found in compared:
        base = found[REFERENCE]
        speed = float(np.median([o.tok_per_s for o in base]))
        for name, own in found.items():
            ratio = float(np.median([o.tok_per_s for o in own])) / speed
            n_bytes = base[0].spec.n_bytes / own[0].spec.n_bytes
            by_type[name].append((own[0].host.name, ratio, n_bytes))
    for name, pairs in by_type.items():
        if len(pairs) >= FEWEST_PAIRS:
            yield Rung(
                stack,
                name,
                len({host for host, _, _ in pairs}),
                len(pairs),
                float(np.median([ratio for _, ratio, _ in pairs])),
                float(np.median([n_bytes for _, _, n_bytes in pairs])),
            )


def order_changes(rungs: Sequence[Rung]) -> tuple[int, int]:
    """Return how many pairs of types swap places between two stacks, and how many are shared."""
    by_stack: dict[str, dict[str, float]] = defaultdict(dict)
    for r in rungs:
        by_stack[r.stack][r.file_type] = r.factor
    steps: dict[tuple[str, str], list[float]] = defaultdict(list)
    for speeds in by_stack.values():
        for a, b in combinations(sorted(speeds), 2):
            steps[a, b].append(speeds[a] - speeds[b])
    pairs = [(x, y) for found in steps.values() for x, y in combinations(found, 2)]
    return sum(x * y < 0 for x, y in pairs), len(pairs)
