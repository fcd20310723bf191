"""Where other programs keep models of the Hub on this machine."""

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tokcast.predictor.sources.settings import Settings

MAX_FILES = 10_000
_MAX_DEPTH = 3


@dataclass(frozen=True, slots=True)
class Place:
    """Files of one repository: by their names there, and the folder that holds them if one does."""

    files: Mapping[str, Path]
    folder: Path | None = None


def find(repo: str, revision: str | None, settings: Settings) -> Iterator[Place]:
    """Yield where files of a repository lie: Hub cache, llama.cpp, LM Studio, Ollama.

    Only the Hub's cache knows of revisions.
    """
    for root in hub_roots(settings):
        snapshot = _snapshot(root / f"models--{repo.replace('/', '--')}", revision)
        if snapshot is not None:
            yield Place(files_in(snapshot), snapshot)
    if revision is not None:
        return
    for root in llama_roots(settings):
        yield Place(dict(_flat_files(root, repo)))
    for root in lm_studio_roots(settings):
        yield Place(files_in(root / repo), root / repo)
    for root in ollama_roots(settings):
        yield Place(dict(_ollama_files(root, repo)))


def hub_roots(settings: Settings) -> tuple[Path, ...]:
    """Return the Hub client's cache, and llama.cpp's which has its layout since 2026."""
    main = (
        settings.folder("HF_HUB_CACHE")
        or settings.folder("HUGGINGFACE_HUB_CACHE")
        or settings.hub_home / "hub"
    )
    own = settings.folder("LLAMA_CACHE")
    return (main,) if own is None else (own, main)


def llama_roots(settings: Settings) -> tuple[Path, ...]:
    """Return the folders of llama.cpp's earlier cache, one flat folder."""
    own = settings.folder("LLAMA_CACHE")
    if own is not None:
        return (own,)
    if sys.platform == "darwin":
        return (settings.home / "Library" / "Caches" / "llama.cpp",)
    if sys.platform == "win32":
        return ((settings.folder("LOCALAPPDATA") or settings.home) / "llama.cpp",)
    return (settings.caches / "llama.cpp",)


def lm_studio_roots(settings: Settings) -> tuple[Path, ...]:
    """Return LM Studio's model folders, today's and the earlier one."""
    return (
        settings.home / ".lmstudio" / "models",
        settings.home / ".cache" / "lm-studio" / "models",
    )


def ollama_roots(settings: Settings) -> tuple[Path, ...]:
    """Return Ollama's model folders: the user's, and those of a system service."""
    own = settings.folder("OLLAMA_MODELS") or settings.home / ".ollama" / "models"
    return (own, Path("/usr/share/ollama/.ollama/models"), Path("/var/lib/ollama/.ollama/models"))


def model_folders(environ: Mapping[str, str]) -> tuple[tuple[str, Path], ...]:
    """Return (program, folder) for every folder that is searched for models, there or not."""
    settings = Settings(environ)
    named = (
        ("Hub cache", hub_roots(settings)),
        ("llama.cpp cache", llama_roots(settings)),
        ("LM Studio models", lm_studio_roots(settings)),
        ("Ollama models", ollama_roots(settings)),
    )
    return tuple((name, folder) for name, folders in named for folder in folders)


def files_in(folder: Path) -> dict[str, Path]:
    """Return {path below `folder` with slashes: file}, sorted.

    Links to nothing, and what may not be looked at, are left out.
    """
    found: dict[str, Path] = {}
    for path, folders, names in os.walk(folder):
        depth = len(Path(path).relative_to(folder).parts)
        folders[:] = sorted(folders) if depth < _MAX_DEPTH else []
        for name in names:
            file = Path(path, name)
            # `Path.is_file` raises where a folder on the way may not be looked into.
            if os.path.isfile(file):  # noqa: PTH113
                found[file.relative_to(folder).as_posix()] = file
        if len(found) > MAX_FILES:
            break
    return dict(sorted(found.items()))


def _snapshot(repository: Path, revision: str | None) -> Path | None:
    """Return the folder of a revision in a Hub cache, `main` being the default."""
    name = revision or "main"
    if ".." in name:
        return None
    commit = _line(repository / "refs" / name) or name
    folder = repository / "snapshots" / commit
    return folder if re.fullmatch(r"\w[\w-]*", commit) and folder.is_dir() else None


def _line(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.readline(100).strip()
    except OSError:
        return ""


def _flat_files(root: Path, repo: str) -> Iterator[tuple[str, Path]]:
    prefix = f"{repo.replace('/', '_')}_"
    for path in sorted(root.glob("*.gguf")):
        if path.name.startswith(prefix) and path.is_file():
            yield path.name.removeprefix(prefix), path


def _ollama_files(root: Path, repo: str) -> Iterator[tuple[str, Path]]:
    """Yield what `ollama pull hf.co/owner/repo:quant` left, under a made-up name."""
    folder = root / "manifests" / "hf.co" / repo
    if not folder.is_dir():
        return
    for manifest in sorted(folder.iterdir()):
        blob = ollama_blob(root, manifest)
        if blob is not None:
            yield f"{folder.name}-{manifest.name}.gguf", blob


def ollama_blob(root: Path, manifest: Path) -> Path | None:
    """Return the weights that a manifest on disk names; None where either is not there."""
    try:
        with manifest.open("rb") as file:
            digest = model_digest(file.read(1 << 20))
    except OSError:
        return None
    if digest is None:
        return None
    for name in (digest.replace(":", "-"), digest):
        if (root / "blobs" / name).is_file():
            return root / "blobs" / name
    return None


def model_digest(manifest: bytes) -> str | None:
    """Return the digest of the GGUF layer in an Ollama manifest; None where it has none."""
    try:
        layers = json.loads(manifest)["layers"]
        for layer in layers:
            digest = layer["digest"]
            if layer["mediaType"] == "application/vnd.ollama.image.model":
                return digest if re.fullmatch(r"sha256:[0-9a-f]{64}", digest) else None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return None
