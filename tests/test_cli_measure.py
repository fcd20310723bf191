"""`tokcast measure` and `tokcast calibrate` with a fake runtime: what they print and keep."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_tools import good, refused, run
from measured import CHIP, SETUP, FakeRuntime, Speed

from tokcast.cli import calibrate as calibrate_module
from tokcast.cli import calibrate_probe
from tokcast.cli import measure as measure_module
from tokcast.cli.measuring import Engine
from tokcast.fits.calibrated import run_here
from tokcast.fits.released import released
from tokcast.measurements import plan as plan_module
from tokcast.measurements.plan_items import Item
from tokcast.measurements.probe import Peaks
from tokcast.measurements.record import Task
from tokcast.measurements.runners.rates import Rate
from tokcast.measurements.synthetic import write
from tokcast.measurements.synthetic_shape import Shape, shaped
from tokcast.predictor.catalogue import header
from tokcast.predictor.header import Header
from tokcast.predictor.ledger import Workload
from tokcast.predictor.model import model_spec
from tokcast.predictor.roofline import Question, predict

HOST = replace(CHIP, bytes_per_s=70e9, confidence="low")
ITEMS = tuple(
    Item(
        name,
        Shape(kind, layers, 64, 128, 2, 1, n_vocab=256),
        (Task("decode", 4), Task("prefill", 16), Task("decode", 4, 32)),
    )
    for name, kind, layers in (
        ("a", "Q8_0", 1),
        ("b", "Q4_0", 2),
        ("c", "Q8_0", 3),
        ("d", "Q4_0", 4),
        ("e", "Q8_0", 2),
    )
)


def faster(factor: float) -> Speed:
    """A host that is so many times as fast as the release says."""

    def speed(header: Header, test: Task) -> float:
        depth = test.n_depth + (test.n // 2 if test.phase == "decode" else 0)
        load = Workload(test.phase, test.n if test.phase == "prefill" else 1, depth)
        question = Question(load, HOST, run_here("llama.cpp", "CPU", released()))
        return factor * predict(model_spec(header), question, released()).tok_per_s

    return speed


class FakeEngine:
    """An engine whose runtime is a fake."""

    runtime = "llama.cpp"
    setup = SETUP
    host = HOST

    def __init__(self) -> None:
        self.fake = FakeRuntime(faster(1.6))

    def launch(self, job: object, on_event: object = None) -> object:
        return self.fake(job)  # type: ignore[arg-type]


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    fake = FakeEngine()
    monkeypatch.setenv("TOKCAST_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("TOKCAST_SCRATCH", str(tmp_path))
    for module in (measure_module, calibrate_module):
        monkeypatch.setattr(module, "engine_of", lambda *_: fake)
    monkeypatch.setattr(calibrate_module, "detected", lambda _: HOST)
    monkeypatch.setattr(calibrate_probe, "probe", lambda n: Peaks(n, 6e10, 0.02, 6e10, 5e11, 0.01))
    kernels = ("CPU", (Rate("Q8_0", 5e10, 4e11, 0.03),))
    monkeypatch.setattr(calibrate_probe, "rates", lambda *_: kernels)
    monkeypatch.setattr(plan_module, "gguf_items", lambda _: iter(ITEMS))
    monkeypatch.setattr(
        "tokcast.hosts.detect.detect",
        lambda: __import__("types").SimpleNamespace(
            hosts=(HOST,), notes=("a guess",), memory_bytes=32e9
        ),
    )
    return fake


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    write(path, shaped(Shape("Q8_0", 2, 64, 128, 2, 1, n_vocab=256)))
    return path


def test_a_model_is_measured_listed_shown_exported_and_checked(
    engine: FakeEngine, model: Path, tmp_path: Path
) -> None:
    engine.fake.speed = lambda *_: 100.0
    text = good("measure", "run", model, "-p", "16", "-n", "4", "-d", "0,32", "--launches", "2")
    lines = [line for line in text.splitlines() if line]
    assert lines[0] == "synthetic-Q8_0-2x64 on Test Chip (llama.cpp, CPU)"
    assert [line.split("  ")[0] for line in lines[2:6]] == [
        "pp16",
        "tg4",
        "pp16 @ d32",
        "tg4 @ d32",
    ]
    assert all(line.endswith("stable") for line in lines[2:6])
    assert "No energy counter here." in text
    listed = json.loads(good("measure", "list", "-o", "json"))
    assert len(listed["runs"]) == 2
    id_ = listed["runs"][0]["id"]
    assert "2 launches in" in good("measure", "list")
    shown = json.loads(good("measure", "show", id_, "-o", "json"))
    assert [s["test"]["n_depth"] for s in shown["series"]] == [0, 0, 32, 32]
    assert "2 threads, batch 2048" in good("measure", "show", id_[:6])
    csv = good("measure", "export")
    assert csv.startswith("source,chip,")
    assert csv.count("\n") == 5
    to = tmp_path / "mine.csv"
    assert good("measure", "export", "--to", to) == f"4 figures written to {to}\n"
    assert to.read_text() == csv
    assert "nothing wrong" in good("measure", "check")
    assert len(engine.fake.jobs) == 2
    assert engine.fake.jobs[0].tests[2:] == (Task("prefill", 16, 32), Task("decode", 4, 32))


def test_a_model_that_is_not_here_is_measured_by_its_shapes(engine: FakeEngine) -> None:
    out = good("measure", "run", "smollm2-135m@Q8_0", "-p", "0", "-n", "4", "--offline")
    assert "random weights in the shapes of smollm2-135m@Q8_0" in out.replace("\n  ", " ")
    (path,) = {j.path for j in engine.fake.jobs}
    assert not Path(path).exists()
    exported = good("measure", "export")
    assert "synthetic-weights" in exported


def test_unstable_figures_are_marked(engine: FakeEngine, model: Path) -> None:
    engine.fake.disturbed = ("other load",)
    out = good("measure", "run", model, "-p", "0", "-n", "4")
    assert "1 of 1 figures are not to be trusted" in out
    assert "all 3 repetitions were disturbed" in out
    checked = run("measure", "check")
    assert checked.code == 1
    assert "1 problems" in checked.out


def test_bad_requests(engine: FakeEngine, model: Path, tmp_path: Path) -> None:
    measure = ("measure", "run", model)
    assert "nothing to measure" in refused(*measure, "-p", "0", "-n", "0")
    assert "-t 'many'" in refused(*measure, "-t", "many")
    assert "-fa 'perhaps'" in refused(*measure, "-fa", "perhaps")
    assert "--launches 99: expected at most 50" in refused(*measure, "--launches", "99")
    assert "-o yaml: unknown format" in refused(*measure, "-o", "yaml")
    assert "no run of that id" in refused("measure", "show", "zzz")
    assert "nothing to export" in refused("measure", "export")
    assert "expected a CSV file" in refused("measure", "import", tmp_path / "absent.csv")
    text = tmp_path / "a.txt"
    text.write_text("hello")
    assert "no figures found" in refused("measure", "import", text)
    assert "--budget 'soon'" in refused("calibrate", "--budget", "soon")
    assert run("measure", "list").code == 1


def test_a_model_larger_than_memory(
    engine: FakeEngine, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure_module, "free_bytes", lambda: 1000.0)
    assert "0.00 GiB are free" in refused("measure", "run", model)


def test_other_programs_figures_are_imported(engine: FakeEngine) -> None:
    data = Path(__file__).parent / "data" / "bench"
    out = good("measure", "import", data / "gemma.json", data / "gemma.md", "--host", "EPYC 9135")
    assert "8 figures read from 2 files" in out
    again = json.loads(
        good("measure", "import", data / "gemma.json", "--host", "EPYC 9135", "-o", "json")
    )
    assert again["files"][0]["new"] == 0
    assert "gemma.json" in good("measure", "list")
    assert good("measure", "export").count("AMD EPYC 9135") == 8
    checked = run("measure", "check", data / "gemma.csv")
    assert checked.code == 1
    assert "unknown-chip: the chip is not in the registry" in " ".join(checked.out.split())


# --- calibrate


def test_calibration_sharpens_predictions_of_this_machine(engine: FakeEngine, model: Path) -> None:
    before = json.loads(good("predict", model, "-o", "json", "-p", "16", "-n", "4", "-d", "0"))
    result = run("calibrate", "--budget", "60s", "-t", "2")
    assert result.code == 0
    assert result.out.startswith("Calibrated: Test Chip with llama.cpp (CPU)")
    assert "Measured here: 60.0 GB/s read (spread 2 %)" in result.out
    assert "Its kernels on CPU: Q8_0 50 GB/s and 400 GFLOP/s (spread up to 3 %)" in " ".join(
        result.out.split()
    )
    assert "15 launches of 5 synthetic models" in result.err
    after = json.loads(good("predict", model, "-o", "json", "-p", "16", "-n", "4", "-d", "0"))
    assert before["provenance"]["calibrated"] is False
    assert after["provenance"]["calibrated"] is True
    for was, now in zip(before["predictions"], after["predictions"], strict=True):
        assert now["tok_per_s"] / was["tok_per_s"] == pytest.approx(1.6, rel=0.08)
        assert now["high"] / now["low"] < was["high"] / was["low"]
    shown = " ".join(good("predict", model).split())
    assert "calibrated on this machine" in shown
    elsewhere = good("predict", model, "--host", "EPYC 9135", "-o", "json")
    assert json.loads(elsewhere)["provenance"]["calibrated"] is False
    _choosing_is_calibrated_too(model, after)
    refit = run("calibrate", "--refit")
    assert refit.code == 0
    assert "From the runs of" in refit.out
    doctor = json.loads(run("doctor", "-o", "json").out)["checks"]
    assert any(c["check"] == "calibration" and "Test Chip" in c["found"] for c in doctor)


def _choosing_is_calibrated_too(model: Path, after: Mapping[str, Any]) -> None:
    chosen = json.loads(run("select", model, "-p", "16", "-o", "json").out)
    assert chosen["provenance"]["calibrated"] is True
    assert "Calibrated: 2" in run("select", model).out
    (row,) = chosen["candidates"]
    assert row["prefill_tok_per_s"] == pytest.approx(after["predictions"][0]["tok_per_s"])
    assert (row["prefill_low"], row["evidence"]) == (
        pytest.approx(after["predictions"][0]["low"]),
        "same host",
    )
    elsewhere = json.loads(run("select", model, "--host", "EPYC 9135", "-o", "json").out)
    assert elsewhere["provenance"]["calibrated"] is False
    pytest.importorskip("fastapi", reason="the web page needs fastapi and uvicorn")
    from web_tools import site

    with site() as server:
        body = {"model": "llama-3.1-8b@Q4_K_M"}
        shown = server.post("predict", body).json()
        compared = server.post("compare", {"pairs": [body]}).json()["results"][0]
        best = server.post("recommend", {"model": "llama-3.1-8b"}).json()
        other = server.post("predict", {**body, "bytes_per_s": 9e11}).json()
    assert shown["provenance"]["calibrated"] is True
    assert compared["depth"]["decode"]["tok_per_s"][0] == pytest.approx(
        shown["predictions"][1]["tok_per_s"]
    )
    assert best["calibrated"] is True
    assert other["provenance"]["calibrated"] is False


def test_a_plan_can_be_seen_first(engine: FakeEngine) -> None:
    out = good("calibrate", "--plan", "--budget", "60s")
    assert "15 launches of 5 synthetic models" in out
    assert engine.fake.jobs == []


def test_a_busy_machine_is_not_calibrated(engine: FakeEngine) -> None:
    engine.fake.disturbed = ("other load",)
    result = run("calibrate", "--budget", "60s")
    assert result.code == 1
    assert "Not calibrated: Test Chip was too busy" in result.out
    engine.fake.disturbed = ()
    assert run("calibrate", "--budget", "60s").code == 0


def test_an_interrupted_calibration_goes_on(engine: FakeEngine) -> None:
    engine.fake.crashes = frozenset()
    real = engine.fake.speed

    def stop(header: Header, test: Task) -> float:
        if len(engine.fake.jobs) == 4:
            raise KeyboardInterrupt
        return real(header, test)

    engine.fake.speed = stop
    assert run("calibrate", "--budget", "60s").code == 130
    engine.fake.speed = real
    engine.fake.jobs.clear()
    result = run("calibrate", "--budget", "60s")
    assert "going on with 3 of 15 launches done" in result.err
    assert len(engine.fake.jobs) == 12


def test_results_of_others_can_stand_in(engine: FakeEngine, tmp_path: Path) -> None:
    rows = []
    for name in ("qwen3-0.6b", "smollm2-135m", "llama-3.2-1b"):
        spec_header = header(name, "Q8_0")
        for phase, n_prompt, n_gen in (("prefill", 512, 0), ("decode", 0, 128)):
            test = Task(phase, n_prompt or n_gen)  # type: ignore[arg-type]
            rows.append(
                {
                    "model_filename": f"{name}-Q8_0.gguf",
                    "model_type": model_spec(spec_header).architecture + " x Q8_0",
                    "model_n_params": model_spec(spec_header).n_params,
                    "backends": "CPU",
                    "n_prompt": n_prompt,
                    "n_gen": n_gen,
                    "avg_ts": faster(1.4)(spec_header, test),
                }
            )
    file = tmp_path / "bench.json"
    file.write_text(json.dumps(rows))
    out = good("calibrate", "--with", file)
    assert out.startswith("Calibrated: Test Chip")
    answer = json.loads(good("predict", "qwen3-1.7b@Q8_0", "--offline", "-o", "json"))
    assert answer["provenance"]["calibrated"] is True
    two = tmp_path / "two.json"
    two.write_text(json.dumps(rows[:2]))
    assert "figures of 1 model; expected at least 2" in refused("calibrate", "--with", two)
    gpu = tmp_path / "gpu.json"
    gpu.write_text(
        json.dumps([{**r, "gpu_info": "NVIDIA GeForce RTX 4090", "backends": "CUDA"} for r in rows])
    )
    assert "no figure of Test Chip with CUDA to use" in refused("calibrate", "--with", gpu)


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (("--refit", "--with", "a.json"), "--refit and --with: expected one of them"),
        (("--plan", "--refit"), "--refit and --plan: expected one of them"),
        (("--host", "RTX 4090"), "--host 'RTX 4090': says what the figures of --with are of"),
    ],
)
def test_flags_that_would_be_passed_over(
    engine: FakeEngine, args: tuple[str, ...], line: str
) -> None:
    assert line in refused("calibrate", *args)


def test_nothing_to_refit(engine: FakeEngine) -> None:
    assert "no calibration to refit" in refused("calibrate", "--refit")


def test_an_engine_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    import tokcast.cli.measuring as measuring

    monkeypatch.setattr(measuring, "_available", lambda _: None)
    with pytest.raises(ValueError, match="no runtime to measure with; run: pip install llama-cpp"):
        measuring.engine_of(None)
    with pytest.raises(ValueError, match="--runtime llama-bench: not found here; brew install"):
        measuring.engine_of("llama-bench")
    with pytest.raises(ValueError, match="does not read GGUF models"):
        measuring.engine_of("mlx")
    with pytest.raises(ValueError, match="--runtime 'ollama': expected one of"):
        measuring.engine_of("ollama")
    monkeypatch.setattr(measuring, "_available", lambda _: SETUP)
    monkeypatch.setattr(measuring, "detected", lambda _: HOST)
    assert measuring.engine_of(None) == Engine("llama.cpp", SETUP, HOST)
