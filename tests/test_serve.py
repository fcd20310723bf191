"""`tokcast serve` as a user starts it."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from cli_tools import refused

pytest.importorskip("fastapi", reason="the web page needs fastapi and uvicorn")

from tokcast.cli.serve import is_loopback


@contextmanager
def started(*words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Yield the address that a server of its own process says it is at."""
    code = "import sys; from tokcast.cli.app import main; sys.argv[0] = 'tokcast'; main()"
    command = [sys.executable, "-c", code, "serve", "--port", "0", *words]
    environ = {**os.environ, "HF_HUB_OFFLINE": "1"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://\S+/", line)
        assert found, line
        yield found[0], process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)


def test_it_is_on_loopback_and_serves_page_and_api() -> None:
    with started() as (url, process):
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", url)
        with httpx.Client(base_url=url, trust_env=False, timeout=20) as client:
            assert "<title>tokcast" in client.get("/").text
            assert client.get("/api/v1/status").json()["public"] is False
            assert client.get("/docs").status_code == 200
    assert process.returncode in (0, -signal.SIGINT, 130)


def test_another_address_says_what_is_exposed(tmp_path: Path) -> None:
    with started("--host", "0.0.0.0", "--folder", str(tmp_path)) as (_, process):
        assert process.stderr is not None
        said = process.stderr.readline()
    assert "everyone who reaches 0.0.0.0 can use it, without a password" in said
    assert str(tmp_path) in said


def test_public_says_what_it_keeps_back() -> None:
    with started("--host", "0.0.0.0", "--public") as (url, process):
        port = url.rstrip("/").rsplit(":", 1)[1]
        assert process.stderr is not None
        assert "no local file, and fetches nothing" in process.stderr.readline()
        local = f"http://127.0.0.1:{port}/api/v1/hosts/this"
        assert httpx.get(local, trust_env=False).status_code == 403


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--port", "99999"], "expected a number from 0 to 65535"),
        (["--port", "x"], "expected a number from 0 to 65535"),
        (["--folder", "/none/such"], "no such folder"),
        (["--mirror", "ftp://x"], "expected a web address"),
        (["--host", "256.1.1.1"], "cannot listen on 256.1.1.1"),
    ],
)
def test_bad_input(words: list[str], told: str) -> None:
    assert told in refused("serve", *words)


def test_a_port_that_is_taken() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        assert "expected a free port" in refused("serve", "--port", port)


@pytest.mark.parametrize(
    ("host", "own"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("::", False),
     ("10.0.0.5", False), ("mine.example", False)],
)  # fmt: skip
def test_what_only_this_machine_reaches(host: str, own: bool) -> None:
    assert is_loopback(host) is own
