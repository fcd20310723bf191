"""Model addresses: what a user types, taken apart."""

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tokcast.predictor.errors import InputError
from tokcast.predictor.sources.settings import HUB, Settings
from tokcast.predictor.text import printable

_NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,95}"
_REPO = re.compile(rf"{_NAME}/{_NAME}")
_HUB_HOSTS = frozenset({"huggingface.co", "www.huggingface.co", "hf.co"})
_HUB_PREFIXES = ("hf://", "hf:", "huggingface.co/", "hf.co/")
_HUB_FORMS = "owner/repo[:quant] or owner/repo[@revision]/file.gguf"
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_FILE_SUFFIXES = (".gguf", ".safetensors", ".json")


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A file or folder that exists."""

    path: Path


@dataclass(frozen=True, slots=True)
class UrlModel:
    """A GGUF file on a web server."""

    url: str


@dataclass(frozen=True, slots=True)
class HubModel:
    """A repository on the Hub, or one file of it; `endpoint` None is the user's own."""

    repo: str
    revision: str | None = None
    quant: str | None = None
    file: str | None = None
    endpoint: str | None = None

    def __str__(self) -> str:
        """Return the address as one would type it."""
        revision = f"@{self.revision}" if self.revision else ""
        quant = f":{self.quant}" if self.quant else ""
        file = f"/{self.file}" if self.file else ""
        return f"hf:{self.repo}{revision}{quant}{file}"


@dataclass(frozen=True, slots=True)
class OllamaModel:
    """A model of Ollama's; `host` None is its own registry."""

    host: str | None
    namespace: str
    name: str
    tag: str

    def __str__(self) -> str:
        """Return the address as one would type it."""
        host = f"{self.host}/" if self.host else ""
        namespace = f"{self.namespace}/" if host or self.namespace != "library" else ""
        return f"ollama:{host}{namespace}{self.name}:{self.tag}"


@dataclass(frozen=True, slots=True)
class CatalogueModel:
    """A model of the built-in catalogue; `file_type` None where none was given."""

    name: str
    file_type: str | None


Address = LocalModel | UrlModel | HubModel | OllamaModel | CatalogueModel


def parse(address: str, settings: Settings) -> Address:
    """Return what `address` names; a path that exists comes before other readings of a word.

    Raises InputError for a path that does not exist and for a form that is none.
    """
    text = address.strip()
    if not text or not text.isprintable():
        raise _unknown(address, "a path, URL, owner/repo[:quant], ollama:name or name@FILETYPE")
    lower = text.lower()
    if lower.startswith(("http://", "https://")):
        return _url(text, settings)
    if lower.startswith("ollama:"):
        return _ollama(text[len("ollama:") :])
    for prefix in _HUB_PREFIXES:
        if lower.startswith(prefix):
            return _hub(text[len(prefix) :])
    return _existing(text, settings) or _remote_or_word(text)


def _existing(text: str, settings: Settings) -> LocalModel | None:
    path = settings.expanded(text)
    try:
        exists = path.exists()
    except OSError:  # a name too long for the file system
        exists = False
    if exists:
        return LocalModel(path)
    is_path = text.startswith((".", "/", "~", "\\")) or _DRIVE.match(text) is not None
    if is_path or text.lower().endswith(_FILE_SUFFIXES):
        is_hub = not is_path and text.count("/") >= 2
        hint = "; on the Hub it is hf:owner/repo/file.gguf" if is_hub else ""
        raise InputError(f"{printable(str(path), 1000)}: no such file or folder{hint}")
    return None


def _remote_or_word(text: str) -> Address:
    if text.count("/") == 1:
        return _hub(text)
    if "/" in text:
        raise _unknown(text, f"a path that exists, or hf:{_HUB_FORMS}")
    name, at, file_type = text.partition("@")
    return CatalogueModel(name, file_type if at else None)


def _hub(text: str) -> HubModel:
    parts = text.split("/", 2)
    if len(parts) < 2:
        raise _unknown(text, _HUB_FORMS)
    owner, rest = parts[:2]
    file = parts[2] if len(parts) == 3 else None
    rest, colon, quant = rest.partition(":")
    name, at, revision = rest.partition("@")
    whole = bool(_REPO.fullmatch(f"{owner}/{name}")) and ".." not in f"{owner}/{name}"
    if not whole or (colon and (not quant or file)) or (at and not revision):
        raise _unknown(text, _HUB_FORMS)
    if file is not None and not is_safe(file):
        raise _unknown(text, "a file of the repository after owner/repo/")
    return HubModel(f"{owner}/{name}", revision or None, quant or None, file)


def is_repo(name: str) -> bool:
    """Return whether a text has the form of a repository's name."""
    return _REPO.fullmatch(name) is not None and ".." not in name


def is_safe(name: str) -> bool:
    """Return whether a file's name in a repository is printable and stays inside it."""
    if not name.isprintable() or "\\" in name or len(name) > 1000:
        return False
    return all(part not in ("", ".", "..") for part in name.split("/"))


def _url(text: str, settings: Settings) -> UrlModel | HubModel:
    try:
        split = urlsplit(text)
        host = split.hostname
        _ = split.port
    except ValueError:
        host = None
    if not host:
        raise _unknown(text, "a URL such as https://host/path/model.gguf")
    if text.startswith(f"{settings.endpoint}/"):
        endpoint: str | None = settings.endpoint
        path = text[len(settings.endpoint) + 1 :]
    elif host in _HUB_HOSTS and not split.username:
        endpoint, path = HUB, split.path.lstrip("/")
    else:
        return UrlModel(text)
    return _page(path, endpoint) or UrlModel(text.replace("/blob/", "/resolve/", 1))


def _page(path: str, endpoint: str | None) -> HubModel | None:
    """Return what a page or file of the Hub shows; None for other pages."""
    path = path.partition("?")[0].partition("#")[0].rstrip("/")
    parts = [unquote(part) for part in path.split("/", 4)]
    if len(parts) < 2 or not _REPO.fullmatch("/".join(parts[:2])):
        return None
    repo = "/".join(parts[:2])
    if len(parts) == 2:
        return HubModel(repo, endpoint=endpoint)
    if len(parts) == 4 and parts[2] == "tree":
        return HubModel(repo, _revision(parts[3]), endpoint=endpoint)
    if len(parts) == 5 and parts[2] in ("blob", "resolve", "raw") and is_safe(parts[4]):
        return HubModel(repo, _revision(parts[3]), file=parts[4], endpoint=endpoint)
    return None


def _revision(text: str) -> str | None:
    return None if text == "main" else text


def _ollama(text: str) -> OllamaModel:
    *folders, last = text.split("/")
    name, colon, tag = last.partition(":")
    host = folders.pop(0) if len(folders) == 2 else None
    namespace = folders.pop(0) if len(folders) == 1 else "library"
    words = (namespace, name, tag if colon else "latest")
    is_host = host is None or re.fullmatch(r"[A-Za-z0-9.-]+(:\d{1,5})?", host) is not None
    if folders or not is_host or not all(_is_ollama_word(word) for word in words):
        raise _unknown(f"ollama:{text}", "ollama:name[:tag] or ollama:user/name[:tag]")
    return OllamaModel(host, *words)


def _is_ollama_word(text: str) -> bool:
    return re.fullmatch(_NAME, text) is not None and ".." not in text


def _unknown(text: str, expected: str) -> InputError:
    return InputError(f"{printable(text, 200)!r}: expected {expected}")
