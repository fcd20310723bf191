"""The store's tables, and a connection to its file that has them all."""

import sqlite3
from pathlib import Path

from tokcast.predictor.errors import InputError

# Each script brings the schema one version further; `PRAGMA user_version` counts them.
MIGRATIONS = (
    """
    CREATE TABLE runs (
        id TEXT PRIMARY KEY, created TEXT NOT NULL, host TEXT NOT NULL, model TEXT NOT NULL,
        session TEXT NOT NULL DEFAULT '', item TEXT NOT NULL DEFAULT '', body TEXT NOT NULL
    );
    CREATE INDEX runs_session ON runs (session);
    CREATE TABLE imported (
        id INTEGER PRIMARY KEY, batch TEXT NOT NULL, created TEXT NOT NULL, body TEXT NOT NULL,
        UNIQUE (body)
    );
    """,
    """
    CREATE TABLE calibrations (
        id TEXT PRIMARY KEY, created TEXT NOT NULL, host TEXT NOT NULL, runtime TEXT NOT NULL,
        backend TEXT NOT NULL, body TEXT NOT NULL
    );
    CREATE TABLE sessions (
        id TEXT PRIMARY KEY, created TEXT NOT NULL, plan TEXT NOT NULL,
        done TEXT NOT NULL DEFAULT ''
    );
    """,
)


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise InputError(
            f"{path}: schema {version} of a newer tokcast, this one knows {len(MIGRATIONS)};"
            " update tokcast, or set TOKCAST_DATA to another folder"
        )
    for number, script in enumerate(MIGRATIONS[version:], version + 1):
        db.executescript(f"BEGIN; {script} PRAGMA user_version = {number}; COMMIT;")


def connect(path: Path) -> sqlite3.Connection:
    """Return a connection to a whole file, brought to the newest schema; raises as sqlite3 does."""
    db = sqlite3.connect(path, timeout=10.0)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        _migrate(db, path)
        damage = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if damage != "ok":
            raise sqlite3.DatabaseError(damage)
    except BaseException:
        db.close()
        raise
    return db
