"""What a launch is asked to do, and what a runtime must offer for it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from tokcast.measurements.protocol import Rule
from tokcast.measurements.record import Setup, Task


@dataclass(frozen=True, slots=True)
class Settings:
    """How the runtime is to run the model; None leaves it to the runtime."""

    n_threads: int
    n_batch: int = 2048
    n_ubatch: int = 512
    flash_attention: str = "auto"
    type_k: str = "F16"
    type_v: str = "F16"
    n_gpu_layers: int | None = None
    load_mode: str = "mmap"
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Job:
    """One launch: a runtime, a model on disk and the tests to repeat, in order."""

    runtime: str
    path: str
    tests: tuple[Task, ...]
    settings: Settings
    rule: Rule


class Runner(Protocol):
    """A loaded model that can be put to a depth and made to work."""

    @property
    def setup(self) -> Setup:
        """Return what runs and how."""

    def prepare(self, test: Task) -> None:
        """Bring the cache to the test's depth; not timed."""

    def step(self, test: Task) -> None:
        """Do the test's work once, and wait for it."""


def to_json(job: Job) -> dict[str, Any]:
    """Return a job as JSON values."""
    return asdict(job)


def from_json(data: Mapping[str, Any]) -> Job:
    """Return a job from its JSON."""
    return Job(
        data["runtime"],
        data["path"],
        tuple(Task(**t) for t in data["tests"]),
        Settings(**data["settings"]),
        Rule(**data["rule"]),
    )


def longest(job: Job) -> int:
    """Return the positions the deepest test ends at."""
    return max((t.n_depth + t.n for t in job.tests), default=0)
