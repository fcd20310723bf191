"""From measurements to observations: one configuration each, with its ledger's terms."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from operator import attrgetter
from statistics import median

from tokcast.hosts.registry import chips
from tokcast.measurements.cleaning import Facts, Rule, check
from tokcast.measurements.dates import year_of
from tokcast.measurements.localscore import machine_of
from tokcast.measurements.schema import COLUMNS, Measurement
from tokcast.measurements.workloads import workloads
from tokcast.predictor.catalogue import header
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.ledger import Work, Workload, ledger
from tokcast.predictor.memory import Setting, memory
from tokcast.predictor.model import model_spec
from tokcast.predictor.roofline import ceiling_tok_per_s, tokens_of
from tokcast.predictor.spec import ModelSpec
from tokcast.predictor.terms import Run

BUFFERS_BYTES = 0.5 * 1024**3
MLX_RUNTIMES = frozenset({"mlx-lm", "rapid-mlx", "mlx-swift-lm", "vllm-mlx", "omlx", "MLX server"})


@dataclass(frozen=True, slots=True)
class Observation:
    """One configuration measured once or more.

    `tok_per_s` is the median of its rows, `works` the ledger of each workload whose mean rate it
    is. `rows` counts the measurements, `sources` names their origins.
    """

    host: Host
    run: Run
    spec: ModelSpec
    model_id: str
    file_type: str
    workloads: tuple[Workload, ...]
    works: tuple[tuple[Work, ...], ...]
    tok_per_s: float
    rows: int
    sources: frozenset[str]
    is_suite: bool

    @property
    def phase(self) -> str:
        """Return prefill or decode."""
        return self.workloads[0].phase


@dataclass(frozen=True, slots=True)
class Rejected:
    """A measurement that a rule keeps out."""

    measurement: Measurement
    rule: Rule


@cache
def _hosts() -> dict[str, Host]:
    return {h.name: h for h in chips()}


@cache
def spec_of(model_id: str, file_type: str) -> ModelSpec | None:
    """Return the catalogue's model under a file type, None when either is unknown."""
    try:
        return model_spec(header(model_id, file_type))
    except InputError:
        return None


def size_ratio(m: Measurement) -> float:
    """Return printed over stock size for files with their own mix of types, else 1."""
    if "non-stock-mix" in m.flags and m.size_gib and m.stock_gib:
        return m.size_gib / m.stock_gib
    return 1.0


# llama.cpp keeps K and V of sliding layers for the window alone since this date (its pull request
# 13194); llamafile and ik_llama.cpp forked before and keep all positions. MLX always did.
WINDOWED_SINCE = 2025.38


def is_windowed(run: Run) -> bool:
    """Return whether a run saves by sliding windows."""
    if run.backend == "MLX":
        return True
    if run.runtime in ("llamafile", "ik_llama.cpp"):
        return False
    return (run.year or WINDOWED_SINCE) >= WINDOWED_SINCE


def as_of(spec: ModelSpec, windowed: bool) -> ModelSpec:
    """Return a model as a runtime of its day ran it: without windows where it had none."""
    if windowed or all(x.window is None for x in spec.layers):
        return spec
    whole = (replace(x, attention="full", window=None) if x.window else x for x in spec.layers)
    return replace(spec, layers=tuple(whole))


_WEIGHTS = frozenset(
    {"attention", "ffn", "experts", "shared_experts", "router", "recurrent", "head", "other"}
)


@cache
def works_of(
    model_id: str, file_type: str, ratio: float, workload: Workload, windowed: bool = True
) -> tuple[Work, ...] | None:
    """Return a ledger with the weight bytes scaled to the file's real size."""
    spec = spec_of(model_id, file_type)
    if spec is None:
        return None
    works = ledger(as_of(spec, windowed), workload)
    if ratio == 1.0:
        return works
    return tuple(replace(w, bytes=w.bytes * ratio) if w.component in _WEIGHTS else w for w in works)


def run_of(m: Measurement) -> Run:
    """Return how a measurement was run."""
    runtime = "mlx" if m.runtime in MLX_RUNTIMES else m.runtime
    machine = machine_of(m)
    return Run(
        runtime="llama.cpp" if runtime == "llama-server" else runtime,
        backend=m.backend,
        stack=m.backend_raw,
        year=year_of(m),
        n_threads=int(m.n_threads) if m.n_threads else None,
        flash_attention=None if m.flash_attn is None else m.flash_attn > 0,
        system=machine.system if machine else "",
        is_client_timed=bool(m.flags & {"client-timing", "approx-tokens"}),
    )


@cache
def _need_bytes(model_id: str, file_type: str, loads: tuple[Workload, ...]) -> float:
    spec = spec_of(model_id, file_type)
    if spec is None:
        return 0.0
    longest = max(
        (w.n_depth + (w.n_prompt if w.phase == "prefill" else 0) for w in loads), default=0
    )
    load = loads[0] if loads else Workload("decode")
    use = memory(spec, max(longest, 1), Setting(load.type_k, load.type_v))
    return use.weights_bytes + use.kv_bytes + BUFFERS_BYTES


@cache
def _ceiling(
    chip: str, model_id: str, file_type: str, ratio: float, loads: tuple[Workload, ...]
) -> float:
    """Return the mean over workloads of what the chip's nameplate allows, in tokens/s."""
    host = _hosts()[chip]
    ceilings = [
        ceiling_tok_per_s(works_of(model_id, file_type, ratio, w) or (), host, tokens_of(w))
        for w in loads
    ]
    return sum(ceilings) / len(ceilings)


def facts_of(m: Measurement) -> Facts:
    """Return what a row's chip and model imply."""
    host = _hosts().get(m.chip)
    spec = spec_of(m.model_id, m.file_type) if m.model_id and m.file_type else None
    loads = workloads(m)
    if host is None or spec is None or not loads:
        return Facts(host, spec, loads)
    ceiling = _ceiling(m.chip, m.model_id, m.file_type, size_ratio(m), loads)
    need = _need_bytes(m.model_id, m.file_type, loads)
    return Facts(host, spec, loads, m.tok_s / ceiling, need)


def ram_bytes(m: Measurement) -> float | None:
    """Return the memory installed beside a processor, None where nobody said.

    What the system reports is a little less than what is installed: a multiple of 2 GiB above.
    """
    if m.backend != "CPU" or not m.memory_gb:
        return None
    return math.ceil(m.memory_gb / 2 - 0.05) * 2 * 2.0**30


def _key(m: Measurement, run: Run, loads: tuple[Workload, ...]) -> tuple[object, ...]:
    half_year = None if run.year is None else math.floor(run.year * 2)
    ratio = round(math.log(size_ratio(m)), 2)
    run = replace(run, year=half_year)
    return (m.chip, ram_bytes(m), run, m.model_id, m.file_type, ratio, loads, m.is_suite)


# What of a row decides which configuration it is of: everything but the figures themselves.
_configuration = attrgetter(
    *(f for f in COLUMNS if f not in ("tok_s", "tok_s_std", "power_w", "power_kind"))
)


@dataclass(frozen=True, slots=True)
class _Known:
    """What rows alike in all but their figures share; `facts` are of a row of 1 token/s."""

    facts: Facts
    run: Run
    key: tuple[object, ...]

    def of(self, tok_s: float) -> Facts:
        """Return the facts of a row of such a speed."""
        roof = self.facts.roof
        return self.facts if roof is None else replace(self.facts, roof=roof * tok_s)


def _known(m: Measurement) -> _Known:
    facts, run = facts_of(replace(m, tok_s=1.0)), run_of(m)
    loads = tuple(replace(w, flash_attention=run.has_flash) for w in facts.workloads)
    facts = replace(facts, workloads=loads)
    if facts.host is not None and (installed := ram_bytes(m)):
        facts = replace(facts, host=replace(facts.host, memory_bytes=installed))
    return _Known(facts, run, _key(m, run, loads))


def observe(rows: Iterable[Measurement]) -> tuple[tuple[Observation, ...], tuple[Rejected, ...]]:
    """Return the observations of clean rows, repeats joined, and the rows kept out."""
    groups: dict[tuple[object, ...], list[Measurement]] = defaultdict(list)
    rejected = []
    seen: dict[tuple[object, ...], _Known] = {}
    known_by_key: dict[tuple[object, ...], _Known] = {}
    for m in rows:
        configuration = _configuration(m)
        known = seen.get(configuration)
        if known is None:
            known = seen[configuration] = _known(m)
        rule = check(m, known.of(m.tok_s))
        if rule is not None:
            rejected.append(Rejected(m, rule))
            continue
        known = known_by_key.setdefault(known.key, known)
        groups[known.key].append(m)
    made = (
        _observation(groups[key], known.facts, known.run) for key, known in known_by_key.items()
    )
    return tuple(made), tuple(rejected)


# Repeats further apart than this did not run alike.
UNLIKE = 1.2


def typical_tok_per_s(rates: Sequence[float]) -> float:
    """Return the speed that repeats of a configuration stand for: their median.

    Where they lie more than a fifth apart, a setting that nobody wrote down set them apart (a
    library switched on, a kernel before its change): the median of the faster half, since such
    settings only ever cost speed.
    """
    ordered = sorted(rates)
    if ordered[-1] > UNLIKE * ordered[0]:
        ordered = ordered[len(ordered) // 2 :]
    return median(ordered)


def _observation(rows: list[Measurement], facts: Facts, run: Run) -> Observation:
    first = rows[0]
    if facts.host is None or facts.spec is None:
        raise AssertionError("a clean row has a chip and a model")
    ratio = size_ratio(first)
    windowed = is_windowed(run)
    works = (works_of(first.model_id, first.file_type, ratio, w, windowed) for w in facts.workloads)
    return Observation(
        host=facts.host,
        run=run,
        spec=facts.spec,
        model_id=first.model_id,
        file_type=first.file_type,
        workloads=facts.workloads,
        works=tuple(w for w in works if w is not None),
        tok_per_s=typical_tok_per_s([m.tok_s for m in rows]),
        rows=len(rows),
        sources=frozenset(m.source for m in rows),
        is_suite=first.is_suite,
    )
