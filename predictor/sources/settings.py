"""What the environment says about where to look and what to send."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokcast.predictor.errors import InputError
from tokcast.predictor.text import printable

HUB = "https://huggingface.co"
_TRUE = frozenset({"1", "ON", "YES", "TRUE"})


@dataclass(frozen=True, slots=True)
class Settings:
    """Environment variables, and what tests replace.

    `registry` is Ollama's, which no variable of Ollama's names; `patience_seconds` is how long
    one file may take. `transport` makes the httpx transport of every request, redirects included,
    for a server that must not go wherever it is told to; no proxy of the environment is used then.
    """

    environ: Mapping[str, str]
    offline: bool = False
    registry: str = "https://registry.ollama.ai"
    patience_seconds: float = 300.0
    sleep: Callable[[float], None] = time.sleep
    transport: Callable[[], Any] | None = None

    @property
    def home(self) -> Path:
        """Return the user's home folder."""
        named = self.environ.get("HOME") or self.environ.get("USERPROFILE")
        return Path(named) if named else Path.home()

    @property
    def endpoint(self) -> str:
        """Return the Hub's address, `HF_ENDPOINT` for a mirror, without a slash at its end.

        Raises InputError for one that is no address.
        """
        address = (self.environ.get("HF_ENDPOINT") or HUB).rstrip("/")
        if not address.startswith(("https://", "http://")):
            raise InputError(
                f"HF_ENDPOINT {printable(address)!r}: expected an address that begins with "
                f"https://, such as {HUB}; set it again or unset it"
            )
        return address

    @property
    def hub_home(self) -> Path:
        """Return the Hub client's folder, `HF_HOME`."""
        return self.folder("HF_HOME") or self.caches / "huggingface"

    @property
    def caches(self) -> Path:
        """Return the folder that programs of the XDG kind cache in."""
        return self.folder("XDG_CACHE_HOME") or self.home / ".cache"

    def folder(self, variable: str) -> Path | None:
        """Return the folder that a variable names, `~` being home; None where it is not set."""
        text = self.environ.get(variable)
        return self.expanded(text) if text else None

    def expanded(self, text: str) -> Path:
        """Return a path as it was typed, `~` being home."""
        return self.home / text[2:] if text.startswith("~/") else Path(text)

    def token(self) -> str | None:
        """Return the Hub's token: `HF_TOKEN`, its older name, or the file that a login leaves.

        Raises InputError for one that no header can carry.
        """
        text = self.environ.get("HF_TOKEN") or self.environ.get("HUGGING_FACE_HUB_TOKEN")
        token = (text or self._stored_token()).strip()
        if not token:
            return None
        if not (token.isascii() and token.isprintable() and " " not in token):
            raise InputError(
                "HF_TOKEN: expected a token such as hf_…, found characters that no token has; "
                "set it again or unset it"
            )
        return token

    def _stored_token(self) -> str:
        path = self.folder("HF_TOKEN_PATH") or self.hub_home / "token"
        try:
            with path.open(encoding="utf-8", errors="replace") as file:
                return file.read(1000)
        except OSError:
            return ""


def from_environ(environ: Mapping[str, str], offline: bool | None) -> Settings:
    """Return the settings; `offline` None leaves it to `HF_HUB_OFFLINE`."""
    if offline is None:
        offline = environ.get("HF_HUB_OFFLINE", "").upper() in _TRUE
    return Settings(environ, offline)
