"""All models of a repository on the Hub."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from tokcast.predictor.errors import InputError
from tokcast.predictor.gguf import read_gguf_file
from tokcast.predictor.header import Header
from tokcast.predictor.select.jobs import Job
from tokcast.predictor.sources.address import HubModel
from tokcast.predictor.sources.choose import is_checkpoint, label_of, models
from tokcast.predictor.sources.http_errors import HttpError
from tokcast.predictor.sources.listing import Repository, file_url, repository
from tokcast.predictor.sources.local import read_path
from tokcast.predictor.sources.mlx_repo import read_repo
from tokcast.predictor.sources.parts import read_urls
from tokcast.predictor.sources.places import find
from tokcast.predictor.sources.vocabulary import Vocabulary
from tokcast.predictor.sources.web import Web
from tokcast.predictor.text import listing


def in_repository(model: HubModel, web: Web) -> Iterator[Job]:
    """Return a job for each GGUF model of a repository, or for its checkpoint.

    A file that another program keeps on this machine is read from there. Without a network,
    those are all there is, unless the repository was listed before. Raises InputError.
    """
    here = _on_this_machine(model, web)
    try:
        listed = repository(model, web)
    except InputError as error:
        is_passing = web.settings.offline or (isinstance(error, HttpError) and error.is_passing)
        if not here or not is_passing:
            raise
        web.warn(f"{error}; looked at what is on this machine")
        listed = Repository(dict.fromkeys(here, ""))
    found = models(listed.files)
    if found:
        return _gguf_jobs(model, listed, found, here, web)
    if is_checkpoint(listed.files):
        return iter([_checkpoint(model, listed, web)])
    raise InputError(
        f"{model}: expected GGUF files, or config.json with safetensors; "
        f"it has {listing(listed.files) or 'nothing'}"
    )


def _on_this_machine(model: HubModel, web: Web) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for place in find(model.repo, model.revision, web.settings):
        found |= {name: path for name, path in place.files.items() if name not in found}
    return found


def _gguf_jobs(
    model: HubModel,
    listed: Repository,
    found: Mapping[str, tuple[str, ...]],
    here: Mapping[str, Path],
    web: Web,
) -> Iterator[Job]:
    vocabularies: dict[str, Vocabulary] = {}
    for name, files in found.items():
        quant = label_of(name)
        vocabulary = vocabularies.setdefault(_stem(name, quant), Vocabulary())
        yield Job(
            address=str(replace(model, file=name)),
            model=f"{model.repo}/{_stem(name, quant)}",
            quant=quant,
            origin="hub",
            read=_reader(model, files, listed, here, web, vocabulary),
            repo=model.repo,
            licence=listed.licence,
        )


def _reader(
    model: HubModel,
    files: tuple[str, ...],
    listed: Repository,
    here: Mapping[str, Path],
    web: Web,
    vocabulary: Vocabulary,
) -> Callable[[], Header]:
    if all(name in here for name in files):
        return partial(read_gguf_file, here[files[0]])
    urls = [file_url(model, web, name) for name in files]
    etags = {url: listed.files[name] for url, name in zip(urls, files, strict=True)}
    return partial(read_urls, urls, str(replace(model, file=files[0])), web, etags, vocabulary)


def _stem(name: str, quant: str) -> str:
    """Return a file's name without its quant and folder, by which a repository's models differ."""
    stem = name.rpartition("/")[2].removesuffix(".gguf").partition("-00001-of-")[0]
    at = stem.lower().rfind(quant.lower()) if quant else -1
    return (stem[:at] if at >= 0 else stem).strip("-._")


def _checkpoint(model: HubModel, listed: Repository, web: Web) -> Job:
    def read() -> Header:
        for place in find(model.repo, model.revision, web.settings):
            if place.folder is not None and is_checkpoint(place.files):
                return read_path(place.folder)
        return read_repo(listed.files, partial(file_url, model, web), str(model), web)

    return Job(str(model), model.repo, "", "hub", read, model.repo, licence=listed.licence)
