"""A real web server on this machine that answers as told, and says what it was asked and sent."""

import contextlib
import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from unittest import mock

_RANGE = re.compile(r"bytes=(\d+)-(\d*)")


@dataclass
class Page:
    """What lies at a path.

    The lists hold one entry a request and run out: `statuses` are answered in place of the page,
    `breaks` are the body bytes after which the connection is cut. `later` takes the page's
    place after the first request.
    """

    body: bytes = b""
    etag: str = ""
    ranges: bool = True
    location: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    statuses: list[int] = field(default_factory=list)
    breaks: list[int] = field(default_factory=list)
    seconds_a_piece: float = 0.0
    piece: int = 1 << 16
    later: "Page | None" = None


@dataclass
class Request:
    path: str
    headers: dict[str, str]


class Server:
    """Pages by path (query included), every request made, and the body bytes sent."""

    def __init__(self, pages: dict[str, Page] | None = None) -> None:
        self.pages = pages or {}
        self.requests: list[Request] = []
        self.n_sent = 0
        self.url = ""
        self._lock = threading.Lock()

    def paths(self) -> list[str]:
        return [request.path for request in self.requests]

    def ranges(self) -> list[str | None]:
        return [request.headers.get("range") for request in self.requests]

    def forget(self) -> None:
        self.requests.clear()
        self.n_sent = 0

    def take(self, path: str, headers: dict[str, str]) -> tuple[Page | None, int, int | None]:
        """Return the page, the status it answers instead or 0, and where it breaks."""
        with self._lock:
            self.requests.append(Request(path, headers))
            page = self.pages.get(path)
            if page is None:
                return None, 404, None
            if page.later is not None:
                self.pages[path] = page.later
            status = page.statuses.pop(0) if page.statuses else 0
            cut = page.breaks.pop(0) if page.breaks and not status else None
            return page, status, cut

    def count(self, n_bytes: int) -> None:
        with self._lock:
            self.n_sent += n_bytes


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    told: Server

    def do_GET(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        page, status, cut = self.told.take(self.path, headers)
        if page is None or status:
            self._head(status, 0, page.headers if page else {})
        elif page.location:
            self._head(302, 0, {"Location": page.location, **page.headers})
        elif page.etag and headers.get("if-none-match") == page.etag.removeprefix("W/"):
            self._head(304, None, {"ETag": page.etag})
        else:
            self._body(page, headers, cut)

    def _body(self, page: Page, headers: dict[str, str], cut: int | None) -> None:
        match = _RANGE.fullmatch(headers.get("range", "")) if page.ranges else None
        if headers.get("if-range", page.etag) != page.etag:
            match = None
        extra = dict(page.headers) | ({"ETag": page.etag} if page.etag else {})
        if match is None:
            self._head(200, len(page.body), extra)
            self._send(page, page.body, cut)
            return
        size = len(page.body)
        start = int(match[1])
        end = min(int(match[2]) + 1 if match[2] else size, size)
        if start >= size:
            self._head(416, 0, {"Content-Range": f"bytes */{size}"})
            return
        self._head(206, end - start, extra | {"Content-Range": f"bytes {start}-{end - 1}/{size}"})
        self._send(page, page.body[start:end], cut)

    def _head(self, status: int, length: int | None, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def _send(self, page: Page, body: bytes, cut: int | None) -> None:
        for start in range(0, len(body), page.piece):
            piece = body[start : start + page.piece]
            if cut is not None and start + len(piece) > cut:
                piece = body[start:cut]
                self.close_connection = True
            if page.seconds_a_piece:
                time.sleep(page.seconds_a_piece)
            self.wfile.write(piece)
            self.told.count(len(piece))
            if self.close_connection and cut is not None:
                return

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that close early: that is what they are meant to do."""


@contextlib.contextmanager
def serve(pages: dict[str, Page] | None = None) -> Iterator[Server]:
    """Yield a server on a free port of this machine; `server.pages` may change at any time."""
    told = Server(pages)
    handler = type("Handler", (_Handler,), {"told": told})
    server = _Quiet(("127.0.0.1", 0), handler)
    told.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        with mock.patch.dict(os.environ, {"NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}):
            yield told
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def hub(server: Server, repo: str, files: dict[str, bytes], revision: str = "main") -> None:
    """Put a repository on the server, as the Hub shows it to an API call and to a download."""
    siblings = []
    for name, body in files.items():
        etag = hashlib.sha256(body).hexdigest()
        siblings.append({"rfilename": name, "lfs": {"sha256": etag}, "size": len(body)})
        server.pages[f"/{repo}/resolve/{revision}/{name}"] = Page(body, etag=f'"{etag}"')
    listing = json.dumps({"id": repo, "siblings": siblings}).encode()
    path = f"/api/models/{repo}/revision/{revision}?blobs=true"
    server.pages[path] = Page(
        listing, etag=f'W/"{hashlib.sha256(listing).hexdigest()}"', ranges=False
    )
