"""`tokcast evaluate`: the error on what the fit did not see, with baselines beside it."""

import contextlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tokcast.cli import accuracy, evaluate_file
from tokcast.cli.progress import Progress
from tokcast.cli.render import Report, check_format, render
from tokcast.fits.evaluate import PhaseEvaluation, evaluate_phase
from tokcast.fits.kept import user_store
from tokcast.fits.light import Violation, violations
from tokcast.fits.observations import observe
from tokcast.fits.paper import order_changes
from tokcast.fits.released import released
from tokcast.measurements.schema import packaged
from tokcast.predictor.errors import InputError

PHASES = ("decode", "prefill")


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked for: a file's rows, or all splits, saved and on a cluster if so wished."""

    on: str | None = None
    n_folds: int = 10
    save: str | None = None
    cluster: str | None = None


@contextlib.contextmanager
def _workers(cluster: str | None) -> Iterator[None]:
    """Let fits run on a dask cluster: the address of a scheduler, or `local` for one here."""
    if cluster is None:
        yield
        return
    try:
        import distributed
        from joblib import parallel_config
    except ImportError as error:
        raise InputError(
            f"--cluster {cluster}: dask is not installed ({error.name});"
            ' expected: pip install "tokcast[cluster]"'
        ) from error
    given: dict[str, Any] = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    try:
        connect: Any = distributed.Client
        client = connect(**given) if cluster == "local" else connect(cluster, timeout="10s")
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(
            f"--cluster {cluster}: no scheduler answers ({error}); expected local or an address"
            " such as tcp://host:8786"
        ) from error
    with client, parallel_config(backend="dask"):
        yield


def _phase_data(p: PhaseEvaluation) -> dict[str, Any]:
    swapped, shared = order_changes(p.ladder)
    return {
        "splits": [
            {
                "split": s.name,
                "rows": s.rows,
                "tokcast": asdict(s.ours),
                "bootstrap90": asdict(s.sure),
                "baselines": {k: asdict(b) for k, b in s.baselines.items()},
            }
            for s in p.scores
        ],
        "noise_floor": asdict(p.floor) if p.floor else None,
        "breakdown": {
            key: {label: asdict(s) for label, s in classes.items()}
            for key, classes in p.breakdown.items()
        },
        "coverage": [asdict(c) for c in p.coverage],
        "calibration": [asdict(s) for s in p.shots],
        "paper": {
            protocol: {name: asdict(s) for name, s in scores.items()}
            for protocol, scores in p.paper.items()
        },
        "ladder": [asdict(r) for r in p.ladder],
        "ladder_pairs": {"shared": shared, "swapped": swapped},
    }


def _violation_data(v: Violation) -> dict[str, Any]:
    row = {k: sorted(x) if isinstance(x, frozenset) else x for k, x in asdict(v.row).items()}
    return {"ceiling_tok_per_s": v.ceiling_tok_per_s, "row": row}


def _splits(request: Request, output: str) -> int:
    phases: dict[str, PhaseEvaluation] = {}
    with Progress() as progress, _workers(request.cluster):
        progress("reading measurements")
        observations, rejected = observe(packaged())
        for phase in PHASES:
            rows = [o for o in observations if o.phase == phase]
            phases[phase] = evaluate_phase(rows, progress, request.n_folds, store=user_store())
    above = violations(rejected)
    verdict = (
        f"{len(observations):,} configurations ({len(rejected):,} rows kept out),"
        f" {request.n_folds} folds;"
        " every row predicted by a fit that did not see its chip, model, both or time"
    )
    data: dict[str, Any] = {
        "coefficients": released().digest,
        "n_folds": request.n_folds,
        "above_ceiling": [_violation_data(v) for v in above],
        "phases": {phase: _phase_data(p) for phase, p in phases.items()},
    }
    sections = accuracy.sections(phases, above)
    notes: list[str] = []
    if request.save is not None:
        notes += accuracy.save(Path(request.save), verdict, sections, phases, data)
    records = [
        {"phase": phase, "split": s["split"], "rows": s["rows"], **s["tokcast"]}
        for phase, p in data["phases"].items()
        for s in p["splits"]
    ]
    tables = tuple(table for section in sections for table in section.tables)
    print(render(Report((verdict,), tables, tuple(notes), data, records), output))
    return 0


def run(request: Request, output: str) -> int:
    """Print held-out scores of the packaged rows, or of the released coefficients on a file."""
    check_format(output)
    if request.on is not None:
        return evaluate_file.run(Path(request.on), output)
    if request.save is not None and not Path(request.save).is_dir():
        raise InputError(f"--save {request.save!r}: no such folder; expected one to write into")
    return _splits(request, output)
