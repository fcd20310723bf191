"""One entry for every way to name a model."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from tokcast.predictor.errors import InputError
from tokcast.predictor.header import Header
from tokcast.predictor.sources.address import (
    Address,
    CatalogueModel,
    HubModel,
    LocalModel,
    OllamaModel,
    UrlModel,
    parse,
)
from tokcast.predictor.sources.settings import Settings, from_environ
from tokcast.predictor.text import printable

if TYPE_CHECKING:
    from tokcast.predictor.sources.web import Web

DEFAULT_FILE_TYPE = "Q4_K_M"
M = TypeVar("M")


def open_model(
    address: str, *, offline: bool | None = None, environ: Mapping[str, str] = os.environ
) -> Header:
    """Return the header of the model that `address` names, without its weights.

    A path (file, part of a split model, MLX folder), an `https://` address, `owner/repo[:quant]`,
    `hf:owner/repo[@revision]/file.gguf`, `ollama:name[:tag]`, or `name@FILETYPE` of the catalogue.
    `offline` None leaves it to `HF_HUB_OFFLINE`. Raises InputError.
    """
    settings = from_environ(environ, offline)
    return read(parse(address, settings), settings)


def read(target: Address, settings: Settings) -> Header:
    """Return the header of a model named by its parts."""
    match target:
        case LocalModel(path):
            from tokcast.predictor.sources.local import read_path

            return read_path(path)
        case CatalogueModel():
            return _of_catalogue(target)
        case HubModel():
            from tokcast.predictor.sources.hub import read_hub

            return _over_web(read_hub, target, settings)
        case OllamaModel():
            from tokcast.predictor.sources.ollama import read_ollama

            return _over_web(read_ollama, target, settings)
        case UrlModel():
            return _over_web(_read_url, target, settings)


def _read_url(model: UrlModel, web: Web) -> Header:
    from tokcast.predictor.sources.parts import read_url

    return read_url(model.url, web)


def _over_web(reader: Callable[[M, Web], Header], model: M, settings: Settings) -> Header:
    from tokcast.predictor.sources.web import Web

    web = Web(settings)
    try:
        header = reader(model, web)
    finally:
        web.close()
    return _warned(header, *web.warnings)


def _of_catalogue(model: CatalogueModel) -> Header:
    from tokcast.predictor import catalogue

    shape = catalogue.namesake(model.name)
    alias = (f"{model.name} has the shape of {shape}, by whose name it goes",) if shape else ()
    if model.file_type is not None:
        return _warned(catalogue.header(model.name, model.file_type), *alias)
    try:
        file_type = catalogue.own_file_type(model.name) or DEFAULT_FILE_TYPE
        header = catalogue.header(model.name, file_type)
    except InputError as error:
        raise InputError(
            f"{printable(model.name, 200)!r}: no such file or folder here and {error}; "
            "a model of the Hub is owner/repo"
        ) from None
    warning = f"no file type given, so this is {header.source}; @FILETYPE names another"
    return _warned(header, warning, *alias)


def _warned(header: Header, *warnings: str) -> Header:
    return replace(header, warnings=(*header.warnings, *warnings))
