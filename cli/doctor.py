"""`tokcast doctor`: what this installation can and can't do."""

import importlib.util
import os
import platform
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from tokcast.cli.render import Report, Table, render
from tokcast.fits.released import released
from tokcast.hosts.registry import chips
from tokcast.predictor.catalogue import names
from tokcast.predictor.errors import InputError

_OPTIONAL = {"pynvml": "read NVIDIA clocks and power"}
_TOOLS = ("llama-server", "nvidia-smi", "rocm-smi", "ollama")
_SETTINGS = ("HF_TOKEN", "HF_ENDPOINT", "HF_HUB_OFFLINE", "HF_HOME", "LLAMA_CACHE", "TOKCAST_CACHE")
_MEASURING = ("LLAMA_BENCH", "LLAMA_CPP_LIB_PATH", "TOKCAST_DATA", "TOKCAST_SCRATCH")


@dataclass(frozen=True, slots=True)
class Check:
    """One finding: `status` is ok, note or problem."""

    what: str
    status: str
    found: str


def _data() -> Iterator[Check]:
    try:
        c = released()
        n = sum(c.n_observations.values())
        yield Check("coefficients", "ok", f"{c.digest}, from {n:,} configurations")
    except InputError as error:
        yield Check("coefficients", "problem", str(error))
    yield Check("chips", "ok", f"{len(chips())} known")
    yield Check("catalogue", "ok", f"{len(names())} models")


def _machine() -> Iterator[Check]:
    from tokcast.hosts.detect import detect

    found = detect()
    for host in found.hosts:
        yield Check("chip", "ok", f"{host.name}, {host.bytes_per_s / 1e9:.0f} GB/s")
    if not found.hosts:
        yield Check("chip", "problem", "none recognised; give --host or --bandwidth")
    for note in found.notes:
        yield Check("detection", "note", note)


def _environment(environ: Mapping[str, str]) -> Iterator[Check]:
    for module, use in _OPTIONAL.items():
        there = importlib.util.find_spec(module) is not None
        yield Check(module, "ok" if there else "note", use if there else f"not installed: {use}")
    for tool in _TOOLS:
        path = shutil.which(tool)
        yield Check(tool, "ok" if path else "note", path or "not on PATH")
    for name in (*_SETTINGS, *_MEASURING):
        if name in environ:
            shown = "set" if "TOKEN" in name else environ[name]
            yield Check(name, "ok", shown)


def _measuring() -> Iterator[Check]:
    from tokcast.cli.doctor_measuring import findings

    return (Check(*finding) for finding in findings())


def _places(environ: Mapping[str, str]) -> Iterator[Check]:
    from tokcast.predictor.sources import model_folders

    for name, folder in model_folders(environ):
        there = Path(folder).is_dir()
        yield Check(name, "ok" if there else "note", f"{folder}{'' if there else ', not there'}")


def run(output: str) -> int:
    """Print the findings; exit code 1 when one of them is a problem."""
    checks = [*_data(), *_machine(), *_environment(os.environ)]
    checks += [*_measuring(), *_places(os.environ)]
    problems = [c for c in checks if c.status == "problem"]
    verdict = (
        f"tokcast {version('tokcast')} on Python {platform.python_version()}, "
        f"{platform.system()} {platform.machine()}: "
        + ("ready to predict" if not problems else f"problems: {len(problems)}")
    )
    table = Table(("check", "status", "found"), tuple((c.what, c.status, c.found) for c in checks))
    records = [{"check": c.what, "status": c.status, "found": c.found} for c in checks]
    print(render(Report((verdict,), (table,), (), {"checks": records}, records), output))
    return 1 if problems else 0
