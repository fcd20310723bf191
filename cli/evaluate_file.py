"""`tokcast evaluate --on FILE`: the released coefficients on rows of the interchange schema."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tokcast.cli.progress import Progress
from tokcast.cli.render import Report, Table, cut, render
from tokcast.cli.score_tables import score_table
from tokcast.fits.observations import observe
from tokcast.fits.released import released
from tokcast.fits.scoring import PhaseScore, Scoring, score_rows
from tokcast.hosts.match import candidates
from tokcast.hosts.registry import names
from tokcast.measurements.schema import BadRow, Measurement, open_text, packaged, read_rows
from tokcast.predictor.text import listing

_MOST_REASONS = 8


def _phase_tables(phase: str, p: PhaseScore) -> list[Table]:
    return [
        score_table(phase, {"tokcast": p.score, **p.baselines}),
        score_table(f"{phase} by evidence", {str(k): s for k, s in p.by_evidence.items()}),
        score_table(f"{phase} by backend", p.by_backend),
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


def _skipped_notes(skipped: Mapping[str, int]) -> list[str]:
    """Return why rows were left out, the commonest reasons first, no more than fit a screen."""
    ranked = sorted(skipped.items(), key=lambda item: -item[1])
    notes = [f"Skipped {n:,}: {cut(reason, 160)}." for reason, n in ranked[:_MOST_REASONS]]
    if rest := ranked[_MOST_REASONS:]:
        n = sum(n for _, n in rest)
        notes.append(f"Skipped {n:,} more for {len(rest):,} other reasons (-o json has them).")
    return notes


def _canonical(
    rows: Iterable[Measurement | BadRow],
) -> tuple[list[Measurement | BadRow], dict[str, str]]:
    """Return the rows with each chip under its registry name where the name means one chip.

    The names that were read so come along, `RTX 4090` as `NVIDIA GeForce RTX 4090`.
    """
    meant: dict[str, str] = {}
    listed: list[Measurement | BadRow] = []
    for row in rows:
        if isinstance(row, Measurement):
            if row.chip not in meant:
                found = {host.name for host in candidates(row.chip)}
                is_known = row.chip in names() or len(found) != 1
                meant[row.chip] = row.chip if is_known else found.pop()
            if meant[row.chip] != row.chip:
                row = replace(row, chip=meant[row.chip])
        listed.append(row)
    return listed, {typed: name for typed, name in meant.items() if typed != name}


def run(path: Path, output: str) -> int:
    """Print the released coefficients' score on a file's rows; exit code 1 if none was scored."""
    c = released()
    with Progress() as progress:
        progress("reading rows")
        rows, renamed = _canonical(read_rows(open_text(path), str(path)))
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
    notes = _skipped_notes(scoring.skipped)
    if renamed:
        read_as = [f"{typed} as {name}" for typed, name in renamed.items()]
        notes.append(f"Chips read by their usual names: {listing(read_as)}.")
    if n_scored and not scoring.new_chips and not scoring.new_models:
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
