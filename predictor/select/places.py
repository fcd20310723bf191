"""Models on this machine: in a folder, or where other programs keep them."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tokcast.predictor.gguf import read_gguf_file
from tokcast.predictor.select.jobs import Job
from tokcast.predictor.sources.choose import is_checkpoint, label_of, models
from tokcast.predictor.sources.local import read_path
from tokcast.predictor.sources.places import (
    files_in,
    hub_roots,
    llama_roots,
    lm_studio_roots,
    ollama_blob,
    ollama_roots,
)
from tokcast.predictor.sources.settings import Settings

MAX_FOLDERS = 2000


def in_folder(folder: Path) -> list[Job]:
    """Return a job for each GGUF model below a folder, and each MLX model's folder."""
    files = files_in(folder)
    jobs = [
        Job(
            str(files[name]),
            _model(files[name], name),
            label_of(name),
            "file",
            partial(read_gguf_file, files[name]),
            path=str(files[name]),
        )
        for name in models(files)
    ]
    for inner in _checkpoints(folder, files):
        path = str(inner)
        jobs.append(Job(path, inner.name, "", "file", partial(read_path, inner), path=path))
    return jobs


def _model(path: Path, name: str) -> str:
    label = label_of(name)
    return path.name.removesuffix(".gguf").replace(label, "").strip("-._") if label else path.stem


def _checkpoints(folder: Path, files: dict[str, Path]) -> Iterator[Path]:
    by_folder: dict[str, list[str]] = {}
    for name in files:
        inner, _, file = name.rpartition("/")
        by_folder.setdefault(inner, []).append(file)
    for inner, names in by_folder.items():
        if is_checkpoint(names):
            yield folder / inner


def local_jobs(settings: Settings) -> tuple[list[str], list[Job]]:
    """Return the folders that were looked into, in words, and the jobs found there."""
    jobs: dict[str, Job] = {}
    looked_at: list[str] = []
    for root in (*hub_roots(settings), *llama_roots(settings), *lm_studio_roots(settings)):
        looked_at.append(str(root))
        for inner in _folders(root):
            for job in in_folder(inner):
                jobs.setdefault(job.path, job)
    for root in ollama_roots(settings):
        looked_at.append(str(root))
        for job in _ollama(root):
            jobs.setdefault(job.path, job)
    return looked_at, list(jobs.values())


def _folders(root: Path) -> Iterator[Path]:
    """Yield a root whose files lie flat, or the snapshots of a Hub cache below it."""
    repositories = sorted(root.glob("models--*"))[:MAX_FOLDERS]
    for repository in repositories:
        yield from sorted(repository.glob("snapshots/*"))
    if not repositories and root.is_dir():
        yield root


def _ollama(root: Path) -> Iterator[Job]:
    manifests = sorted((root / "manifests").glob("*/*/*/*"))[:MAX_FOLDERS]
    for manifest in manifests:
        blob = ollama_blob(root, manifest)
        if blob is None:
            continue
        host, owner, name, tag = manifest.parts[-4:]
        named = name if owner == "library" else f"{owner}/{name}"
        if host != "registry.ollama.ai":
            named = f"{host}/{named}"
        yield Job(
            f"ollama:{named}:{tag}",
            f"ollama:{named}",
            label_of(f"-{tag}."),
            "ollama",
            partial(read_gguf_file, blob),
            path=str(blob),
        )
