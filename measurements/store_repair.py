"""A damaged store: put aside, and read as far as it can be."""

import contextlib
import sqlite3
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def put_aside(path: Path) -> Path:
    """Rename a damaged store and what belongs to it; return its new name."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S%f")
    kept = path.with_name(f"{path.name}.damaged-{stamp}")
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            Path(f"{path}{suffix}").rename(f"{kept}{suffix}")
    return kept


def _readable(damaged: Path, table: str) -> Iterator[tuple[Any, ...]]:
    """Yield the rows that a damaged file still gives, up to the first that it doesn't."""
    with contextlib.suppress(sqlite3.Error):
        uri = f"{damaged.as_uri()}?mode=ro&immutable=1"
        with contextlib.closing(sqlite3.connect(uri, uri=True)) as old:
            yield from old.execute(f"SELECT * FROM {table}")


def take_over(damaged: Path, db: sqlite3.Connection) -> int:
    """Copy what can be read of a damaged store; return how many runs that were."""
    n_runs = 0
    for table in ("runs", "imported", "calibrations", "sessions"):
        with db:
            for row in _readable(damaged, table):
                marks = ", ".join("?" * len(row))
                with contextlib.suppress(sqlite3.Error):
                    db.execute(f"INSERT INTO {table} VALUES ({marks})", row)
                    n_runs += table == "runs"
    return n_runs
