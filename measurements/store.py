"""Where runs are kept: SQLite in the user's data folder, one transaction a run.

WAL mode with full synchronisation: a run that was reported as kept survives a killed process and
a power loss. A store that is damaged is put aside, never overwritten.
"""

import contextlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tokcast.measurements.record import RunRecord, from_json, to_json
from tokcast.measurements.schema import COLUMNS, Measurement
from tokcast.measurements.store_connection import connect
from tokcast.measurements.store_file import FILE, data_folder
from tokcast.measurements.store_repair import put_aside, take_over
from tokcast.predictor.errors import InputError


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


def _begin_anew(path: Path, why: Exception) -> Store:
    kept = put_aside(path)
    db = connect(path)
    n_runs = take_over(kept, db)
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
        return Store(connect(path), path)
    except OSError as error:
        raise InputError(
            f"{place}: {error.strerror}; set TOKCAST_DATA to a folder that can be written to"
        ) from error
    except sqlite3.OperationalError as error:
        raise InputError(f"{path}: {error}; set TOKCAST_DATA to another folder") from error
    except sqlite3.DatabaseError as error:
        return _begin_anew(path, error)
