"""What went wrong between here and a server, in one line that says what to do."""

from __future__ import annotations

import email.utils
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tokcast.predictor.errors import InputError
from tokcast.predictor.text import printable

if TYPE_CHECKING:
    import httpx

_MISSING = {
    "RepoNotFound": "no such repository",
    "RevisionNotFound": "no such revision",
    "EntryNotFound": "no such file in the repository",
}


class HttpError(InputError):
    """No answer, or one that refuses (then `status` is its code).

    `is_passing` where what was fetched earlier may stand in.
    """

    def __init__(self, message: str, status: int | None = None, is_passing: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.is_passing = is_passing


class BrokenConnectionError(HttpError):
    """A connection that broke or fell silent: another try may do."""


def shown(url: str) -> str:
    """Return an address for people: without credentials and signatures, escaped."""
    split = urlsplit(url)
    return printable(f"{split.scheme}://{_host(url)}{split.path}", 300)


def _host(url: str) -> str:
    return printable(urlsplit(url).netloc.rpartition("@")[2])


def failure(error: httpx.HTTPError | httpx.InvalidURL, url: str) -> InputError:
    """Return the error to raise for one of httpx's."""
    import httpx

    reason = printable(str(error) or type(error).__name__)
    if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol | httpx.LocalProtocolError):
        return InputError(f"{shown(url)}: not an address that can be opened ({reason})")
    causes = tuple(_causes(error))
    if any(isinstance(cause, ssl.SSLError) for cause in causes):
        cure = "behind a proxy, name its certificates in SSL_CERT_FILE"
        return HttpError(f"{_host(url)}: no trusted TLS connection ({reason}); {cure}")
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        cure = "check the name and the network, or give a path"
        return HttpError(f"{_host(url)}: no address found for this host; {cure}", is_passing=True)
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError):
        words = f"cannot connect ({reason}); check the network, or give a path"
        return HttpError(f"{_host(url)}: {words}", is_passing=True)
    words = "silent for too long" if isinstance(error, httpx.TimeoutException) else "broke"
    return BrokenConnectionError(
        f"{_host(url)}: the connection {words} ({reason}); try again later", is_passing=True
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def refusal(
    url: str, status: int, headers: Mapping[str, str], is_hub: bool, has_token: bool
) -> HttpError:
    """Return the error for an answer that holds no content; `is_hub` where the token goes."""
    what = shown(url)
    code = headers.get("X-Error-Code", "") if is_hub else ""
    if code == "GatedRepo" or (status == 403 and is_hub):
        page = re.sub(r"/(resolve|raw|tree|revision)/.*", "", what.replace("/api/models/", "/"))
        cure = "as the user whose HF_TOKEN this is" if has_token else "and set HF_TOKEN"
        return HttpError(f"{what}: gated ({status}); accept its terms at {page} {cure}", status)
    if status in (401, 403):
        return HttpError(f"{what}: {_no_access(status, is_hub, has_token)}", status)
    if status in (404, 410):
        words = f"{_MISSING.get(code, 'not found')} ({status}); check the address"
        return HttpError(f"{what}: {words}", status)
    if status == 416:
        return HttpError(f"{what}: expected a model, found an empty file (416)", status)
    if status == 429:
        words = _busy(headers, is_hub and not has_token)
        return HttpError(f"{what}: {words}", status, is_passing=True)
    if status >= 500:
        words = f"the server fails ({status}); try again later"
        return HttpError(f"{what}: {words}", status, is_passing=True)
    return HttpError(f"{what}: expected a file, the server answered {status}", status)


def _no_access(status: int, is_hub: bool, has_token: bool) -> str:
    if not is_hub:
        return (
            f"the server wants a login ({status}) and gets no credentials from here; "
            "download the file and give its path"
        )
    cure = "whether HF_TOKEN may read it" if has_token else "or set HF_TOKEN if it is private"
    return f"no such repository, or no access ({status}); check the spelling, {cure}"


def _busy(headers: Mapping[str, str], is_anonymous: bool) -> str:
    wait_s = retry_after_s(headers)
    when = "later" if wait_s is None else f"in {wait_s:.0f} s"
    cure = "; with HF_TOKEN set the Hub allows more" if is_anonymous else ""
    return f"too many requests (429); try again {when}{cure}"


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that `Retry-After` asks for, as a number or a date; None without."""
    text = headers.get("Retry-After", "").strip()
    if re.fullmatch(r"[0-9]{1,9}", text):
        return float(text)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return None
