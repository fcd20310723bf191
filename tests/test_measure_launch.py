"""Launches in a process of their own: events, crashes, hangs; llama-bench read leniently."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tokcast.measurements.gate import Reading
from tokcast.measurements.launch import crash_reason, launch
from tokcast.measurements.protocol import Rule
from tokcast.measurements.record import Task
from tokcast.measurements.runners import llama_bench
from tokcast.measurements.runners.job import Job, Settings, from_json, longest, to_json
from tokcast.predictor.errors import InputError

JOB = Job(
    "llama.cpp",
    "m.gguf",
    (Task("prefill", 8), Task("decode", 4, 16)),
    Settings(n_threads=2),
    Rule(),
)


def child(code: str) -> Any:
    """A `popen` that runs this Python instead of the worker."""

    def popen(_: object, **options: Any) -> Any:
        return subprocess.Popen([sys.executable, "-c", code], **options)

    return popen


EVENTS = """
import json, sys
job = json.load(sys.stdin)
print(json.dumps({"event": "loaded", "setup": {"runtime": "llama.cpp"}, "load_seconds": 0.5}))
for test in job["tests"]:
    print(json.dumps({"event": "series", "test": test, "samples": [{"seconds": 2.0}]}))
print(json.dumps({"event": "done", "peak_bytes": 7}))
"""


def test_events_become_a_launch() -> None:
    seen: list[str] = []
    found = launch(JOB, seen.append, popen=child(EVENTS))
    assert [s.test for s in found.series] == list(JOB.tests)
    assert (found.load_seconds, found.peak_bytes) == (0.5, 7)
    assert seen == ["loaded", "pp8", "tg4 @ d16", "done"]


def test_a_crash_of_the_runtime_is_an_error_with_its_signal() -> None:
    code = "import os, sys; sys.stdin.read(); sys.stderr.write('GGML_ASSERT failed\\n'); "
    code += "sys.stderr.flush(); os.kill(os.getpid(), 11)"
    with pytest.raises(InputError, match=r"m\.gguf: the runtime crashed with SIGSEGV: GGML_ASSERT"):
        launch(JOB, popen=child(code))


def test_a_child_that_ends_at_once() -> None:
    with pytest.raises(InputError, match="ended with code 3"):
        launch(JOB, popen=child("import sys; sys.exit(3)"))


def test_too_few_results_are_none() -> None:
    with pytest.raises(InputError, match="ended with code 0"):
        launch(JOB, popen=child("import sys; sys.stdin.read()"))


def test_a_childs_own_words() -> None:
    code = "import json, sys; sys.stdin.read(); "
    code += "print(json.dumps({'event': 'error', 'message': 'm.gguf: no such model'}))"
    with pytest.raises(InputError, match=r"^m\.gguf: no such model$"):
        launch(JOB, popen=child(code))


def test_a_child_that_hangs_is_ended() -> None:
    with pytest.raises(InputError, match="SIGKILL"):
        launch(JOB, popen=child("import sys, time; sys.stdin.read(); time.sleep(60)"), patience_s=1)


def test_an_interrupt_ends_the_child() -> None:
    children: list[Any] = []

    def popen(*_: object, **options: Any) -> Any:
        code = EVENTS + "\nimport time; sys.stdout.flush(); time.sleep(60)"
        children.append(subprocess.Popen([sys.executable, "-c", code], **options))
        return children[0]

    def stop(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        launch(JOB, stop, popen=popen)
    assert children[0].poll() is not None


def test_reasons_in_words() -> None:
    assert crash_reason(-9, "") == "the runtime crashed with SIGKILL (killed: out of memory?)"
    assert crash_reason(1, "a\nlast line\n") == "the runtime's process ended with code 1: last line"


def test_a_job_travels_as_json() -> None:
    assert from_json(json.loads(json.dumps(to_json(JOB)))) == JOB
    assert longest(JOB) == 20


def record(**fields: Any) -> dict[str, Any]:
    return {"n_prompt": 0, "n_gen": 0, "n_depth": 0, "avg_ns": 2e9, "avg_ts": 1.0, **fields}


class FakeBench:
    def __init__(self, *outputs: list[dict[str, Any]], code: int = 0) -> None:
        self.outputs = list(outputs)
        self.commands: list[Sequence[str]] = []
        self.code = code

    def __call__(self, words: Sequence[str], **_: Any) -> Any:
        self.commands.append(words)
        text = "build noise\n" + json.dumps(self.outputs.pop(0))
        return SimpleNamespace(returncode=self.code, stdout=text, stderr="bad flag\n")


def test_llama_bench_is_asked_once_a_depth() -> None:
    fake = FakeBench(
        [record(n_prompt=8, samples_ns=[1e9, 2e9], use_mmap=1, flash_attn=1, build_commit="abc")],
        [record(n_gen=4, n_depth=16)],
    )
    found = llama_bench.launch_bench(Path("llama-bench"), JOB, run=fake)
    assert [s.test for s in found.series] == list(JOB.tests)
    assert [s.seconds for s in found.series[0].samples] == [1.0, 2.0]
    assert [s.seconds for s in found.series[1].samples] == [2.0]
    assert found.setup is not None
    assert (found.setup.load_mode, found.setup.flash_attention) == ("mmap", "on")
    first, second = (" ".join(c) for c in fake.commands)
    assert "-p 8 -n 0" in first
    assert "-p 0 -n 4" in second
    assert second.endswith("-d 16")
    assert "-d" not in fake.commands[0]


def test_the_newer_load_mode_is_read_as_well() -> None:
    fake = FakeBench([record(n_prompt=8, load_mode="auto", flash_attn=-1)], [])
    found = llama_bench.launch_bench(Path("llama-bench"), JOB, run=fake)
    assert found.setup is not None
    assert (found.setup.load_mode, found.setup.flash_attention) == ("auto", "auto")


def test_a_whole_call_of_llama_bench_is_marked() -> None:
    class Busy:
        def before(self) -> object:
            return None

        def after(self, start: object, seconds: float) -> Reading:
            return Reading(0.4, ("other load",))

    fake = FakeBench([record(n_prompt=8)], [record(n_gen=4, n_depth=16)])
    found = llama_bench.launch_bench(Path("llama-bench"), JOB, gate=Busy(), run=fake)
    assert all(s.clean == () for s in found.series)


def test_llama_bench_that_fails() -> None:
    with pytest.raises(InputError, match="ended with code 1: bad flag"):
        llama_bench.launch_bench(Path("llama-bench"), JOB, run=FakeBench([], code=1))
    with pytest.raises(InputError, match="printed no results"):
        llama_bench.launch_bench(Path("llama-bench"), JOB, run=FakeBench([], []))


def test_llama_bench_is_found(tmp_path: Path) -> None:
    binary = tmp_path / "llama-bench"
    binary.write_text("#!/bin/sh\n")
    assert llama_bench.find({"LLAMA_BENCH": str(binary)}) != binary
    binary.chmod(0o755)
    assert llama_bench.find({"LLAMA_BENCH": str(binary)}) == binary
    assert llama_bench.find({"PATH": str(tmp_path)}) == binary
    assert llama_bench.find({"PATH": "", "LLAMA_CPP_LIB_PATH": str(tmp_path)}) == binary
