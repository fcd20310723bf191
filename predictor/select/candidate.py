"""A model in one quantization, as it could be run."""

from dataclasses import dataclass
from typing import Literal

from tokcast.predictor.spec import ModelSpec

Origin = Literal["catalogue", "hub", "ollama", "file", "web"]


@dataclass(frozen=True, slots=True)
class Candidate:
    """What is known of a file before a host comes in.

    `address` is what `tokcast predict` takes; `quant` the label people use, such as UD-Q4_K_XL;
    `model` groups the quantizations of one model. `model_id` is its catalogue name, "" where none
    is known. `imatrix` is None where it is not known whether one was used; `licence` is "" where
    none is stated. `repo` and `path` say where the weights are.
    """

    address: str
    spec: ModelSpec
    quant: str
    model: str
    origin: Origin
    model_id: str = ""
    imatrix: bool | None = None
    licence: str = ""
    repo: str = ""
    path: str = ""

    @property
    def bits_per_weight(self) -> float:
        """Return stored bits a parameter."""
        return 8 * self.spec.n_bytes / self.spec.n_params


@dataclass(frozen=True, slots=True)
class Unread:
    """Something that was looked at and is no candidate, and why."""

    address: str
    why: str


@dataclass(frozen=True, slots=True)
class Found:
    """The candidates, what could not be read, and what was looked at, in words."""

    candidates: tuple[Candidate, ...]
    unread: tuple[Unread, ...]
    looked_at: tuple[str, ...]
    warnings: tuple[str, ...] = ()
