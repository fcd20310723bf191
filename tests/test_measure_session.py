"""A calibration's launches: kept one by one, resumed, and going on past a crash."""

from pathlib import Path

import pytest
from measured import PLACE, FakeRuntime

from tokcast.measurements.calibration_run import FOLDER, calibrate, resume_or_start
from tokcast.measurements.plan import Launch, Plan
from tokcast.measurements.plan_items import Item
from tokcast.measurements.protocol import Rule
from tokcast.measurements.record import Task
from tokcast.measurements.runners.job import Job, Settings
from tokcast.measurements.store import Store, open_store
from tokcast.measurements.synthetic import NoRoomError
from tokcast.measurements.synthetic_mlx import MlxShape
from tokcast.measurements.synthetic_shape import Shape
from tokcast.predictor.errors import InputError
from tokcast.predictor.header import Header

SETTINGS = Settings(n_threads=2)
ITEMS = tuple(
    Item(name, Shape(name, 1, 64, 128, 2, 1, n_vocab=64), (Task("decode", 4),))
    for name in ("Q8_0", "Q4_0", "F16")
)


def plan(budget: float = 100.0) -> Plan:
    launches = tuple(Launch(item, n, 1.0) for n in (1, 2) for item in ITEMS)
    return Plan(launches, Rule(), 100_000, "digest", budget)


def speed(header: Header, test: Task) -> float:
    return 10.0


def go(
    store: Store, tmp_path: Path, runtime: object, asked: Plan | None = None, **more: object
) -> object:
    asked = asked or plan()
    return calibrate(
        asked,
        resume_or_start(store, asked),
        store,
        PLACE,
        SETTINGS,
        tmp_path,
        lambda *_: None,
        run=runtime,  # type: ignore[arg-type]
        **more,  # type: ignore[arg-type]
    )


def test_every_launch_is_kept_and_no_file_left(tmp_path: Path) -> None:
    store, runtime = open_store(tmp_path / "data"), FakeRuntime(speed)
    go(store, tmp_path, runtime)
    assert [r.item for r in store.runs()] == [work.key for work in plan().launches]
    assert {r.host for r in store.runs()} == {"Test Chip"}
    assert all(r.model.is_synthetic for r in store.runs())
    assert not (tmp_path / FOLDER).exists()
    assert [j.settings.seed for j in runtime.jobs] == [1, 1, 1, 2, 2, 2]


def test_a_crash_in_the_middle_loses_only_its_own_launch(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    outcome = go(store, tmp_path, FakeRuntime(speed, crashes=frozenset({2})))
    assert len(store.runs()) == 5
    assert "Q4_0#1: " in outcome.failed[0]  # type: ignore[attr-defined]
    assert "SIGSEGV" in outcome.failed[0]  # type: ignore[attr-defined]


def test_a_session_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    store, runtime = open_store(tmp_path / "data"), FakeRuntime(speed)

    def stopped(job: Job) -> object:
        if len(runtime.jobs) == 4:
            raise KeyboardInterrupt
        return runtime(job)

    with pytest.raises(KeyboardInterrupt):
        go(store, tmp_path, stopped)
    assert not (tmp_path / FOLDER).exists()
    assert len(store.runs()) == 4
    store.close()
    again, rest = open_store(tmp_path / "data"), FakeRuntime(speed)
    outcome = go(again, tmp_path, rest)
    assert len(rest.jobs) == 2
    assert len(outcome.runs) == 6  # type: ignore[attr-defined]


def test_leftovers_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "old.gguf").write_text("x")
    go(open_store(tmp_path / "data"), tmp_path, FakeRuntime(speed))
    assert not (tmp_path / FOLDER).exists()


def test_a_launch_disturbed_throughout_is_done_again(tmp_path: Path) -> None:
    store, busy = open_store(tmp_path / "data"), FakeRuntime(speed)
    busy.disturbed = ("other load",)
    go(store, tmp_path, busy)
    quiet = FakeRuntime(speed)
    go(store, tmp_path, quiet)
    assert len(quiet.jobs) == 6
    go(store, tmp_path, rest := FakeRuntime(speed))
    assert rest.jobs == []


def test_a_finished_or_other_session_is_not_resumed(tmp_path: Path) -> None:
    store = open_store(tmp_path / "data")
    first = resume_or_start(store, plan())
    assert resume_or_start(store, plan()) == first
    assert resume_or_start(store, plan(), fresh=True) != first


def test_a_full_disk_ends_it_with_what_is_done_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tokcast.measurements.calibration_run as module

    store, runtime = open_store(tmp_path / "data"), FakeRuntime(speed)
    write = module.write

    def full(path: Path, header: Header, seed: int) -> None:
        if len(runtime.jobs) == 2:
            raise NoRoomError(f"{path.parent}: the disk is full; free 1 GB")
        write(path, header, seed)

    monkeypatch.setattr(module, "write", full)
    with pytest.raises(NoRoomError, match="the disk is full"):
        go(store, tmp_path, runtime)
    assert len(store.runs()) == 2
    monkeypatch.setattr(module, "write", write)
    go(store, tmp_path, rest := FakeRuntime(speed))
    assert len(rest.jobs) == 4


def test_nothing_came_off(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no launch came off; the first said: Q8_0#1: .*SIGSEGV"):
        go(
            open_store(tmp_path / "data"),
            tmp_path,
            FakeRuntime(speed, crashes=frozenset(range(10))),
        )


def test_the_budget_ends_it_first_launches_get_half_as_much_again(tmp_path: Path) -> None:
    now = [0.0]
    runtime = FakeRuntime(speed)

    def slow(job: Job) -> object:
        now[0] += 5.0
        return runtime(job)

    go(open_store(tmp_path / "data"), tmp_path, slow, asked=plan(12.0), clock=lambda: now[0])
    assert len(runtime.jobs) == 3


def test_mlx_folders_are_made_and_removed(tmp_path: Path) -> None:
    item = Item("m", MlxShape(4, 1, 64, 64, 2, 1, 64), (Task("decode", 4),))
    mlx = Plan((Launch(item, 1, 1.0),), Rule(), 1000, "mlx", 100.0)
    store, runtime = open_store(tmp_path / "data"), FakeRuntime(speed)
    go(store, tmp_path, runtime, mlx)
    assert [j.runtime for j in runtime.jobs] == ["mlx"]
    (run,) = store.runs()
    assert run.model.name == "m"
    assert not (tmp_path / FOLDER).exists()
