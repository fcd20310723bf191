"""Published runs of placed models: each row's machine and placement."""

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources

from tokcast.fits.observations import run_of
from tokcast.fits.placed_files import GIB, inventory
from tokcast.hosts.machine import machine
from tokcast.measurements.schema import Measurement, packaged, read_rows
from tokcast.measurements.workloads import workloads
from tokcast.predictor.errors import InputError
from tokcast.predictor.ledger import Workload
from tokcast.predictor.placement.loads import device_loads
from tokcast.predictor.placement.plan import Placement, PlacementOptions, place
from tokcast.predictor.terms import Run


@dataclass(frozen=True, slots=True)
class Place:
    """Where a source ran: `text` names the machine as `--host` does.

    `n_batch` is the batch that a source used without saying so in its rows.
    """

    source: str
    chip: str
    text: str
    n_batch: int | None


@dataclass(frozen=True, slots=True)
class PlacedRun:
    """One configuration measured: `machine` names where, `file` and `model` what was run."""

    placement: Placement
    workload: Workload
    run: Run
    machine: str
    model: str
    file: str
    tok_per_s: float


@dataclass(frozen=True, slots=True)
class PlacedRows:
    """Runs of placed models, and the rows left out by reason."""

    runs: tuple[PlacedRun, ...]
    rejected: Mapping[str, int]


def published() -> tuple[Measurement, ...]:
    """Return the packaged measurements and those of placed models that were gathered for this."""
    data = resources.files("tokcast.measurements").joinpath("data/placed_runs.csv")
    own = read_rows(io.StringIO(data.read_text(encoding="utf-8")), "placed_runs.csv")
    return packaged() + tuple(m for m in own if isinstance(m, Measurement))


def placed_rows(rows: Iterable[Measurement]) -> PlacedRows:
    """Return the runs of partly offloaded and divided models among measurements."""
    runs: list[PlacedRun] = []
    rejected: Counter[str] = Counter()
    for m in rows:
        if "cpu-offload" not in m.flags and m.n_devices < 2:
            continue
        found = _run(m)
        if isinstance(found, str):
            rejected[found] += 1
        else:
            runs.append(found)
    return PlacedRows(tuple(runs), rejected)


def _run(m: Measurement) -> PlacedRun | str:
    """Return a row's run, or why there is none."""
    reason = next((why for hits, why in _RULES if hits(m)), None)
    if reason is not None:
        return reason
    where = _place_of(m)
    if where is None:
        return "the machine is not known, or its cards are not alike"
    if where.n_batch:
        m = replace(m, n_batch=float(max(where.n_batch, m.n_ubatch or 0)))
    loads = workloads(m)
    if not loads:
        return "lengths are not stated"
    try:
        model = inventory(m.model_id, m.file_type, m.model_file, m.size_gib)
    except InputError:
        return "no tensor table for this model and type"
    options = options_of(m, model.n_layer)
    if options is None:
        return "the placement is not said in full"
    placement = place(model, machine(where.text).devices, options)
    if _pages(placement):
        return "more in main memory than it holds: read from disk"
    file = f"{m.model_file} {m.size_gib}"
    run = run_of(m)
    return PlacedRun(placement, loads[0], run, where.text, m.model_id, file, m.tok_s)


# Memory that the system and its programs keep.
SYSTEM_BYTES = 3 * GIB
_COMPARES_SPLITS = re.compile("pull/22298|issues/1416|pull/390|LottoLotto")
_RULES: tuple[tuple[Callable[[Measurement], bool], str], ...] = (
    (lambda m: "rpc" in m.flags, "divided over a network"),
    (lambda m: m.backend == "CPU", "two processors"),
    (
        lambda m: bool(m.flags & {"uvm-experiment", "larger-than-vram"}),
        "the driver pages to main memory",
    ),
    (
        lambda m: m.backend == "Vulkan" and m.n_devices == 3,
        "two cards and a processor's own graphics: which worked is not said",
    ),
    (
        lambda m: _COMPARES_SPLITS.search(m.source) is not None,
        "the source compares ways to divide and its rows do not say which",
    ),
    (
        lambda m: m.runtime == "ik_llama.cpp" and m.phase == "prefill",
        "ik_llama.cpp copies and repacks by rules of its own",
    ),
)


def _pages(placement: Placement) -> bool:
    memory = placement.devices[-1].memory_bytes
    if memory is None:
        return False
    return device_loads(placement)[-1].weight_bytes > memory - SYSTEM_BYTES


@cache
def _places() -> tuple[Place, ...]:
    data = resources.files("tokcast.measurements").joinpath("data/placed_machines.csv")
    rows = csv.DictReader(data.read_text(encoding="utf-8").splitlines())
    return tuple(
        Place(r["source"], r["chip"], r["machine"], int(r["n_batch"]) if r["n_batch"] else None)
        for r in rows
    )


def _place_of(m: Measurement) -> Place | None:
    """Return where a row was measured; several cards without the processor need no more."""
    if "cpu-offload" not in m.flags:
        return Place(m.source, m.chip, f"{m.n_devices}x {m.chip}", None)
    told = f"{m.source} {m.model_file}"
    return next((p for p in _places() if p.chip == m.chip and p.source in told), None)


# llama.cpp divided matrices by rows until its pull request 4766 of January 2024.
_BY_ROWS = re.compile("LLaMA(?: 2)?/")


def options_of(m: Measurement, n_layer: int) -> PlacementOptions | None:
    """Return how a row was placed, None where its text does not say it in full."""
    ngl = int(float(m.ngl)) if re.fullmatch(r"\d+(\.0)?", m.ngl) else None
    text = m.placement.strip()
    if not text:
        is_rows = m.n_devices > 1 and _BY_ROWS.search(m.source) is not None
        return PlacementOptions(n_gpu_layers=ngl, split_mode="row" if is_rows else "layer")
    counted = re.fullmatch(r"(?:n_cpu_moe=|-ncmoe )(\d+)", text)
    if counted:
        return PlacementOptions(n_gpu_layers=ngl, n_cpu_moe=int(counted[1]))
    if text.isdecimal():
        # llama-fit-params keeps the experts of the last so many layers in main memory.
        layers = "|".join(str(i) for i in range(n_layer - int(text), n_layer))
        pattern = rf"blk\.({layers})\.ffn_(up|down|gate_up|gate)_(ch|)exps"
        return PlacementOptions(n_gpu_layers=ngl, overrides=((pattern, "CPU"),))
    overrides = tuple(_overrides(text))
    return PlacementOptions(n_gpu_layers=ngl, overrides=overrides) if overrides else None


def _overrides(text: str) -> Iterator[tuple[str, str]]:
    if "<" in text:
        return
    for one in re.findall(r'"([^"]+)"|(?<=-ot )([^\s"]+)', text):
        pattern, _, device = (one[0] or one[1]).rpartition("=")
        if pattern:
            yield pattern, device
