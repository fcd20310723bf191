"""Where the server goes when it fetches: checked by address, at every redirect."""

import ipaddress
import socket
from pathlib import Path

import pytest
from cli_tools import small
from http_server import Page, hub, serve

pytest.importorskip("fastapi", reason="the web page needs fastapi and uvicorn")

from tokcast.cli.web.config import Config
from tokcast.cli.web.library import Library
from tokcast.cli.web.network import Route, is_outside, origin_of
from tokcast.cli.web.problems import Refused
from tokcast.predictor.errors import InputError


@pytest.mark.parametrize(
    ("text", "outside"),
    [
        ("8.8.8.8", True),
        ("2606:4700:4700::1111", True),
        ("127.0.0.1", False),
        ("127.9.9.9", False),
        ("10.0.0.1", False),
        ("172.16.0.1", False),
        ("192.168.0.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("240.0.0.1", False),
        ("::1", False),
        ("::", False),
        ("fe80::1", False),
        ("fc00::1", False),
        ("ff02::1", False),
        ("::ffff:127.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("64:ff9b::7f00:1", False),
        ("64:ff9b::a00:1", False),
        ("2002:7f00:1::", False),
        ("2001:0:7f00:1::", False),
    ],
)
def test_what_is_outside(text: str, outside: bool) -> None:
    assert is_outside(ipaddress.ip_address(text)) is outside


@pytest.mark.parametrize("text", ["ftp://x", "https://", "https://u:p@x", "x", "https://x:y"])
def test_what_is_no_origin(text: str) -> None:
    with pytest.raises(InputError, match="expected a web address"):
        origin_of(text)


@pytest.mark.parametrize(
    "url",
    [
        "http://huggingface.co/x",
        "https://huggingface.co:8443/x",
        "https://huggingface.co.evil.example/x",
        "https://evilhuggingface.co/x",
        "https://127.0.0.1/x",
        "http://localhost/x",
    ],
)
def test_places_not_to_go(url: str) -> None:
    with pytest.raises(InputError, match="not a place that this server fetches from"):
        Route(()).address(url)


def test_a_mirror_that_resolves_to_this_machine_is_refused() -> None:
    with pytest.raises(InputError, match="no address of the public net"):
        Route(("http://localhost:9",)).address("http://localhost:9/x")


def test_one_bad_address_among_good_ones_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(0, 0, 0, "", (text, 443)) for text in ("8.8.8.8", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: found)
    with pytest.raises(InputError, match=r"leads to 10\.0\.0\.1"):
        Route(()).address("https://huggingface.co/x")


def library_at(url: str, cache: Path, *, anywhere: bool = True) -> Library:
    """A library whose only mirror is a test's server on loopback."""
    environ = {"HF_ENDPOINT": url, "HOME": str(cache), "TOKCAST_CACHE": str(cache)}
    route = Route((url,), (lambda ip: ip.is_loopback) if anywhere else is_outside)
    return Library(Config(mirrors=(url,)), environ, route)


def test_a_model_of_a_mirror_is_read(tmp_path: Path) -> None:
    body = small(tmp_path / "m.gguf").read_bytes()
    with serve() as server:
        hub(server, "owner/repo", {"m-Q4_K_M.gguf": body})
        spec = library_at(server.url, tmp_path).open("owner/repo")
        assert spec.name == "Small"
        host = server.url.removeprefix("http://")
        assert {r.headers["host"] for r in server.requests} == {host}


def test_the_same_is_refused_by_the_usual_rule(tmp_path: Path) -> None:
    with serve() as server:
        with pytest.raises(InputError, match="no address of the public net"):
            library_at(server.url, tmp_path, anywhere=False).open("owner/repo")
        assert server.requests == []


def test_a_redirect_is_judged_like_an_address(tmp_path: Path) -> None:
    body = small(tmp_path / "m.gguf").read_bytes()
    with serve() as inner, serve() as server:
        inner.pages["/secret.gguf"] = Page(body)
        hub(server, "owner/repo", {"m-Q4_K_M.gguf": body})
        path = "/owner/repo/resolve/main/m-Q4_K_M.gguf"
        server.pages[path] = Page(location=f"{inner.url}/secret.gguf")
        with pytest.raises(InputError, match="not a place that this server fetches from"):
            library_at(server.url, tmp_path).open("owner/repo")
        assert inner.requests == []


def test_a_name_is_resolved_once_and_the_connection_goes_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = small(tmp_path / "m.gguf").read_bytes()
    asked = []
    real = socket.getaddrinfo

    def rebinding(host: str, port: int, *args: object, **more: object) -> object:
        asked.append(host)
        return real("127.0.0.1" if host == "mirror.test" else host, port, *args, **more)  # type: ignore[arg-type]

    with serve() as server:
        hub(server, "owner/repo", {"m-Q4_K_M.gguf": body})
        port = server.url.rsplit(":", 1)[1]
        monkeypatch.setattr(socket, "getaddrinfo", rebinding)
        url = f"http://mirror.test:{port}"
        assert library_at(url, tmp_path).open("owner/repo").name == "Small"
        assert {r.headers["host"] for r in server.requests} == {f"mirror.test:{port}"}
        # The connection asks for an address, never for the name again.
        assert asked.count("mirror.test") == len(server.requests)


@pytest.mark.parametrize("address", ["https://other.example/m.gguf", "http://127.0.0.1:1/m.gguf"])
def test_other_addresses_are_refused_before_anything_is_asked(address: str) -> None:
    with pytest.raises(Refused, match="only the Hub and the mirrors"):
        Library(Config(), {"HOME": "/nonexistent"}).open(address)
