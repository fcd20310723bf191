"""A measured run: every raw sample, warm-ups apart, with the machine, the runtime and the model.

Records know nothing of how they were obtained or how they are printed. They are kept as JSON
with a schema version; `from_json` reads every version there has been.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from statistics import mean
from typing import Any

from tokcast.predictor.errors import InputError
from tokcast.predictor.ledger import Phase

# 1: first version.
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Task:
    """What is repeated: `n` tokens read (prefill) or generated (decode) after `n_depth` cached."""

    phase: Phase
    n: int
    n_depth: int = 0

    @property
    def label(self) -> str:
        """Return llama-bench's name of the test."""
        name = f"{'pp' if self.phase == 'prefill' else 'tg'}{self.n}"
        return f"{name} @ d{self.n_depth}" if self.n_depth else name


@dataclass(frozen=True, slots=True)
class Sample:
    """One repetition: its wall time, and what disturbed it.

    `pressure` is the share of that time in which some task waited for a processor, None where
    the system doesn't tell; `joules` the energy counted over it.
    """

    seconds: float
    pressure: float | None = None
    disturbed: tuple[str, ...] = ()
    joules: float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """The repetitions of one test in one launch; warm-ups are kept apart.

    `own_seconds` is what the measuring itself took between the timed parts.
    """

    test: Task
    samples: tuple[Sample, ...]
    warmups: tuple[float, ...] = ()
    own_seconds: float = 0.0

    def __post_init__(self) -> None:
        if not self.samples or any(not s.seconds > 0 for s in self.samples):
            raise InputError(f"{self.test.label}: expected samples of more than 0 seconds")

    @property
    def clean(self) -> tuple[Sample, ...]:
        """Return the undisturbed samples."""
        return tuple(s for s in self.samples if not s.disturbed)

    @property
    def used(self) -> tuple[Sample, ...]:
        """Return the samples a figure rests on: the clean ones, else the fastest third.

        Other load only ever slows, so that the fastest are the least wrong.
        """
        if self.clean:
            return self.clean
        ranked = sorted(self.samples, key=lambda s: s.seconds)
        return tuple(ranked[: (len(ranked) + 2) // 3])

    @property
    def rates(self) -> tuple[float, ...]:
        """Return tokens/s of the samples used."""
        return tuple(self.test.n / s.seconds for s in self.used)

    @property
    def tok_per_s(self) -> float:
        """Return the mean of the rates, as llama-bench does."""
        return mean(self.rates)

    @property
    def joules_per_token(self) -> float | None:
        """Return energy over tokens, None where a used sample has no reading."""
        joules = [s.joules for s in self.used if s.joules is not None]
        if len(joules) != len(self.used) or not sum(joules) > 0:
            return None
        return sum(joules) / (self.test.n * len(joules))


@dataclass(frozen=True, slots=True)
class Setup:
    """The runtime, how it was built and what it was told."""

    runtime: str
    version: str = ""
    build: str = ""
    backend: str = "CPU"
    device: str = ""
    n_threads: int | None = None
    n_batch: int = 2048
    n_ubatch: int = 512
    flash_attention: str = "auto"
    type_k: str = "F16"
    type_v: str = "F16"
    n_gpu_layers: int | None = None
    load_mode: str = "mmap"


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The file that ran. `is_synthetic`: its weights were random; `clone_of` says whose shapes.

    `header` is the packed header (`headers.pack`), which outlives the file.
    """

    name: str
    architecture: str
    file_type: str
    n_bytes: int
    n_params: int
    path: str = ""
    is_synthetic: bool = False
    clone_of: str = ""
    model_id: str = ""
    header: str = ""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One launch of a runtime on one model.

    `created` is an ISO time in UTC; `host` the chip's name, `n_cores` its cores used by the fit;
    `idle_watts` the draw before the model was loaded; `session` groups the launches of a
    calibration and `item` says which part of its plan this was.
    """

    id: str
    created: str
    host: str
    memory_bytes: float | None
    model: ModelFacts
    setup: Setup
    series: tuple[Series, ...]
    load_seconds: float | None = None
    peak_bytes: int | None = None
    energy_source: str = ""
    idle_watts: float | None = None
    session: str = ""
    item: str = ""
    notes: tuple[str, ...] = ()
    machine: Mapping[str, str] = field(default_factory=dict)


def to_json(run: RunRecord) -> dict[str, Any]:
    """Return a run as JSON values."""
    return {"schema": SCHEMA, **asdict(run)}


def from_json_series(data: Mapping[str, Any]) -> Series:
    """Return a series from its JSON."""
    samples = tuple(
        Sample(s["seconds"], s.get("pressure"), tuple(s.get("disturbed", ())), s.get("joules"))
        for s in data["samples"]
    )
    test = Task(**data["test"])
    return Series(test, samples, tuple(data.get("warmups", ())), data.get("own_seconds", 0.0))


def from_json(data: Mapping[str, Any]) -> RunRecord:
    """Return a run from its JSON; raises InputError where it is none, or from a newer tokcast."""
    if data.get("schema") != SCHEMA:
        raise InputError(
            f"run of schema {data.get('schema')!r}; expected {SCHEMA}: written by a newer tokcast?"
        )
    values = {k: v for k, v in data.items() if k != "schema"}
    try:
        values["model"] = ModelFacts(**values["model"])
        values["setup"] = Setup(**values["setup"])
        values["series"] = tuple(from_json_series(s) for s in values["series"])
        values["notes"] = tuple(values.get("notes", ()))
        return RunRecord(**values)
    except (KeyError, TypeError) as error:
        raise InputError(f"not a measured run of tokcast: {error}") from error


def is_whole(run: RunRecord) -> bool:
    """Return whether every test of a launch has an undisturbed sample."""
    return all(series.clean for series in run.series)
