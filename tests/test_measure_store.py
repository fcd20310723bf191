"""The store: whole or not at all, migrated, put aside when damaged."""

import json
import sqlite3
import threading
from pathlib import Path

import pytest
from measured import TINY, run

from tokcast.measurements.export import rows, to_csv
from tokcast.measurements.importers import read_text
from tokcast.measurements.lock import exclusive
from tokcast.measurements.record import Task, from_json, to_json
from tokcast.measurements.store import open_store
from tokcast.measurements.store_connection import MIGRATIONS
from tokcast.measurements.store_file import FILE, data_folder, newest_calibrations
from tokcast.predictor.errors import InputError

TG = Task("decode", 16, 512)
PP = Task("prefill", 128)


def test_a_run_comes_back_as_it_was(tmp_path: Path) -> None:
    first = run({TG: 20.0, PP: 300.0})
    store = open_store(tmp_path)
    store.add(first)
    store.close()
    again = open_store(tmp_path)
    assert again.runs() == (first,)
    assert again.runs("chip") == (first,)
    assert again.runs("absent") == ()
    assert again.note == ""
    assert again.check() == ()
    assert from_json(json.loads(json.dumps(to_json(first)))) == first


def test_write_ahead_log_and_full_synchronisation(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    assert store._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store._db.execute("PRAGMA synchronous").fetchone() == (2,)


def test_a_run_is_kept_whole_or_not_at_all(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    first = run({TG: 20.0})
    store.add(first)
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        store.add(first)
    assert store.runs() == (first,)


def test_an_older_store_is_brought_forward_with_its_runs(tmp_path: Path) -> None:
    first = run({TG: 20.0})
    with sqlite3.connect(tmp_path / FILE) as db:
        db.executescript(MIGRATIONS[0] + "PRAGMA user_version = 1;")
        db.execute(
            "INSERT INTO runs VALUES (?, ?, ?, ?, '', '', ?)",
            (first.id, first.created, first.host, first.model.name, json.dumps(to_json(first))),
        )
    db.close()
    store = open_store(tmp_path)
    assert store.runs() == (first,)
    assert store.calibrations() == ()
    assert store._db.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)


def test_a_newer_store_is_left_alone(tmp_path: Path) -> None:
    open_store(tmp_path).close()
    with sqlite3.connect(tmp_path / FILE) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(InputError, match="schema 99 of a newer tokcast"):
        open_store(tmp_path)


def filled(folder: Path) -> tuple[Path, bytearray]:
    """Return the file of a closed store of thirty runs, and its bytes to spoil."""
    store = open_store(folder)
    for _ in range(30):
        store.add(run({TG: 20.0, PP: 300.0}))
    store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    path = folder / FILE
    return path, bytearray(path.read_bytes())


@pytest.mark.parametrize("where", ["head", "middle"])
def test_a_damaged_store_is_put_aside_and_the_next_run_goes_on(tmp_path: Path, where: str) -> None:
    path, data = filled(tmp_path)
    at = 0 if where == "head" else 4096 * 3
    data[at : at + 3000] = b"\xff" * 3000
    path.write_bytes(data)
    again = open_store(tmp_path)
    assert "the store was damaged" in again.note
    kept = list(tmp_path.glob(f"{FILE}.damaged-*"))
    assert any(k.read_bytes() == bytes(data) for k in kept)
    again.add(run({TG: 20.0}))
    assert len(again.runs()) >= 1


def test_what_can_be_read_of_a_damaged_store_is_taken_over(tmp_path: Path) -> None:
    path, data = filled(tmp_path)
    data[-5000:-1000] = b"\xff" * 4000
    path.write_bytes(data)
    again = open_store(tmp_path)
    assert "taken over" in again.note
    assert 0 < len(again.runs()) <= 30


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(InputError, match="set TOKCAST_DATA to a folder"):
        open_store(file / "below")


def test_the_folder_is_the_platforms_or_the_one_given() -> None:
    assert data_folder({"TOKCAST_DATA": "/x/y"}) == Path("/x/y")
    assert data_folder({}).name == "tokcast"


def test_imported_figures_are_kept_once(tmp_path: Path) -> None:
    found = read_text(to_csv(rows([run({TG: 20.0})])), "mine.csv").rows
    store = open_store(tmp_path)
    assert store.add_imported(found, "a") == 1
    assert store.add_imported(found, "b") == 0
    assert [m for _, m in store.imported()] == list(found)


def test_exported_rows_read_back_alike() -> None:
    made = rows([run({TG: 20.0, PP: 300.0}), run({TG: 22.0})])
    assert len(made) == 2
    (tg, pp) = made
    assert (tg.tok_s, tg.n_gen, tg.n_depth, tg.n_threads) == (21.0, 16, 512, 2)
    assert (pp.phase, pp.n_prompt, pp.tok_s) == ("prefill", 128, 300.0)
    assert tg.model == TINY.name
    assert "synthetic-weights" in tg.flags
    assert read_text(to_csv(made), "x").rows == made


def test_calibrations_are_read_without_making_a_store(tmp_path: Path) -> None:
    assert newest_calibrations(tmp_path) == ()
    assert not (tmp_path / FILE).exists()
    store = open_store(tmp_path)
    session = store.start("s1", "plan")
    assert store.session("plan", "2000") == session
    body = {"id": "c", "created": "1", "host": "h", "runtime": "r", "backend": "CPU"}
    store.finish("s1", body)
    store.finish("s1", {**body, "id": "d", "created": "2"})
    assert [c["id"] for c in newest_calibrations(tmp_path)] == ["d", "c"]
    assert store.session("plan", "2000") is None
    store.close()
    (tmp_path / FILE).write_bytes(b"nonsense")
    assert newest_calibrations(tmp_path) == ()


def test_a_second_measurement_waits_and_says_so(tmp_path: Path) -> None:
    said: list[str] = []
    order: list[str] = []
    waiting = threading.Event()

    def second() -> None:
        with exclusive(tmp_path, said.append, lambda _: waiting.set()):
            order.append("second")

    with exclusive(tmp_path, said.append):
        thread = threading.Thread(target=second)
        thread.start()
        assert waiting.wait(10)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]
    assert len(said) == 1
    assert said[0].startswith("another tokcast measures on this machine (process ")
