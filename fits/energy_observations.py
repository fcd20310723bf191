"""From energy rows to observations: what the time of a reading was spent on."""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tokcast.fits.energy_names import file_type_of, model_of
from tokcast.fits.loading import loading_seconds
from tokcast.fits.observations import is_windowed, spec_of, works_of
from tokcast.fits.released import released
from tokcast.hosts.registry import chip, names
from tokcast.measurements.energy_cleaning import EnergyRule, check_energy, watts_of
from tokcast.measurements.energy_rows import EnergyRow
from tokcast.predictor.host import Host
from tokcast.predictor.ledger import Work, Workload, total
from tokcast.predictor.power import Activity
from tokcast.predictor.roofline import Question, predict
from tokcast.predictor.terms import Run

# Of a process whose mean power was read, loading the model may take so much of the time.
MOST_LOADING = 0.1
OVER_THE_PROCESS = "over the process"
# Below these tokens few samples were read; beyond them attention changes the power.
SHORTEST_SWEPT, LONGEST_SWEPT = 16, 1024
# How a source words a prompt whose length it gives in no column.
_PROMPT = re.compile(r"prompt ~(\d+)K tokens \+ (\d+) generated")

UNKNOWN_CHIP = EnergyRule("unknown-chip", "the chip is not in the registry", lambda _: False)
UNKNOWN_MODEL = EnergyRule(
    "unknown-model", "no tensor table for this model and type", lambda _: False
)
LOADING = EnergyRule(
    "loading", "the mean is over a process that mostly loaded the model", lambda _: False
)

Loads = tuple[tuple[Workload, float], ...]


@dataclass(frozen=True, slots=True)
class EnergyObservation:
    """One configuration whose mean power was read; the seconds of `activity` are as measured.

    A request's are divided between its phases as they are predicted.

    `n_tokens` are what joules are counted by: generated ones of a request or in decode, prompt
    tokens in prefill. `installation` names what ran it, as far as its source says; `is_knee` is
    for what a sweep of limits says of a card that nothing holds down.
    """

    host: Host
    run: Run
    kind: str
    phase: str
    model_id: str
    file_type: str
    activity: Activity
    n_tokens: float
    watts: float
    limit_w: float | None
    source: str
    loads: Loads
    size_ratio: float
    installation: str = ""
    is_knee: bool = False

    @property
    def joules_per_token(self) -> float:
        """Return measured joules a token."""
        return self.watts * self.activity.seconds / self.n_tokens


@dataclass(frozen=True, slots=True)
class EnergyRejected:
    """An energy row that a rule keeps out."""

    row: EnergyRow
    rule: EnergyRule


def _loads(r: EnergyRow) -> Loads:
    """Return the workloads of a row and how often each ran."""
    flash = r.flash_attn != 0
    ubatch = int(r.n_ubatch or 512)
    depth = r.n_depth or 0.0
    told = _PROMPT.search(r.notes)
    if r.phase == "prefill" and told and not r.n_prompt:
        n, n_gen = 1000 * int(told[1]), float(told[2])
        return (
            (Workload("prefill", n, 0, ubatch, flash_attention=flash), 1.0),
            (Workload("decode", 1, int(n + n_gen / 2), flash_attention=flash), n_gen),
        )
    if r.phase == "prefill":
        n = int(r.n_prompt or 512)
        return ((Workload("prefill", n, int(depth), ubatch, flash_attention=flash), 1.0),)
    n_gen = r.n_gen or 1.0
    if r.phase == "decode":
        middle = int(depth + n_gen / 2)
        return ((Workload("decode", 1, middle, flash_attention=flash), n_gen),)
    n_prompt = max(round(r.n_prompt or 1), 1)
    return (
        (Workload("prefill", n_prompt, 0, ubatch), 1.0),
        (Workload("decode", 1, int(n_prompt + n_gen / 2)), n_gen),
    )


def _seconds(r: EnergyRow, n_tokens: float, split: dict[str, float]) -> dict[str, float]:
    """Return the measured seconds of each phase; those of both together divided as predicted."""
    measured = (r.duration_s or 0.0) if r.phase == "request" else n_tokens / (r.tok_s or 1.0)
    whole = sum(split.values())
    return {phase: measured * s / whole for phase, s in split.items()}


def _activity(
    works: Iterable[tuple[Workload, float, tuple[Work, ...]]], seconds: dict[str, float]
) -> Activity:
    n_bytes, flops = 0.0, {"prefill": 0.0, "decode": 0.0}
    for load, times, parts in works:
        moved, operations = total(parts)
        n_bytes += times * moved
        flops[load.phase] += times * operations
    return Activity(
        seconds.get("decode", 0.0),
        seconds.get("prefill", 0.0),
        n_bytes,
        flops["decode"],
        flops["prefill"],
    )


def predicted_seconds(
    model_id: str, file_type: str, host: Host, run: Run, loads: Loads
) -> dict[str, float]:
    """Return the predicted seconds of each phase, with llama.cpp for runtimes without a fit."""
    spec = spec_of(model_id, file_type)
    if spec is None:
        raise AssertionError("an observation has a model")
    run = replace(run, runtime="llama.cpp") if run.runtime != "mlx" else run
    found: dict[str, float] = {}
    for load, times in loads:
        seconds = predict(spec, Question(load, host, run), released()).seconds
        found[load.phase] = found.get(load.phase, 0.0) + times * seconds
    return found


def _year(r: EnergyRow) -> float | None:
    match = re.match(r"(\d{4})-(\d\d)", r.date)
    return int(match[1]) + (int(match[2]) - 1) / 12 if match else None


def run_of_row(r: EnergyRow) -> Run:
    """Return how a row was run; ollama runs llama.cpp."""
    return Run(
        runtime="llama.cpp" if r.runtime == "ollama" else r.runtime,
        backend=r.backend or "CUDA",
        stack=r.stack or r.backend or "CUDA",
        year=_year(r),
        flash_attention=None if r.flash_attn is None else r.flash_attn > 0,
    )


def energy_observation(r: EnergyRow) -> EnergyObservation | EnergyRule:
    """Return what a row's time was spent on, or the rule that its chip or model breaks."""
    model_id, file_type = model_of(r), file_type_of(r.quant)
    run, watts = run_of_row(r), watts_of(r)
    if r.chip not in names():
        return UNKNOWN_CHIP
    if model_id is None or file_type is None or watts is None:
        return UNKNOWN_MODEL
    loads = _loads(r)
    windowed = is_windowed(run)
    parts = [
        (load, n, works_of(model_id, file_type, r.size_ratio, load, windowed)) for load, n in loads
    ]
    known = [(load, n, works) for load, n, works in parts if works is not None]
    if len(known) < len(parts):
        return UNKNOWN_MODEL
    split = predicted_seconds(model_id, file_type, chip(r.chip), run, loads)
    n_tokens = float(loads[0][0].n_prompt) if r.phase == "prefill" else (r.n_gen or 1.0)
    return EnergyObservation(
        host=chip(r.chip),
        run=run,
        kind=r.kind or "",
        phase=r.phase,
        model_id=model_id,
        file_type=file_type,
        activity=_activity(known, _seconds(r, n_tokens, split)),
        n_tokens=n_tokens,
        watts=watts,
        limit_w=r.power_limit_w,
        source=r.source,
        loads=loads,
        size_ratio=r.size_ratio,
        installation=r.installation,
    )


def _process(r: EnergyRow) -> tuple[str, ...] | None:
    """Return what rows of one sweep share whose power is a mean over the process, else None."""
    if OVER_THE_PROCESS not in r.power_kind:
        return None
    return (r.source, r.backend, r.stack, str(r.flash_attn))


def _loading(rows: Iterable[EnergyRow]) -> dict[tuple[str, ...], float]:
    """Return the loading seconds a repetition of each sweep, from its generations."""
    sweeps: dict[tuple[str, ...], list[tuple[float, float]]] = defaultdict(list)
    for r in rows:
        key = _process(r)
        if key is None or r.phase != "decode" or not (r.n_gen and r.tok_s and r.power_w):
            continue
        if SHORTEST_SWEPT <= r.n_gen <= LONGEST_SWEPT:
            sweeps[key].append((r.n_gen / r.tok_s, r.power_w))
    return {key: loading_seconds(*zip(*pairs, strict=True)) for key, pairs in sweeps.items()}


def observe_energy(
    rows: Iterable[EnergyRow],
) -> tuple[tuple[EnergyObservation, ...], tuple[EnergyRejected, ...]]:
    """Return the observations of clean inference rows, and the rows kept out with their rules."""
    listed = [r for r in rows if r.phase != "training"]
    loading = _loading(listed)
    made, rejected = [], []
    for r in listed:
        found: EnergyObservation | EnergyRule = check_energy(r) or energy_observation(r)
        key = _process(r)
        if isinstance(found, EnergyObservation) and key:
            load = loading.get(key, 0.0)
            if load > MOST_LOADING * (load + found.activity.seconds):
                found = LOADING
        if isinstance(found, EnergyRule):
            rejected.append(EnergyRejected(r, found))
        else:
            made.append(found)
    return tuple(made), tuple(rejected)
