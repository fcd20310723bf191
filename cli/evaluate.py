"""`tokcast evaluate`: the error on what the fit did not see, with baselines beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tokcast.cli.progress import Progress
from tokcast.cli.render import Report, Table, render
from tokcast.fits.evaluate import Floor, SplitScore, evaluate_phase, noise_floor
from tokcast.fits.observations import observe
from tokcast.fits.released import released
from tokcast.fits.scores import Score
from tokcast.fits.scoring import PhaseScore, Scoring, score_rows
from tokcast.measurements.schema import open_text, packaged, read_rows

_COLUMNS = ("rows", "hosts", "median", "MAPE", "p90", "host mean", "bias")


def _cells(s: Score) -> tuple[str, ...]:
    return (
        str(s.n),
        str(s.n_hosts),
        f"{s.median_ape:.1f} %",
        f"{s.mape:.1f} %",
        f"{s.p90_ape:.1f} %",
        f"{s.host_mean_mape:.1f} %",
        f"{s.bias:+.1f} %",
    )


def _table(title: str, scores: Mapping[str, Score]) -> Table:
    rows = tuple((name, *_cells(s)) for name, s in scores.items())
    return Table((title, *_COLUMNS), rows, frozenset(_COLUMNS))


# --- on a file


def _phase_tables(phase: str, p: PhaseScore) -> list[Table]:
    return [
        _table(phase, {"tokcast": p.score, **p.baselines}),
        _table(f"{phase} by evidence", {str(k): s for k, s in p.by_evidence.items()}),
        _table(f"{phase} by backend", p.by_backend),
    ]


def _phase_data(p: PhaseScore) -> dict[str, Any]:
    return {
        **asdict(p.score),
        "rows": p.score.n,
        "scored": p.score.n,
        "coverage80": p.coverage80,
        "coverage95": p.coverage95,
        "by_evidence": {k: asdict(s) for k, s in p.by_evidence.items()},
        "by_host": {k: asdict(s) for k, s in p.by_host.items()},
        "by_backend": {k: asdict(s) for k, s in p.by_backend.items()},
        "baselines": {k: asdict(s) for k, s in p.baselines.items()},
    }


def _file_data(name: str, s: Scoring, digest: str) -> dict[str, Any]:
    return {
        "file": name,
        "coefficients": digest,
        "rows": s.n_rows,
        "skipped": s.skipped,
        "new_chips": list(s.new_chips),
        "new_models": list(s.new_models),
        "phases": {phase: _phase_data(p) for phase, p in s.phases.items()},
    }


def _on_file(path: Path, output: str) -> int:
    c = released()
    with Progress() as progress:
        progress("reading rows")
        rows = list(read_rows(open_text(path), str(path)))
        seen, _ = observe(packaged())
        progress("scoring")
        scoring = score_rows(rows, c, seen)
    data = _file_data(str(path), scoring, c.digest)
    n_scored = sum(p.score.n for p in scoring.phases.values())
    verdict = [f"{scoring.n_rows:,} rows of {path}: {n_scored:,} configurations scored"]
    for phase, p in scoring.phases.items():
        verdict.append(
            f"  {phase}: median error {p.score.median_ape:.1f} %, mean over hosts of MAPE"
            f" {p.score.host_mean_mape:.1f} %; 80 % intervals held {100 * p.coverage80:.0f} %,"
            f" 95 % {100 * p.coverage95:.0f} %"
        )
    tables = [t for phase, p in scoring.phases.items() for t in _phase_tables(phase, p)]
    notes = [f"Skipped {n:,}: {reason}." for reason, n in scoring.skipped.items()]
    if not scoring.new_chips and not scoring.new_models:
        notes.append("Every chip and model was in the fit: this is no held-out error.")
    notes.append(f"Chips new to the fit: {', '.join(scoring.new_chips) or 'none'}.")
    notes.append(f"Models new to the fit: {', '.join(scoring.new_models) or 'none'}.")
    records = [
        {"phase": phase, "host": host, **asdict(s)}
        for phase, p in scoring.phases.items()
        for host, s in p.by_host.items()
    ]
    print(render(Report(tuple(verdict), tuple(tables), tuple(notes), data, records), output))
    return 0 if n_scored else 1


# --- the splits


def _split_tables(phase: str, scores: Sequence[SplitScore], floor: Floor | None) -> list[Table]:
    ours = {f"{s.name}; {s.rows}": s.ours for s in scores}
    tables = [_table(f"{phase}, held out", ours)]
    for s in scores:
        if s.rows == "all":
            tables.append(_table(f"{phase}, {s.name}", {"tokcast": s.ours, **s.baselines}))
    if floor:
        row = (str(floor.n_pairs), f"{floor.median:.1f} %", f"{floor.mean:.1f} %")
        columns = (f"{phase}, noise floor: pairs", "median", "mean")
        tables.append(Table(columns, (row,), frozenset(columns)))
    return tables


def _split_data(scores: Sequence[SplitScore], floor: Floor | None) -> dict[str, Any]:
    return {
        "splits": [
            {
                "split": s.name,
                "rows": s.rows,
                "tokcast": asdict(s.ours),
                "baselines": {k: asdict(b) for k, b in s.baselines.items()},
            }
            for s in scores
        ],
        "noise_floor": asdict(floor) if floor else None,
    }


def _splits(n_folds: int, output: str) -> int:
    tables: list[Table] = []
    data: dict[str, Any] = {"coefficients": released().digest, "n_folds": n_folds, "phases": {}}
    with Progress() as progress:
        progress("reading measurements")
        observations, rejected = observe(packaged())
        for phase in ("decode", "prefill"):
            rows = [o for o in observations if o.phase == phase]
            scores = evaluate_phase(rows, progress, n_folds)
            floor = noise_floor(rows)
            tables += _split_tables(phase, scores, floor)
            data["phases"][phase] = _split_data(scores, floor)
    verdict = (
        f"{len(observations):,} configurations ({len(rejected):,} rows kept out), {n_folds} folds;"
        " every row predicted by a fit that did not see its chip, model, both or time"
    )
    records = [
        {"phase": phase, "split": s["split"], "rows": s["rows"], **s["tokcast"]}
        for phase, p in data["phases"].items()
        for s in p["splits"]
    ]
    print(render(Report((verdict,), tuple(tables), (), data, records), output))
    return 0


def run(on: str | None, n_folds: int, output: str) -> int:
    """Print held-out scores of the packaged rows, or of the released coefficients on a file."""
    return _splits(n_folds, output) if on is None else _on_file(Path(on), output)
