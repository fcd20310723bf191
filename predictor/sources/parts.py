"""GGUF files on web servers, one or the parts of a split model."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TypeVar
from urllib.parse import urlsplit, urlunsplit

from tokcast.predictor.errors import InputError
from tokcast.predictor.gguf import read_gguf
from tokcast.predictor.gguf_split import join_splits, split_names
from tokcast.predictor.header import Header
from tokcast.predictor.sources.http_errors import shown
from tokcast.predictor.sources.vocabulary import Vocabulary
from tokcast.predictor.sources.web import GGUF, LATER_GGUF_PART, Kind, Web

N_AT_ONCE = 8
MAX_FILES = 2000
S = TypeVar("S")
T = TypeVar("T")


def read_url(url: str, web: Web) -> Header:
    """Return the header of the GGUF file at `url`, with the other parts of a split model."""
    split = urlsplit(url)
    paths = split_names(split.path) or [split.path]
    return read_urls([urlunsplit(split._replace(path=path)) for path in paths], shown(url), web)


def read_urls(
    urls: Sequence[str],
    source: str,
    web: Web,
    etags: Mapping[str, str] | None = None,
    vocabulary: Vocabulary | None = None,
) -> Header:
    """Return one header for the files at `urls`; `etags` holds what a listing says of them.

    `vocabulary` is what the first file may share with those of other quantizations.
    """
    known = etags or {}

    def read(url: str, kind: Kind) -> Header:
        parse = partial(_read_part, shown(url))
        if vocabulary is not None and kind is GGUF:
            return web.header(url, parse, known.get(url, ""), vocabulary)
        return web.parsed(url, kind, parse, known.get(url, ""))

    first = read(urls[0], GGUF)
    rest = at_once(lambda url: read(url, LATER_GGUF_PART), urls[1:], source)
    return replace(join_splits([first, *rest], source), source=source)


def _read_part(source: str, read: Callable[[int], bytes], size: int | None) -> Header:
    return read_gguf(read, source, size)


def at_once(work: Callable[[S], T], items: Sequence[S], source: str) -> list[T]:
    """Return `work` of every item, some at a time; raise InputError for very many items."""
    if len(items) > MAX_FILES:
        raise InputError(f"{source}: expected at most {MAX_FILES} files, found {len(items)}")
    if len(items) < 2:
        return [work(item) for item in items]
    with ThreadPoolExecutor(N_AT_ONCE) as pool:
        return list(pool.map(work, items))
