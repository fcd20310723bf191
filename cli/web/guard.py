"""What is checked before a request reaches the application, and what every answer carries."""

import asyncio
import ipaddress
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tokcast.cli.web.config import Config
from tokcast.cli.web.problems import Refused, problem

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
STREAMS = ("/api/v1/nvml/stream", "/api/v1/meters/stream")
UPLOADS = ("/api/v1/inspect/upload",)


def host_name(value: str) -> str:
    """Return the name in a Host header, without its port; "" for what is none."""
    try:
        split = urlsplit(f"//{value}")
        _ = split.port
    except ValueError:
        return ""
    return "" if split.username or split.path or not value.isprintable() else split.hostname or ""


def is_trusted(value: str, names: Iterable[str]) -> bool:
    """Return whether a Host header is one this server goes by.

    A page of another site that points its own name at this machine (DNS rebinding) sends that
    name; an address or localhost it cannot send.
    """
    name = host_name(value)
    if name == "localhost" or name in names:
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Guard:
    """An ASGI layer: Host and Origin, sizes, times, how many at once, and security headers."""

    def __init__(self, app: ASGIApp, config: Config) -> None:
        self._app = app
        self._config = config
        self._n_now = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        has_started = False

        async def sent(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                message["headers"] = [*message.get("headers", ()), *HEADERS]
                if scope["path"].startswith("/api/"):
                    message["headers"].append((b"cache-control", b"no-store"))
            await send(message)

        try:
            await self._guarded(scope, receive, sent, headers)
        except Refused as refused:
            if not has_started:
                await problem(refused.status, refused.detail)(scope, receive, sent)

    async def _guarded(
        self, scope: Scope, receive: Receive, send: Send, headers: dict[str, str]
    ) -> None:
        self._check(scope, headers)
        if self._n_now >= self._config.n_at_once:
            raise Refused(503, f"more than {self._config.n_at_once} requests at once; try again")
        self._n_now += 1
        limited = self._limited(scope["path"], headers, receive)
        seconds = None if scope["path"] in STREAMS else self._config.seconds
        try:
            async with asyncio.timeout(seconds):
                await self._app(scope, limited, send)
        except TimeoutError:
            raise Refused(503, f"not done within {self._config.seconds:g} s") from None
        finally:
            self._n_now -= 1

    def _check(self, scope: Scope, headers: dict[str, str]) -> None:
        """Refuse requests under a foreign name, and what another site's page would send."""
        host = headers.get("host", "")
        if not is_trusted(host, self._config.names):
            raise Refused(421, "this server does not go by that name; see tokcast serve --name")
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            raise Refused(403, "requests from pages of other sites are not answered")
        is_api = scope["path"].startswith("/api/")
        if is_api and headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            raise Refused(403, "requests from pages of other sites are not answered")

    def _limited(self, path: str, headers: dict[str, str], receive: Receive) -> Receive:
        """Return a `receive` that refuses a body beyond the limit, said or sent."""
        config = self._config
        limit = config.max_upload_bytes if path in UPLOADS else config.max_json_bytes
        too_long = Refused(413, f"a body of at most {limit} bytes is read here")
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdecimal():
            raise Refused(400, "Content-Length is not a number")
        if int(length) > limit:
            raise too_long
        n_read = 0

        async def limited() -> Message:
            nonlocal n_read
            message = await receive()
            n_read += len(message.get("body", b""))
            if n_read > limit:
                raise too_long
            return message

        return limited
