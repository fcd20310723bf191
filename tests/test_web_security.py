"""What the server refuses, tried on a real port of this machine."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli_tools import small

pytest.importorskip("fastapi", reason="the web page needs fastapi and uvicorn")

from web_tools import LLAMA, Site, problem, site

from tokcast.cli.web.config import Config
from tokcast.cli.web.guard import host_name, is_trusted
from tokcast.cli.web.library import Library


@pytest.fixture(scope="module")
def server() -> Iterator[Site]:
    with site() as found:
        yield found


@pytest.fixture(scope="module")
def public() -> Iterator[Site]:
    with site(Config(public=True)) as found:
        yield found


@pytest.mark.parametrize(
    ("value", "trusted"),
    [
        ("127.0.0.1:8047", True),
        ("localhost", True),
        ("LOCALHOST:80", True),
        ("[::1]:8047", True),
        ("192.168.1.7:8047", True),
        ("mine.example:8047", True),
        ("rebound.example", False),
        ("localhost.rebound.example", False),
        ("127.0.0.1.rebound.example", False),
        ("user@127.0.0.1", False),
        ("127.0.0.1/x", False),
        ("", False),
        ("[::1", False),
        ("127.0.0.1:port", False),
        ("a\x7fb", False),
    ],
)
def test_only_its_own_names(value: str, trusted: bool) -> None:
    assert is_trusted(value, {"mine.example"}) is trusted


def test_the_port_is_no_part_of_the_name() -> None:
    assert host_name("[::1]:8047") == "::1"


@pytest.mark.parametrize("path", ["/", "/static/main.js", "/api/v1/status", "/openapi.json"])
def test_a_rebound_name_gets_nothing(server: Site, path: str) -> None:
    answer = server.client.get(path, headers={"host": "rebound.example"})
    assert "does not go by that name" in problem(answer, 421)


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://other.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_pages_of_other_sites_get_nothing(server: Site, headers: dict[str, str]) -> None:
    answer = server.post("predict", LLAMA, headers=headers)
    assert "other sites" in problem(answer, 403)


def test_its_own_page_gets_an_answer_but_no_cors(server: Site) -> None:
    own = {"origin": server.url, "sec-fetch-site": "same-origin"}
    answer = server.post("predict", LLAMA, headers=own)
    assert answer.status_code == 200
    assert not any(name.startswith("access-control") for name in answer.headers)
    asked = {"origin": "https://other.example", "access-control-request-method": "POST"}
    preflight = server.client.options("/api/v1/predict", headers=asked)
    assert preflight.status_code == 403


@pytest.mark.parametrize("path", ["/", "/docs", "/static/app.css", "/api/v1/status", "/nope"])
def test_every_answer_carries_the_policy(server: Site, path: str) -> None:
    headers = server.client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers or "uvicorn" in headers["server"]


def test_a_body_is_bounded_as_it_is_said_and_as_it_comes() -> None:
    with site(Config(max_json_bytes=2000, max_upload_bytes=5000)) as found:
        said = found.ask("POST", "inspect/upload", content=bytes(6000))
        assert "at most 5000 bytes" in problem(said, 413)
        pieces = (bytes(1000) for _ in range(6))
        sent = found.ask("POST", "inspect/upload", content=pieces)
        assert "at most 5000 bytes" in problem(sent, 413)
        json = {"content-type": "application/json"}
        long = found.ask("POST", "predict", content=b" " * 2001, headers=json)
        assert "at most 2000 bytes" in problem(long, 413)


def test_so_many_at_once_and_no_more() -> None:
    with site(Config(n_at_once=0)) as found:
        assert "at once" in problem(found.get("status"), 503)


def test_a_body_that_never_comes_ends_the_wait() -> None:
    with site(Config(seconds=0.3)) as found:
        host, port = found.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as slow:
            slow.sendall(
                b"POST /api/v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
            )
            answer = slow.recv(4096)
        assert answer.startswith(b"HTTP/1.1 503")
        assert found.get("status").status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "predict", {"model": "hf:owner/repo", "host": "RTX 4090"}),
        ("POST", "predict", {"model": "owner/repo:Q4_K_M", "host": "RTX 4090"}),
        ("POST", "inspect", {"model": "https://huggingface.co/owner/repo"}),
        ("POST", "inspect", {"model": "file:one.gguf"}),
        ("POST", "predict", {"model": "llama-3.1-8b@Q4_K_M"}),
        ("POST", "analyze", {"type": "F32"}),
        ("POST", "analyze", {"type": "F32", "measure": True, "host": "RTX 4090"}),
        ("GET", "hosts/this", None),
        ("GET", "nvml/status", None),
        ("GET", "nvml/stream", None),
        ("GET", "meters/status", None),
        ("GET", "meters/stream", None),
    ],
)
def test_public_reads_fetches_and_tells_nothing(
    public: Site, method: str, path: str, body: object
) -> None:
    problem(public.ask(method, path, json=body), 403)


def test_public_still_answers_from_the_catalogue(public: Site) -> None:
    assert public.post("predict", LLAMA).status_code == 200
    assert public.get("status").json()["public"] is True
    assert public.get("models").json()["local"] == []


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    small(tmp_path / "secret.gguf", name="Secret")
    small(folder / "one.gguf")
    (folder / "out.gguf").symlink_to(tmp_path / "secret.gguf")
    return folder


@pytest.mark.parametrize(
    "address",
    [
        "file:../secret.gguf",
        "file:out.gguf",
        "file:/etc/passwd",
        "file:nope.gguf",
        "file:",
        "file:one.gguf\x00",
        "file:~/x",
    ],
)
def test_paths_stay_below_the_folders(models: Path, address: str) -> None:
    if address == "file:/etc/passwd":
        address = f"file:{models.parent / 'secret.gguf'}"
    with site(Config(folders=(models,))) as found:
        answer = found.post("inspect", {"model": address})
        assert "no GGUF file in a folder" in problem(answer, 403)


def test_a_part_that_leads_outside_is_refused(models: Path) -> None:
    parts = [models / f"m-0000{i}-of-00002.gguf" for i in (1, 2)]
    small(parts[0])
    parts[1].symlink_to(models.parent / "secret.gguf")
    with site(Config(folders=(models,))) as found:
        answer = found.post("inspect", {"model": f"file:{parts[0].name}"})
        assert "no GGUF file in a folder" in problem(answer, 403)


@pytest.mark.parametrize(
    "address", ["./one.gguf", "/etc/hostname", "~/one.gguf", "one.gguf", "..", "C:\\one.gguf"]
)
def test_a_plain_path_is_never_read(
    models: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.chdir(models)
    with site(Config(folders=(models,))) as found:
        assert found.post("inspect", {"model": address}).status_code in (400, 403)


def test_a_relay_of_messages_is_refused(server: Site) -> None:
    for address in ("http://169.254.169.254/latest", "https://127.0.0.1/x.gguf", "ollama:llama3"):
        answer = server.post("inspect", {"model": address})
        assert answer.status_code in (400, 403)
        assert answer.headers["content-type"] == "application/problem+json"


def test_the_token_stays_home_where_others_can_ask() -> None:
    environ = {"HF_TOKEN": "hf_secret", "HOME": os.devnull}
    own = Library(Config(), environ)
    shared = Library(Config(uses_token=False), environ)
    assert own._settings.token() == "hf_secret"
    assert shared._settings.token() is None


def test_memory_of_dropped_files_is_bounded(tmp_path: Path) -> None:
    from tokcast.cli.web import library

    kept = Library(Config(), {})
    data = small(tmp_path / "one.gguf").read_bytes()
    for i in range(library.MOST_KEPT + 50):
        kept.add(data + bytes(i), f"{i}.gguf")
    assert len(kept._kept) == library.MOST_KEPT


def test_a_defect_tells_nothing_of_itself(server: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    from tokcast.cli.web import routes_hosts

    def broken() -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(routes_hosts, "released", broken)
    detail = problem(server.get("status"), 500)
    assert "secret" not in detail
