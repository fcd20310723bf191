"""HTTP requests: redirects, who gets the token, and when to try again."""

from __future__ import annotations

import contextlib
import ipaddress
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tokcast.predictor.errors import InputError
from tokcast.predictor.sources.http_errors import (
    BrokenConnectionError,
    HttpError,
    failure,
    refusal,
    retry_after_s,
    shown,
)
from tokcast.predictor.sources.settings import Settings

if TYPE_CHECKING:
    import httpx

N_TRIES = 3
MAX_REDIRECTS = 8
LONGEST_WAIT_S = 10.0
CONNECT_S, READ_S = 10.0, 30.0
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_BUSY = frozenset({429, 500, 502, 503, 504})
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Answer:
    """An open response, and the address that gave it in the end.

    `etag` names the content, without quotes: the Hub's own where it redirected to a file store.
    `status` 304 says that it is the content already known.
    """

    response: httpx.Response
    url: str
    status: int
    etag: str

    def close(self) -> None:
        """Let go of the connection, body read or not."""
        self.response.close()

    def chunks(self) -> Iterator[bytes]:
        """Yield the body as it arrives; raise BrokenConnectionError where that ends early."""
        import httpx

        try:
            yield from self.response.iter_raw()
        except httpx.HTTPError as error:
            raise failure(error, self.url) from None


class Session:
    """A client for one command; the Hub's token goes to the Hub's own address only."""

    def __init__(self, settings: Settings) -> None:
        import httpx  # takes longer than all that a local file needs

        self.settings = settings
        self._token = settings.token()
        carrier = settings.transport() if settings.transport is not None else None
        try:
            self._client = httpx.Client(
                transport=carrier,
                trust_env=carrier is None,
                timeout=httpx.Timeout(READ_S, connect=CONNECT_S),
                headers={"User-Agent": "tokcast", "Accept-Encoding": "identity"},
            )
        except (ImportError, ValueError, httpx.InvalidURL) as error:
            # Only what the environment says of proxies can be at fault: a scheme, or SOCKS.
            raise InputError(
                f"HTTPS_PROXY, HTTP_PROXY or ALL_PROXY: {' '.join(str(error).split())}; "
                "expected http://host:port; set them again or unset them"
            ) from None

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def send(self, url: str, headers: Mapping[str, str]) -> Answer:
        """Return the open answer to a GET, of status 200, 206 or 304, after redirects.

        Tries again, `N_TRIES` times in all, where that may help. Raises HttpError, and
        InputError for an address that is none.
        """
        n_tried = 0
        while True:
            n_tried += 1
            try:
                answer = self._follow(url, headers)
            except BrokenConnectionError as broken:
                self.pause(broken, n_tried)
                continue
            if answer.status in (200, 206, 304):
                return answer
            answer.close()
            refused = self._refusal(answer)
            asked_s = retry_after_s(answer.response.headers)
            if answer.status not in _BUSY or (asked_s or 0) > LONGEST_WAIT_S:
                raise refused
            self.pause(refused, n_tried, asked_s)

    def pause(self, error: HttpError, n_tried: int, asked_s: float | None = None) -> None:
        """Wait before another try, longer each time; raise the error where none is left."""
        if n_tried >= N_TRIES:
            raise error
        self.settings.sleep(0.5 * 2 ** (n_tried - 1) if asked_s is None else asked_s)

    def fetch(self, url: str, headers: Mapping[str, str], limit: int) -> tuple[bytes, Answer]:
        """Return a small body whole, and its answer; raise InputError beyond `limit` bytes."""
        n_tried = 0
        while True:
            n_tried += 1
            answer = self.send(url, headers)
            body = bytearray()
            try:
                for chunk in answer.chunks():
                    body += chunk
                    if len(body) > limit:
                        raise InputError(f"{shown(url)}: expected at most {limit} bytes, got more")
            except BrokenConnectionError as error:
                self.pause(error, n_tried)
                continue
            finally:
                answer.close()
            return bytes(body), answer

    def _follow(self, url: str, headers: Mapping[str, str]) -> Answer:
        known = _bare(headers.get("If-None-Match", ""))
        etag, asked = "", url
        for _ in range(MAX_REDIRECTS):
            response = self._get(url, headers)
            etag = etag or _bare(response.headers.get("X-Linked-ETag", ""))
            if etag and etag == known:
                response.close()
                return Answer(response, url, 304, etag)
            if response.status_code not in _REDIRECTS or "Location" not in response.headers:
                etag = etag or _bare(response.headers.get("ETag", ""))
                return Answer(response, url, response.status_code, etag)
            response.close()
            url = self._target(url, response.headers["Location"])
            if is_private(url) and not is_private(asked):
                raise HttpError(
                    f"{shown(asked)}: redirected into a private network, {shown(url)}; not followed"
                )
        raise HttpError(f"{shown(url)}: redirected more than {MAX_REDIRECTS} times")

    def _get(self, url: str, headers: Mapping[str, str]) -> httpx.Response:
        import httpx

        sent = dict(headers)
        if self._token is not None and self._is_hub(url):
            sent["Authorization"] = f"Bearer {self._token}"
        try:
            request = self._client.build_request("GET", url, headers=sent)
            return self._client.send(request, stream=True)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise failure(error, url) from None

    def _target(self, url: str, location: str) -> str:
        import httpx

        try:
            target = httpx.URL(url).join(location)
        except httpx.InvalidURL as error:
            raise failure(error, url) from None
        return str(target)

    def _is_hub(self, url: str) -> bool:
        return origin(url) == origin(self.settings.endpoint)

    def _refusal(self, answer: Answer) -> HttpError:
        has_token = self._token is not None
        headers = answer.response.headers
        return refusal(answer.url, answer.status, headers, self._is_hub(answer.url), has_token)


def origin(url: str) -> tuple[str, str | None, int | None]:
    """Return scheme, host and port of an address; raises ValueError for one that is none."""
    split = urlsplit(url)
    return split.scheme, split.hostname, split.port or _PORTS.get(split.scheme)


def is_private(url: str) -> bool:
    """Return whether an address names this machine or a network that is not public."""
    host = (urlsplit(url).hostname or "").rstrip(".").lower()
    if host == "localhost" or host.endswith((".localhost", ".local", ".internal", ".lan")):
        return True
    with contextlib.suppress(ValueError):
        return not ipaddress.ip_address(host.partition("%")[0]).is_global
    with contextlib.suppress(OSError):
        # Numbers that a resolver takes for an address: 2130706433, 0x7f.1.
        return not ipaddress.ip_address(socket.inet_aton(host)).is_global
    return "." not in host


def _bare(etag: str) -> str:
    # What is not ASCII could not be sent back.
    return etag.removeprefix("W/").strip('"') if etag.isascii() else ""
