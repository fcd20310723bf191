"""What is measured when a model is named: its file, or one like it with random weights."""

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tokcast.measurements.calibration_run import facts, scratch
from tokcast.measurements.record import ModelFacts
from tokcast.measurements.synthetic import need_bytes, write
from tokcast.measurements.synthetic_shape import clone
from tokcast.predictor.errors import InputError
from tokcast.predictor.header import Header
from tokcast.predictor.memory import memory
from tokcast.predictor.model import model_spec
from tokcast.predictor.sources import open_model


def scratch_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return where model files are made for a while: `TOKCAST_SCRATCH`, else the temp folder."""
    return Path(environ.get("TOKCAST_SCRATCH") or tempfile.gettempdir())


@dataclass(frozen=True, slots=True)
class Target:
    """A model's header, and its file where it is on this machine."""

    header: Header
    path: Path | None

    @property
    def n_bytes(self) -> int:
        """Return what has to be written to disk before it can run."""
        return 0 if self.path else need_bytes(clone(self.header))


def find(address: str, offline: bool | None = None) -> Target:
    """Return the model an address names; raises InputError as `open_model` does."""
    header = open_model(address, offline=offline)
    source = Path(header.source)
    is_here = "://" not in header.source and source.exists()
    return Target(header, source if is_here else None)


def check_memory(header: Header, n_context: int, free_bytes: float) -> None:
    """Raise InputError where the model and its context need more memory than is free."""
    need = memory(model_spec(header), n_context).unified_bytes
    if need > free_bytes:
        raise InputError(
            f"{header.source}: needs {need / 1024**3:.2f} GiB at a context of {n_context}, "
            f"{free_bytes / 1024**3:.2f} GiB are free; take a smaller model or a shorter depth"
        )


@contextmanager
def on_disk(target: Target) -> Iterator[tuple[Path, ModelFacts]]:
    """Yield the model's file and what to record of it; a clone is removed afterwards."""
    if target.path is not None:
        yield target.path, facts(target.header, str(target.path))
        return
    made = clone(target.header)
    with scratch(scratch_folder()) as folder:
        path = folder / "clone.gguf"
        write(path, made)
        recorded = facts(made, path.name, clone_of=target.header.source, is_synthetic=True)
        yield path, recorded
