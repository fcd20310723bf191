"""What the Hub's API says of repositories: files, licences, search results."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlencode, urlsplit

from tokcast.predictor.errors import InputError
from tokcast.predictor.sources.address import HubModel, is_repo, is_safe
from tokcast.predictor.sources.http_errors import shown
from tokcast.predictor.sources.session import origin
from tokcast.predictor.sources.web import Web
from tokcast.predictor.text import printable

MAX_LISTING_BYTES = 32 << 20
MAX_PAGES = 100
PAGE = 100
_NEXT = re.compile(r'<([^<>]+)>\s*;[^,]*\brel="?next"?')


@dataclass(frozen=True, slots=True)
class Repository:
    """Files by name, in the Hub's order, with what identifies their content; the licence or ""."""

    files: Mapping[str, str]
    licence: str = ""


def endpoint(model: HubModel, web: Web) -> str:
    """Return the Hub's address, or that of the page the model was named by."""
    return model.endpoint or web.settings.endpoint


def file_url(model: HubModel, web: Web, name: str) -> str:
    """Return where a file of a repository is."""
    revision = quote(model.revision or "main", safe="")
    return f"{endpoint(model, web)}/{model.repo}/resolve/{revision}/{quote(name)}"


def repository(model: HubModel, web: Web) -> Repository:
    """Return a repository's files; names that no file should have are left out.

    One request, or one a page where the Hub does not list the files with the repository. Raises
    InputError for another answer, and HttpError.
    """
    revision = quote(model.revision or "main", safe="")
    base = f"{endpoint(model, web)}/api/models/{model.repo}"
    url = f"{base}/revision/{revision}?blobs=true"
    facts = _json(web.body(url, MAX_LISTING_BYTES), url)
    if not isinstance(facts, dict):
        raise _no_list(url, facts)
    if "siblings" in facts:
        files = _files(facts["siblings"], "rfilename", url)
    else:
        files = dict(_tree(f"{base}/tree/{revision}?recursive=true", web))
    return Repository(files, _licence(facts))


def _tree(url: str, web: Web) -> Iterator[tuple[str, str]]:
    for page_url, page in _pages(url, web):
        entries = [e for e in page if not isinstance(e, dict) or e.get("type") != "directory"]
        yield from _files(entries, "path", page_url).items()


def _pages(url: str, web: Web) -> Iterator[tuple[str, list[object]]]:
    """Yield (address, list) of every page; a next page elsewhere than on this server is none."""
    for _ in range(MAX_PAGES):
        body, link = web.page(url, MAX_LISTING_BYTES)
        page = _json(body, url)
        if not isinstance(page, list):
            raise _no_list(url, page)
        yield url, page
        match = _NEXT.search(link)
        if match is None:
            return
        following = match[1]
        if origin(following) != origin(url) or urlsplit(following).username:
            web.warn(f"{shown(url)}: the next page is on another server, so it was not read")
            return
        url = following
    web.warn(f"{shown(url)}: more than {MAX_PAGES} pages; the rest were not read")


def search(text: str, author: str, limit: int, web: Web) -> list[str]:
    """Return repositories of the Hub that a search finds, most downloaded first.

    Names that are none are left out.
    """
    query = {"search": text, "author": author, "sort": "downloads", "direction": "-1"}
    asked = {key: value for key, value in query.items() if value}
    asked["limit"] = str(min(limit, PAGE))
    found: dict[str, None] = {}
    for _, page in _pages(f"{web.settings.endpoint}/api/models?{urlencode(asked)}", web):
        for entry in page:
            name = entry.get("id") if isinstance(entry, dict) else None
            if isinstance(name, str) and is_repo(name):
                found[name] = None
        if len(found) >= limit:
            break
    return list(found)[:limit]


def _json(body: bytes, url: str) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise _no_list(url, body[:40].decode("utf-8", "replace")) from None


def _no_list(url: str, found: object) -> InputError:
    text = found if isinstance(found, str) else str(found)[:40]
    return InputError(f"{shown(url)}: expected a list of files, found {printable(text, 60)!r}")


def _files(entries: object, key: str, url: str) -> dict[str, str]:
    """Return {file: content id} of a listing; raises InputError for another form."""
    if not isinstance(entries, list) or not all(isinstance(e, dict) for e in entries):
        raise _no_list(url, entries)
    return dict(filter(None, (_file(entry, key) for entry in entries)))


def _file(entry: Mapping[str, object], key: str) -> tuple[str, str] | None:
    name, lfs = entry.get(key), entry.get("lfs")
    if not isinstance(name, str) or not is_safe(name):
        return None
    plain = entry.get("blobId") or entry.get("oid")
    etag = (lfs.get("sha256") or lfs.get("oid")) if isinstance(lfs, dict) else plain
    return name, etag if isinstance(etag, str) else ""


def _licence(facts: Mapping[str, object]) -> str:
    tags = facts.get("tags")
    for tag in tags if isinstance(tags, list) else ():
        if isinstance(tag, str) and tag.startswith("license:"):
            return printable(tag.removeprefix("license:"), 60)
    return ""
