"""Models of the Hub: from where another program keeps them, else over the network."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from tokcast.predictor.errors import InputError
from tokcast.predictor.header import Header
from tokcast.predictor.sources.address import HubModel
from tokcast.predictor.sources.choose import (
    DEFAULT_QUANT,
    Choice,
    choose,
    is_checkpoint,
    is_complete,
    models,
    quants,
)
from tokcast.predictor.sources.http_errors import HttpError
from tokcast.predictor.sources.listing import file_url, repository
from tokcast.predictor.sources.local import read_path
from tokcast.predictor.sources.mlx_repo import read_repo
from tokcast.predictor.sources.parts import read_url, read_urls
from tokcast.predictor.sources.places import Place, find
from tokcast.predictor.sources.web import Web
from tokcast.predictor.text import listing, printable


def read_hub(model: HubModel, web: Web) -> Header:
    """Return the header of a model on the Hub.

    Raises InputError where the repository has no such model, and for all that goes wrong on the
    way; without a network, any quant on this machine will do where none was asked for.
    """
    if model.file is not None and not model.file.endswith(".gguf"):
        raise InputError(f"{model}: expected a .gguf file; for MLX give hf:{model.repo}")
    places = tuple(find(model.repo, model.revision, web.settings))
    for place in places:
        path = _in_place(place, model, is_strict=not web.settings.offline)
        if path is not None:
            return read_path(path)
    try:
        return _read_remote(model, web)
    except HttpError as error:
        paths = [_in_place(place, model, is_strict=False) for place in places]
        for path in filter(None, paths):
            if error.is_passing:
                web.warn(f"{error}; read what is on this machine")
                return read_path(path)
        raise


def _in_place(place: Place, model: HubModel, is_strict: bool) -> Path | None:
    """Return the file or folder of a place that holds the model; None without it.

    Strict: no other quant than the one that the Hub's copy would be read in.
    """
    if model.file is not None:
        complete = {part for parts in models(place.files).values() for part in parts}
        return place.files[model.file] if model.file in complete else None
    choice = choose(place.files, model.quant)
    if choice is not None:
        return None if is_strict and not choice.is_default else place.files[choice.files[0]]
    if model.quant is None and place.folder is not None and is_complete(place.files):
        return place.folder
    return None


def _read_remote(model: HubModel, web: Web) -> Header:
    if model.file is not None:
        return replace(read_url(file_url(model, web, model.file), web), source=str(model))
    files = repository(model, web).files
    choice = choose(files, model.quant)
    if choice is not None:
        return _read_choice(model, files, choice, web)
    if model.quant is not None and models(files):
        raise InputError(
            f"{model}: expected a quant of this repository, found none of that name; "
            f"it has {quants(files)}"
        )
    if model.quant is None and is_checkpoint(files):
        return read_repo(files, partial(file_url, model, web), str(model), web)
    raise InputError(
        f"{model}: expected GGUF files, or config.json with safetensors; "
        f"it has {listing(files) or 'nothing'}"
    )


def _read_choice(model: HubModel, files: Mapping[str, str], choice: Choice, web: Web) -> Header:
    if not choice.is_default:
        web.warn(
            f"no {DEFAULT_QUANT} in {model}, so this is {printable(choice.files[0])}; "
            f"add :quant for another of {quants(files)}"
        )
    urls = [file_url(model, web, name) for name in choice.files]
    etags = {url: files[name] for url, name in zip(urls, choice.files, strict=True)}
    source = str(replace(model, quant=None, file=choice.files[0]))
    return read_urls(urls, source, web, etags)
