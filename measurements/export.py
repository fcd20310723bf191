"""Runs as rows of the interchange schema, ready to share."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.metadata import version

from tokcast.measurements.figures import Figure, figures
from tokcast.measurements.record import RunRecord
from tokcast.measurements.schema import COLUMNS, Measurement

GIB = 1024.0**3


def _key(run: RunRecord) -> tuple[object, ...]:
    """Return what must agree for launches to be one configuration."""
    facts = replace(run.model, path="")
    return (run.host, facts, run.setup, run.created[:10])


def grouped(runs: Iterable[RunRecord]) -> list[list[RunRecord]]:
    """Return the launches of each configuration and day together, in order."""
    found: dict[tuple[object, ...], list[RunRecord]] = {}
    for run in runs:
        found.setdefault(_key(run), []).append(run)
    return list(found.values())


def _flags(run: RunRecord, f: Figure) -> frozenset[str]:
    flags = set()
    if not f.verdict.stable:
        flags.add("unstable")
    if run.model.is_synthetic:
        flags.add("synthetic-weights")
    return frozenset(flags)


def _row(run: RunRecord, f: Figure) -> Measurement:
    s, m = run.setup, run.model
    is_prefill = f.test.phase == "prefill"
    watts = None if f.joules_per_token is None else f.joules_per_token * f.tok_per_s
    return Measurement(
        source=f"tokcast {version('tokcast')} run {run.id}",
        chip=run.host,
        n_devices=1,
        memory_gb=None if run.memory_bytes is None else run.memory_bytes / GIB,
        runtime="mlx-lm" if s.runtime == "mlx" else s.runtime,
        backend=s.backend,
        backend_raw=s.backend,
        build=s.version,
        date=run.created[:10],
        model=m.name,
        model_file=m.path.replace("\\", "/").rpartition("/")[2],
        quant=m.file_type,
        model_id=m.model_id,
        file_type=m.file_type if m.model_id else "",
        size_gib=m.n_bytes / GIB,
        stock_gib=None,
        params_b=m.n_params / 1e9,
        phase=f.test.phase,
        n_prompt=float(f.test.n) if is_prefill else 0.0,
        n_gen=0.0 if is_prefill else float(f.test.n),
        n_depth=float(f.test.n_depth),
        n_batch=float(s.n_batch),
        n_ubatch=float(s.n_ubatch),
        flash_attn={"on": 1.0, "off": 0.0}.get(s.flash_attention),
        type_k=s.type_k,
        type_v=s.type_v,
        n_threads=None if s.n_threads is None else float(s.n_threads),
        ngl="" if s.n_gpu_layers is None else str(s.n_gpu_layers),
        placement="",
        tok_s=f.tok_per_s,
        tok_s_std=f.deviation,
        power_w=watts,
        power_kind=run.energy_source if watts is not None else "",
        flags=_flags(run, f),
    )


def rows(runs: Iterable[RunRecord]) -> tuple[Measurement, ...]:
    """Return one row for each test of each configuration, launches joined."""
    return tuple(_row(group[0], f) for group in grouped(runs) for f in figures(group))


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, frozenset):
        return ";".join(sorted(value))
    return repr(value) if isinstance(value, float) else str(value)


def to_csv(measurements: Sequence[Measurement]) -> str:
    """Return rows as CSV in the interchange schema; `schema.read_rows` reads it back alike."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows([_cell(getattr(m, name)) for name in COLUMNS] for m in measurements)
    return out.getvalue()
