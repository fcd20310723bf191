"""Where runs are kept: SQLite in the user's data folder, one transaction a run.

WAL mode with full synchronisation: a run that was reported as kept survives a killed process and
a power loss. A store that is damaged is put aside, never overwritten.
"""

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tokcast.measurements.record import RunRecord, from_json, to_json
from tokcast.measurements.schema import COLUMNS, Measurement
from tokcast.predictor.errors import InputError

FILE = "measurements.sqlite3"
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


def data_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder of the store: `TOKCAST_DATA`, else the platform's."""
    given = environ.get("TOKCAST_DATA")
    if given:
        return Path(given).expanduser()
    from platformdirs import user_data_path

    return user_data_path("tokcast", appauthor=False)


def now() -> str:
    """Return the time as ISO text in UTC, to the microsecond."""
    return datetime.now(UTC).isoformat(timespec="microseconds")


@dataclass(frozen=True, slots=True)
class Session:
    """A calibration under way or done; `plan` is the digest of what it consists of."""

    id: str
    created: str
    plan: str
    done: str


class Store:
    """The store's runs, imported figures, sessions and calibrations; made by `open_store`."""

    def __init__(self, connection: sqlite3.Connection, path: Path, note: str = "") -> None:
        self._db, self.path, self.note = connection, path, note

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._db:
                yield self._db
        except sqlite3.OperationalError as error:
            raise InputError(f"{self.path}: {error}; free some space, or set TOKCAST_DATA") from (
                error
            )

    def add(self, run: RunRecord) -> None:
        """Keep a run, whole or not at all."""
        row = (run.id, run.created, run.host, run.model.name, run.session, run.item)
        with self._writing() as db:
            body = json.dumps(to_json(run))
            db.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?)", (*row, body))

    def runs(self, text: str | None = None, session: str | None = None) -> tuple[RunRecord, ...]:
        """Return runs, oldest first: those whose id, host or model holds the text."""
        rows = self._db.execute("SELECT id, host, model, session, body FROM runs ORDER BY created")
        found = []
        for id_, host, model, of, body in rows:
            words = f"{id_} {host} {model}".lower()
            if (session is None or of == session) and (not text or text.lower() in words):
                found.append(from_json(json.loads(body)))
        return tuple(found)

    def add_imported(self, rows: Sequence[Measurement], batch: str) -> int:
        """Keep imported figures; return how many were not there yet."""
        with self._writing() as db:
            before = db.total_changes
            db.executemany(
                "INSERT OR IGNORE INTO imported (batch, created, body) VALUES (?, ?, ?)",
                [(batch, now(), json.dumps(_plain(m))) for m in rows],
            )
            return db.total_changes - before

    def imported(self) -> tuple[tuple[str, Measurement], ...]:
        """Return imported figures with their batches, in the order they came."""
        rows = self._db.execute("SELECT batch, body FROM imported ORDER BY id")
        return tuple((batch, _measurement(json.loads(body))) for batch, body in rows)

    def session(self, plan: str, not_before: str) -> Session | None:
        """Return the unfinished session of a plan that was started since, the newest."""
        row = self._db.execute(
            "SELECT * FROM sessions WHERE plan = ? AND done = '' AND created >= ?"
            " ORDER BY created DESC LIMIT 1",
            (plan, not_before),
        ).fetchone()
        return Session(*row) if row else None

    def start(self, id_: str, plan: str) -> Session:
        """Note that a session begins."""
        begun = Session(id_, now(), plan, "")
        with self._writing() as db:
            db.execute("INSERT INTO sessions VALUES (?, ?, ?, '')", (id_, begun.created, plan))
        return begun

    def finish(self, session: str, calibration: Mapping[str, Any]) -> None:
        """Keep a calibration and close its session, in one transaction."""
        row = [calibration[k] for k in ("id", "created", "host", "runtime", "backend")]
        with self._writing() as db:
            db.execute("UPDATE sessions SET done = ? WHERE id = ?", (now(), session))
            db.execute(
                "INSERT OR REPLACE INTO calibrations VALUES (?, ?, ?, ?, ?, ?)",
                (*row, json.dumps(calibration)),
            )

    def calibrations(self) -> tuple[dict[str, Any], ...]:
        """Return calibrations, newest first."""
        rows = self._db.execute("SELECT body FROM calibrations ORDER BY created DESC")
        return tuple(json.loads(body) for (body,) in rows)

    def check(self) -> tuple[str, ...]:
        """Return what SQLite finds wrong with the file; nothing when it is whole."""
        found = [row[0] for row in self._db.execute("PRAGMA integrity_check")]
        return () if found == ["ok"] else tuple(found)


def _plain(m: Measurement) -> dict[str, Any]:
    values = {name: getattr(m, name) for name in COLUMNS}
    return {**values, "flags": sorted(m.flags)}


def _measurement(data: Mapping[str, Any]) -> Measurement:
    return Measurement(**{**data, "flags": frozenset(data["flags"])})


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if version > len(MIGRATIONS):
        raise InputError(
            f"{path}: schema {version} of a newer tokcast, this one knows {len(MIGRATIONS)};"
            " update tokcast, or set TOKCAST_DATA to another folder"
        )
    for number, script in enumerate(MIGRATIONS[version:], version + 1):
        db.executescript(f"BEGIN; {script} PRAGMA user_version = {number}; COMMIT;")


def _connect(path: Path) -> sqlite3.Connection:
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


def _put_aside(path: Path) -> Path:
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


def _take_over(damaged: Path, db: sqlite3.Connection) -> int:
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


def _begin_anew(path: Path, why: Exception) -> Store:
    kept = _put_aside(path)
    db = _connect(path)
    n_runs = _take_over(kept, db)
    note = f"the store was damaged ({why}): kept as {kept.name}, {n_runs} runs taken over"
    return Store(db, path, note)


def open_store(folder: Path | None = None) -> Store:
    """Return the store, made where there was none.

    A damaged one is put aside and what can be read of it taken over, with a note.

    Raises InputError where the folder can't be written to, and for a newer tokcast's store.
    """
    place = folder or data_folder()
    path = place / FILE
    try:
        place.mkdir(parents=True, exist_ok=True)
        return Store(_connect(path), path)
    except OSError as error:
        raise InputError(
            f"{place}: {error.strerror}; set TOKCAST_DATA to a folder that can be written to"
        ) from error
    except sqlite3.OperationalError as error:
        raise InputError(f"{path}: {error}; set TOKCAST_DATA to another folder") from error
    except sqlite3.DatabaseError as error:
        return _begin_anew(path, error)


def newest_calibrations(folder: Path | None = None) -> tuple[dict[str, Any], ...]:
    """Return stored calibrations, newest first, without making a store; () where there is none.

    A store that can't be read has none: predictions go on with the released coefficients.
    """
    path = (folder or data_folder()) / FILE
    if not path.exists():
        return ()
    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
            rows = db.execute("SELECT body FROM calibrations ORDER BY created DESC").fetchall()
        return tuple(json.loads(body) for (body,) in rows)
    except (sqlite3.Error, ValueError):
        return ()
