"""Candidates that have to be looked for: in files, folders and repositories."""

from collections.abc import Iterable
from functools import partial

from tokcast.predictor.errors import InputError
from tokcast.predictor.select.candidate import Candidate, Found, Unread
from tokcast.predictor.select.candidates import Asked, Progress, of_catalogue
from tokcast.predictor.select.jobs import Job, read_all
from tokcast.predictor.select.places import in_folder, local_jobs
from tokcast.predictor.select.repositories import in_repository
from tokcast.predictor.sources.address import (
    Address,
    CatalogueModel,
    HubModel,
    LocalModel,
    OllamaModel,
    parse,
)
from tokcast.predictor.sources.listing import search
from tokcast.predictor.sources.open import read
from tokcast.predictor.sources.settings import Settings
from tokcast.predictor.sources.web import Web


def look(asked: Asked, settings: Settings, progress: Progress) -> Found:
    """Return the candidates of addresses, searches and folders.

    Raises InputError for an address that is none, and where the only one can't be looked at.
    """
    web = Web(settings)
    try:
        return _look(asked, web, progress)
    finally:
        web.close()


def _look(asked: Asked, web: Web, progress: Progress) -> Found:
    targets = [(text, parse(text, web.settings)) for text in asked.addresses]
    looked_at = [text for text, _ in targets]
    if asked.search or asked.author:
        named = search(asked.search, asked.author, asked.limit, web)
        words = " ".join(filter(None, (asked.search, asked.author and f"by {asked.author}")))
        looked_at.append(f"{len(named)} repositories found for {words!r}")
        targets += [(f"hf:{name}", HubModel(name)) for name in named]
    jobs: list[Job] = []
    found: list[Candidate] = []
    unread: list[Unread] = []
    is_only = len(targets) == 1 and not asked.is_local
    for text, target in targets:
        try:
            if isinstance(target, CatalogueModel):
                found += of_catalogue(target.name, target.file_type, asked.formats)
            else:
                jobs += _jobs(text, target, web)
        except InputError as error:
            if is_only:
                raise
            unread.append(Unread(text, str(error)))
    if asked.is_local:
        folders, listed = local_jobs(web.settings)
        looked_at += folders
        jobs += listed
    read_now, failed = read_all(jobs, web, progress)
    found += [c for c in read_now if c.spec.format in asked.formats]
    return Found(tuple(found), (*unread, *failed), tuple(looked_at), tuple(web.warnings))


def _jobs(text: str, target: Address, web: Web) -> Iterable[Job]:
    read_now = partial(read, target, web.settings)
    match target:
        case HubModel(quant=None, file=None):
            return in_repository(target, web)
        case LocalModel(path) if path.is_dir():
            return in_folder(path)
        case HubModel(repo):
            found = Job(text, text, "", "hub", read_now, repo=repo)
        case LocalModel(path):
            found = Job(text, text, "", "file", read_now, path=str(path))
        case OllamaModel():
            found = Job(text, text, "", "ollama", read_now)
        case _:
            found = Job(text, text, "", "web", read_now)
    return [found]
