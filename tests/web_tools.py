"""The web application on a real port of this machine, and what tests ask of it."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import uvicorn
from fastapi import FastAPI

from tokcast.cli.web.app import create_app
from tokcast.cli.web.config import Config
from tokcast.cli.web.library import Library

LLAMA = {"model": "llama-3.1-8b@Q4_K_M", "host": "RTX 4090"}
QWEN = {"model": "qwen3-30b-a3b@Q4_K_M", "host": "M4 Max 40-core"}


@dataclass
class Site:
    """A running server: its address and a client for its API."""

    url: str
    client: httpx.Client

    def ask(self, method: str, path: str, **more: object) -> httpx.Response:
        return self.client.request(method, f"/api/v1/{path}", **more)  # type: ignore[arg-type]

    def get(self, path: str, **more: object) -> httpx.Response:
        return self.ask("GET", path, **more)

    def post(self, path: str, body: object, **more: object) -> httpx.Response:
        return self.ask("POST", path, json=body, **more)


@contextlib.contextmanager
def site(
    config: Config | None = None, library: Library | None = None, app: FastAPI | None = None
) -> Iterator[Site]:
    """Yield a server that runs for as long as the block; nothing is fetched unless a test says."""
    config = config or Config()
    offline = {"HF_HUB_OFFLINE": "1", "HOME": "/nonexistent"}
    app = app or create_app(config, library or Library(config, offline))
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    until = time.monotonic() + 20
    while not server.started and time.monotonic() < until:
        time.sleep(0.01)
    try:
        with httpx.Client(base_url=url, timeout=30, trust_env=False) as client:
            yield Site(url, client)
    finally:
        server.should_exit = True
        thread.join(10)
        listener.close()


def problem(answer: httpx.Response, status: int) -> str:
    """Return the detail of a problem document, which the answer must be."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    data = answer.json()
    assert data["status"] == status
    assert data["title"]
    detail = data["detail"]
    assert isinstance(detail, str)
    assert detail.isprintable()
    return detail
