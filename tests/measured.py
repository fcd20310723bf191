"""Runs for tests: made by hand, or by a fake runtime of a known speed."""

from collections.abc import Callable

from tokcast.measurements.calibration_run import Place, facts, record
from tokcast.measurements.launch import Launch
from tokcast.measurements.record import ModelFacts, RunRecord, Sample, Series, Setup, Task
from tokcast.measurements.runners.job import Job
from tokcast.measurements.synthetic_shape import Shape, shaped
from tokcast.predictor.errors import InputError
from tokcast.predictor.header import Header
from tokcast.predictor.host import Host
from tokcast.predictor.sources import open_model

# Generous peaks, so that no prediction is cut off by the roof.
CHIP = Host(
    name="Test Chip",
    vendor="AMD",
    kind="cpu",
    architecture="Zen 4",
    bytes_per_s=80e9,
    memory_bytes=32 * 2**30,
    fp32_flops_per_s=1e12,
    int8_ops_per_s=1e14,
    n_cores=8,
    memory_type="DDR5",
)
TINY = Shape("Q4_0", 2, 64, 128, 2, 1, n_vocab=128)
SETUP = Setup("llama.cpp", "fake 1.0", "none", "CPU", n_threads=2)
PLACE = Place("Test Chip", 16e9)
Speed = Callable[[Header, Task], float]


def series(test: Task, tok_per_s: float, n: int = 3, disturbed: tuple[str, ...] = ()) -> Series:
    return Series(test, tuple(Sample(test.n / tok_per_s, 0.0, disturbed) for _ in range(n)))


def model(shape: Shape = TINY) -> ModelFacts:
    return facts(shaped(shape), "tiny.gguf", is_synthetic=True)


def run(
    rates: dict[Task, float],
    shape: Shape = TINY,
    session: str = "",
    item: str = "",
    disturbed: tuple[str, ...] = (),
) -> RunRecord:
    found = Launch(setup=SETUP, load_seconds=0.1)
    found.series = [series(test, rate, disturbed=disturbed) for test, rate in rates.items()]
    return record(found, model(shape), PLACE, session=session, item=item)


class FakeRuntime:
    """Launches whose speed is a function of model and test; some crash."""

    def __init__(self, speed: Speed, crashes: frozenset[int] = frozenset()) -> None:
        self.speed, self.crashes = speed, crashes
        self.jobs: list[Job] = []
        self.disturbed: tuple[str, ...] = ()

    def __call__(self, job: Job) -> Launch:
        self.jobs.append(job)
        if len(self.jobs) in self.crashes:
            raise InputError(f"{job.path}: the runtime crashed with SIGSEGV")
        header = open_model(job.path)
        found = Launch(setup=SETUP, load_seconds=0.1)
        found.series = [
            series(t, self.speed(header, t), disturbed=self.disturbed) for t in job.tests
        ]
        return found
