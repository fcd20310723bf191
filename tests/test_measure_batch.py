"""`tokcast measure batch`: what is asked of the runtime, kept and refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from cli_tools import good, refused

from tokcast.cli import measure_batch
from tokcast.measurements import batches as store
from tokcast.measurements.batch_plan import Round, Size
from tokcast.measurements.record import Sample, Setup
from tokcast.measurements.runners.job import Job

SMALL = ("--slots", "3", "-c", "1k", "--longest", "64", "--offline")


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[tuple[Job, Size, int]]:
    """Stand in for the runtime: every token takes 10 ms, the last repetition is disturbed."""
    calls: list[tuple[Job, Size, int]] = []

    def launch(job: Job, size: Size, rounds: list[Round]) -> tuple[Setup, Any]:
        calls.append((job, size, len(rounds)))
        found = []
        for planned in rounds:
            times = [0.01 * sum(n for _, n in batch.parts) for batch in planned.batches]
            found.append([(Sample(t), Sample(2 * t), Sample(t, 0.5, ("load",))) for t in times])
        return Setup("llama.cpp", "9.9", n_threads=2), found

    monkeypatch.setattr(measure_batch, "launch_batches", launch)
    monkeypatch.setenv("TOKCAST_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("TOKCAST_SCRATCH", str(tmp_path))
    return calls


MODEL = "smollm2-135m@Q2_K"


def test_rounds_are_measured_and_kept(runtime: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "b.csv"
    shown = good("measure", "batch", MODEL, *SMALL, "--rounds", "5", "--to", path)
    assert [n for _, _, n in runtime] == [4, 1]
    assert runtime[0][1] == Size(3, 1024, 64)
    kept = store.read(path)
    assert len(kept) == 5 * (12 + 6 + 4)
    assert {b.conditions.model for b in kept} == {MODEL}
    for b in kept:
        # The faster half of two undisturbed repetitions.
        assert b.clean_seconds == pytest.approx(0.01 * b.n_new)
    assert shown.startswith(f"110 batches of {MODEL} on ")
    assert str(path).replace("\n", "") in shown.replace("\n  ", "")
    again = json.loads(good("measure", "batch", MODEL, *SMALL, "--rounds", "1", "-o", "json"))
    assert len(again["batches"]) == 22


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--rounds", "0"), "--rounds '0': expected one number of at least 1"),
        (("--slots", "4000"), "--slots 4000: expected at most 256"),
        (("-c", "256"), "3 slots in 256 cells: expected 1 or more slots"),
        (("--longest", "8k"), "--longest 8192: with 256 new tokens beyond the model's context"),
        (("-fa", "maybe"), "-fa 'maybe': expected on, off or auto"),
        (("-t", "0"), "-t '0': expected a number of threads"),
    ],
)
def test_bad_input_is_one_line(runtime: list[Any], words: tuple[str, str], line: str) -> None:
    pairs = dict(zip(SMALL[:-1:2], SMALL[1:-1:2], strict=True)) | dict([words])
    given = (word for pair in pairs.items() for word in pair)
    assert line in refused("measure", "batch", MODEL, *given, "--offline")
    assert not runtime
