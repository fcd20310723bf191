"""From kept runs or imported rows to a calibration that predictions can use."""

import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from tokcast.fits.calibrate import LEVELS, PhaseUpdate, Point, mape, update
from tokcast.fits.calibrated import fingerprint, with_facts
from tokcast.fits.energy_own import own_power
from tokcast.fits.observations import spec_of
from tokcast.measurements import headers
from tokcast.measurements.figures import figures
from tokcast.measurements.record import RunRecord
from tokcast.measurements.schema import Measurement
from tokcast.measurements.store import now
from tokcast.measurements.workloads import workloads
from tokcast.predictor.coefficients import Coefficients
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.ledger import Workload, ledger
from tokcast.predictor.model import model_spec
from tokcast.predictor.roofline import tokens_of
from tokcast.predictor.spec import ModelSpec
from tokcast.predictor.terms import Run
from tokcast.predictor.work import total

SCHEMA = 1
# A peak lies above whatever a few measurements reached.
HEADROOM = 1.5
UNSTABLE_WEIGHT = 0.25
# Fewer models than this say nothing of the next one.
FEWEST_MODELS = 2
# A type that makes up this much of a model must be known from another one to be predicted.
MAIN_SHARE = 0.15


def points_of_runs(runs: Iterable[RunRecord]) -> tuple[Point, ...]:
    """Return one point a test and model, its launches joined; unstable figures weigh less."""
    groups: dict[str, list[RunRecord]] = defaultdict(list)
    for run in runs:
        groups[run.model.header].append(run)
    found = []
    for packed, launches in groups.items():
        spec = model_spec(headers.unpack(packed))
        setup = launches[0].setup
        for f in figures(launches):
            is_decode = f.test.phase == "decode"
            load = Workload(
                f.test.phase,
                1 if is_decode else f.test.n,
                f.test.n_depth + (f.test.n // 2 if is_decode else 0),
                setup.n_ubatch,
                setup.type_k,
                setup.type_v,
                setup.flash_attention != "off",
            )
            weight = 1.0 if f.verdict.stable else UNSTABLE_WEIGHT
            found.append(
                Point(
                    launches[0].model.name,
                    spec,
                    load,
                    f.tok_per_s,
                    weight,
                    f.joules_per_token,
                    launches[0].energy_source,
                )
            )
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Usable:
    """Rows that a calibration can use, and how many it can't, by reason."""

    points: tuple[Point, ...]
    left_aside: Mapping[str, int]


def _why_not(m: Measurement, host: Host, backend: str) -> str:
    if m.chip and m.chip != host.name:
        return f"of another chip ({m.chip})"
    if m.backend != backend:
        return f"of another backend ({m.backend})"
    if m.n_devices != 1 or m.placement:
        return "split over devices or placed by hand"
    if not (m.model_id and m.file_type):
        return f"of a model that is not in the catalogue ({m.model or m.model_file or 'no name'})"
    if spec_of(m.model_id, m.file_type) is None:
        return f"of a file type the catalogue lacks ({m.file_type})"
    return "" if workloads(m) else "without lengths"


def points_of_rows(rows: Iterable[Measurement], host: Host, backend: str) -> Usable:
    """Return points of imported figures; repeats of a configuration are one point."""
    aside: Counter[str] = Counter()
    rates: dict[tuple[str, Workload], list[float]] = defaultdict(list)
    specs: dict[str, ModelSpec] = {}
    for m in rows:
        why = _why_not(m, host, backend)
        if why:
            aside[why] += 1
            continue
        key = f"{m.model_id}@{m.file_type}"
        spec = spec_of(m.model_id, m.file_type)
        if spec is not None:
            specs[key] = spec
            rates[key, workloads(m)[0]].append(m.tok_s)
    found = tuple(
        Point(name, specs[name], load, median(values)) for (name, load), values in rates.items()
    )
    return Usable(found, dict(aside))


def _main_types(spec: ModelSpec) -> set[str]:
    read = Counter[str]()
    for g in spec.groups:
        read[g.type] += int(g.n_bytes * g.read_fraction)
    return {t for t, n in read.items() if n > MAIN_SHARE * sum(read.values())}


def judged(points: Sequence[Point]) -> frozenset[str]:
    """Return the models whose left-out error counts: their main types occur in another one.

    Without its only model a type is unknown to the update, which says nothing of models of
    types that were measured. Where that leaves fewer than three, all count.
    """
    types = {p.model: _main_types(p.spec) for p in points}
    n = Counter(t for found in types.values() for t in found)
    fair = frozenset(m for m, found in types.items() if all(n[t] > 1 for t in found))
    return fair if len(fair) >= 3 else frozenset(types)


def at_least(facts: Mapping[str, float], points: Sequence[Point], host: Host) -> dict[str, float]:
    """Return measured peaks raised to what the points themselves reached.

    A probe that was disturbed, or a nameplate that understates the chip, must not cut predictions
    off below what was measured.
    """
    found = dict(facts)
    bytes_per_s, flops_per_s = 0.0, 0.0
    for p in points:
        n_bytes, flops = total(ledger(p.spec, p.workload))
        per_s = p.tok_per_s / tokens_of(p.workload)
        bytes_per_s = max(bytes_per_s, n_bytes * per_s)
        flops_per_s = max(flops_per_s, flops * per_s)
    if bytes_per_s > found.get("bytes_per_s", host.bytes_per_s):
        found["bytes_per_s"] = HEADROOM * bytes_per_s
    rates = (
        host.matrix_fp16_flops_per_s,
        host.matrix_fp32acc_flops_per_s,
        host.fp32_flops_per_s,
        host.int8_ops_per_s,
    )
    if HEADROOM * flops_per_s > max(r or 0.0 for r in rates):
        found["int8_ops_per_s"] = max(HEADROOM * flops_per_s, found.get("int8_ops_per_s", 0.0))
    return found


def _phase_data(u: PhaseUpdate, keep: frozenset[str]) -> dict[str, Any]:
    chosen = np.array([m in keep for m in u.models])
    before, after = mape(u.before[chosen]), mape(u.after[chosen])
    return {
        "n_points": len(u.models),
        "n_models": len(set(u.models)),
        "n_left_out": len(keep & set(u.models)),
        "mape_before": before,
        "mape_after": after,
        # An update that predicts what it didn't see no better is left out.
        "is_used": after < before,
    }


def make(
    points: Sequence[Point],
    host: Host,
    run: Run,
    released: Coefficients,
    facts: Mapping[str, float],
    source: str,
) -> dict[str, Any]:
    """Return a calibration as JSON values; raises InputError for too few models.

    `facts` are the host's measured peaks, which stand in for its published ones.
    """
    _check_models(points)
    facts = at_least(facts, points, host)
    measured = with_facts(host, facts)
    keep = judged(points)
    fitted = update(points, measured, run, released)
    phases = {phase: _phase_data(u, keep) for phase, u in fitted.items()}
    updates = {phase: u for phase, u in fitted.items() if phases[phase]["is_used"]}
    if not updates:
        raise InputError(
            "predictions of models left out are no better than before; nothing is changed:"
            " measure more models, or in a quieter hour"
        )
    effects: dict[str, float] = {}
    for u in updates.values():
        effects |= {name: round(v, 5) for name, v in u.effects.items()}
    power = own_power(points, measured, run, released)
    return {
        "schema": SCHEMA,
        "id": uuid.uuid4().hex[:12],
        "created": now(),
        "host": host.name,
        "fingerprint": fingerprint(host),
        "runtime": run.runtime,
        "backend": run.backend,
        "coefficients": released.digest,
        "source": source,
        "facts": dict(facts),
        "effects": effects,
        "intervals": {p: _intervals(u, keep) for p, u in updates.items()},
        "deepest": {p: u.deepest for p, u in updates.items()},
        "phases": phases,
        **({"energy": power} if power is not None else {}),
    }


def _check_models(points: Sequence[Point]) -> None:
    n_models = len({p.model for p in points})
    if n_models < FEWEST_MODELS:
        raise InputError(
            f"figures of {n_models} model{'s' * (n_models != 1)}; expected at least"
            f" {FEWEST_MODELS} models, so that one can be left out and predicted"
        )


def _intervals(u: PhaseUpdate, keep: frozenset[str]) -> dict[str, list[float]]:
    return {f"{level:g}": [round(v, 5) for v in u.interval(level, keep)] for level in LEVELS}
