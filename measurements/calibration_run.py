"""Doing a calibration's launches: files made and removed, finished launches kept, resumed."""

import contextlib
import platform
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tokcast.measurements import headers
from tokcast.measurements.launch import Launch as Launched
from tokcast.measurements.launch import launch
from tokcast.measurements.plan import Launch, Plan
from tokcast.measurements.record import ModelFacts, RunRecord, is_whole
from tokcast.measurements.runners.job import Job, Settings
from tokcast.measurements.store import Session, Store, now
from tokcast.measurements.synthetic import NoRoomError, write
from tokcast.measurements.synthetic_mlx import MlxShape, write_folder
from tokcast.predictor.errors import InputError
from tokcast.predictor.header import Header
from tokcast.predictor.model import model_spec
from tokcast.predictor.sources import open_model

# A session that was interrupted longer ago than this begins anew: the machine has changed.
RESUME_HOURS = 24.0
FOLDER = "tokcast-calibration"

Launcher = Callable[[Job], Launched]
# Called before each launch with how many are done, of how many, and the seconds expected to go.
OnLaunch = Callable[[Launch, int, int, float], None]


@dataclass(frozen=True, slots=True)
class Place:
    """Which machine is measured, as runs record it."""

    host: str
    memory_bytes: float | None


def facts(header: Header, path: str, clone_of: str = "", is_synthetic: bool = False) -> ModelFacts:
    """Return what a run records of its model."""
    spec = model_spec(header)
    return ModelFacts(
        name=spec.name or Path(path).stem,
        architecture=spec.architecture,
        file_type=spec.file_type,
        n_bytes=spec.n_bytes,
        n_params=spec.n_params,
        path=path,
        is_synthetic=is_synthetic,
        clone_of=clone_of,
        header=headers.pack(header),
    )


def record(
    launched: Launched, model: ModelFacts, place: Place, *, session: str = "", item: str = ""
) -> RunRecord:
    """Return a launch as a run to be kept."""
    if launched.setup is None:
        raise InputError(f"{model.path}: the runtime said nothing of itself")
    return RunRecord(
        id=uuid.uuid4().hex[:12],
        created=now(),
        host=place.host,
        memory_bytes=place.memory_bytes,
        model=model,
        setup=launched.setup,
        series=tuple(launched.series),
        load_seconds=launched.load_seconds,
        peak_bytes=launched.peak_bytes,
        energy_source=launched.energy_source,
        idle_watts=launched.idle_watts,
        session=session,
        item=item,
        machine={"system": platform.platform(), "processor": platform.processor()},
    )


def resume_or_start(store: Store, plan: Plan, fresh: bool = False) -> Session:
    """Return the interrupted session of this plan, or a new one."""
    since = datetime.now(UTC) - timedelta(hours=RESUME_HOURS)
    found = None if fresh else store.session(plan.digest, since.isoformat())
    return found or store.start(uuid.uuid4().hex[:12], plan.digest)


@contextlib.contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    """Yield an empty folder for model files, removed afterwards, leftovers of a crash with it."""
    place = folder / FOLDER
    shutil.rmtree(place, ignore_errors=True)
    try:
        place.mkdir(parents=True)
    except OSError as error:
        raise InputError(
            f"{place}: {error.strerror}; set TOKCAST_SCRATCH to a folder with room"
        ) from error
    try:
        yield place
    finally:
        shutil.rmtree(place, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a session holds in the end; `failed` are launches that did not come off, with why."""

    runs: tuple[RunRecord, ...]
    failed: tuple[str, ...]
    seconds: float


def _one(
    work: Launch, folder: Path, settings: Settings, plan: Plan, run: Launcher
) -> tuple[Launched, ModelFacts]:
    shape, tests = work.item.shape, work.item.tests
    chosen = replace(settings, seed=work.number)
    try:
        if isinstance(shape, MlxShape):
            path = folder / work.item.key
            write_folder(path, shape, seed=work.number)
            header = replace(open_model(str(path)), source=shape.name)
            launched = run(Job("mlx", str(path), tests, chosen, plan.rule))
        else:
            path = folder / f"{work.item.key}.gguf"
            header = work.item.header
            write(path, header, seed=work.number)
            launched = run(Job("llama.cpp", str(path), tests, chosen, plan.rule))
    finally:
        for made in folder.iterdir():
            shutil.rmtree(made) if made.is_dir() else made.unlink()
    return launched, facts(header, path.name, is_synthetic=True)


def remaining(launches: Sequence[Launch], pace: float) -> float:
    """Return the seconds left; `pace` is measured over expected time so far."""
    return pace * sum(work.expected_seconds for work in launches)


def _is_over(seconds: float, plan: Plan, work: Launch) -> bool:
    """Return whether the time is up; first launches, which carry most, get half as much again."""
    return seconds > plan.budget_seconds * (1.0 if work.number > 1 else 1.5)


def calibrate(
    plan: Plan,
    session: Session,
    store: Store,
    place: Place,
    settings: Settings,
    folder: Path,
    on_launch: OnLaunch,
    *,
    run: Launcher = launch,
    clock: Callable[[], float] = time.monotonic,
) -> Outcome:
    """Do the plan's launches that the session lacks; each is kept as soon as it is done.

    One that was disturbed throughout is done again when the session is resumed.

    A launch that fails is noted and the next one goes on; a full disk ends it.
    """
    start = clock()
    done = {r.item for r in store.runs(session=session.id) if is_whole(r)}
    todo = [work for work in plan.launches if work.key not in done]
    failed: list[str] = []
    spent = expected = 0.0
    with scratch(folder) as models:
        for i, work in enumerate(todo):
            if _is_over(clock() - start, plan, work):
                break
            pace = spent / expected if expected else 1.0
            n_done = len(plan.launches) - len(todo) + i
            on_launch(work, n_done, len(plan.launches), remaining(todo[i:], pace))
            began = clock()
            try:
                launched, model = _one(work, models, settings, plan, run)
            except NoRoomError:
                raise
            except InputError as error:
                failed.append(f"{work.key}: {error}")
                continue
            kept = record(launched, model, place, session=session.id, item=work.key)
            store.add(kept)
            spent += clock() - began
            expected += work.expected_seconds
    runs = store.runs(session=session.id)
    if not runs:
        raise InputError(f"no launch came off; the first said: {failed[0]}")
    return Outcome(runs, tuple(failed), clock() - start)
