"""Measured runs as data: whole as JSON, one flat row a figure for the rest."""

from collections.abc import Iterable
from typing import Any

from tokcast.measurements.export import grouped
from tokcast.measurements.figures import figures
from tokcast.measurements.record import RunRecord, to_json


def run_data(run: RunRecord) -> dict[str, Any]:
    """Return a run with all its samples, but for the packed header."""
    data = to_json(run)
    data["model"].pop("header")
    return data


def run_records(runs: Iterable[RunRecord]) -> list[dict[str, Any]]:
    """Return one row for each test of each configuration."""
    return [
        {
            "run": group[0].id,
            "created": group[0].created,
            "host": group[0].host,
            "runtime": group[0].setup.runtime,
            "backend": group[0].setup.backend,
            "model": group[0].model.name,
            "file_type": group[0].model.file_type,
            "test": f.test.label,
            "phase": f.test.phase,
            "n": f.test.n,
            "n_depth": f.test.n_depth,
            "tok_per_s": f.tok_per_s,
            "deviation": f.deviation,
            "n_launches": f.n_launches,
            "n_samples": f.n_samples,
            "stable": f.verdict.stable,
            "reasons": "; ".join(f.verdict.reasons),
            "joules_per_token": f.joules_per_token,
        }
        for group in grouped(runs)
        for f in figures(group)
    ]
