"""Models by address, as far as a server may read them."""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import replace
from io import BytesIO
from pathlib import Path

from tokcast.cli.web.config import Config
from tokcast.cli.web.lru import Lru
from tokcast.cli.web.network import Route, origin_of
from tokcast.cli.web.problems import Refused
from tokcast.predictor.errors import InputError
from tokcast.predictor.gguf import read_gguf
from tokcast.predictor.gguf_split import split_names
from tokcast.predictor.header import Header
from tokcast.predictor.model import model_spec
from tokcast.predictor.sources.address import (
    Address,
    CatalogueModel,
    HubModel,
    LocalModel,
    UrlModel,
    parse,
)
from tokcast.predictor.sources.open import read
from tokcast.predictor.sources.settings import from_environ
from tokcast.predictor.spec import ModelSpec
from tokcast.predictor.text import printable

UPLOAD = "upload:"
LOCAL = "file:"
MOST_KEPT = 256
_WEB = ("http://", "https://", "hf:", "hf.co/", "huggingface.co/")


class Library:
    """Models that were read, and the rules for reading more."""

    def __init__(
        self,
        config: Config,
        environ: Mapping[str, str] = os.environ,
        route: Route | None = None,
    ) -> None:
        self._config = config
        route = route or Route(config.mirrors)
        settings = from_environ(environ if config.uses_token else _without_token(environ), None)
        self._settings = replace(settings, transport=route.transport, patience_seconds=30.0)
        self._folders = tuple(folder.resolve() for folder in config.folders)
        self._kept: Lru[tuple[ModelSpec, Header]] = Lru(MOST_KEPT)

    def known(self, address: str) -> ModelSpec | None:
        """Return a model that needs no fetching: read before, dropped, or of the catalogue."""
        found = self._kept.get(address)
        if found is None and is_word(address):
            found = self._read(address)
        return found[0] if found else None

    def open(self, address: str) -> ModelSpec:
        """Return a model, which can take its time.

        Raises InputError for what is no model and Refused for a place not to read.
        """
        return self.both(address)[0]

    def both(self, address: str) -> tuple[ModelSpec, Header]:
        """Return a model and its header."""
        return self._kept.get(address) or self._read(address)

    def add(self, data: bytes, name: str) -> tuple[str, ModelSpec]:
        """Keep a dropped header; return its address here and the model."""
        header = read_gguf(BytesIO(data).read, printable(name, 200) or "dropped file")
        spec = model_spec(header)
        address = UPLOAD + hashlib.sha256(data).hexdigest()
        # Only figures are kept: a hostile file has no way to fill the memory.
        self._kept.put(address, (spec, replace(header, metadata={})))
        return address, spec

    def _read(self, address: str) -> tuple[ModelSpec, Header]:
        if address.startswith(UPLOAD):
            raise Refused(404, "this file was dropped in another session: drop it again")
        header = read(self._target(address), self._settings)
        spec = model_spec(header)
        return self._kept.put(address, (spec, replace(header, metadata={})))

    def _target(self, address: str) -> Address:
        """Return what an address names, without a look at the disk but where that is allowed."""
        if is_word(address):
            name, at, file_type = address.strip().partition("@")
            return CatalogueModel(name, file_type if at else None)
        if self._config.public:
            raise Refused(403, "this server knows the catalogue and dropped files only")
        if address.startswith(LOCAL):
            return LocalModel(self._inside(address.removeprefix(LOCAL)))
        text = address if address.lower().startswith(_WEB) else f"hf:{address}"
        target = parse(text, self._settings)
        if isinstance(target, UrlModel):
            self._check_mirror(target.url)
        elif not isinstance(target, HubModel):
            raise Refused(403, "expected name@FILETYPE, owner/repo[:quant] or file:NAME here")
        return target

    def _inside(self, name: str) -> Path:
        """Return a GGUF file below one of the operator's folders; Refused for another path.

        What a link leads to counts, for every part of a split model.
        """
        for folder in self._folders:
            try:
                path = (folder / name).resolve()
            except (OSError, ValueError):
                continue
            parts = [path.with_name(n).resolve() for n in split_names(path.name) or ()]
            is_inside = all(p.is_relative_to(folder) for p in (path, *parts))
            if is_inside and path.suffix == ".gguf" and path.is_file():
                return path
        raise Refused(403, f"{printable(name, 200)}: no GGUF file in a folder given with --folder")

    def _check_mirror(self, url: str) -> None:
        if origin_of(url) not in map(origin_of, self._config.mirrors):
            raise Refused(403, "only the Hub and the mirrors given with --mirror are fetched from")


def _without_token(environ: Mapping[str, str]) -> dict[str, str]:
    kept = {k: v for k, v in environ.items() if k not in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")}
    return {**kept, "HF_TOKEN_PATH": os.devnull}


def is_word(address: str) -> bool:
    """Return whether an address names a model of the catalogue."""
    return not any(mark in address for mark in ":/\\") and address.isprintable()


def listed(folders: tuple[Path, ...], most: int = 200) -> list[str]:
    """Return the addresses of GGUF files below the operator's folders."""
    found = []
    for folder in folders:
        for path in sorted(folder.resolve().rglob("*.gguf")):
            found.append(LOCAL + path.relative_to(folder.resolve()).as_posix())
            if len(found) >= most:
                return found
    return found


def checked(spec: ModelSpec, address: str) -> ModelSpec:
    """Return a model that can run; raises InputError for one without weights."""
    if not spec.n_params:
        raise InputError(f"{printable(address, 200)}: holds no weights; nothing to predict")
    return spec
