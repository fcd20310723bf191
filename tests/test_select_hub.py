"""Choosing among files of the Hub: a real server on this machine that answers as told."""

import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from cli_tools import Result, run
from http_server import Page, Server, hub, serve

from tokcast.predictor import catalogue
from tokcast.predictor.gguf_split import split_names
from tokcast.predictor.gguf_write import write_gguf
from tokcast.predictor.header import Header
from tokcast.predictor.sources.session import is_private
from tokcast.predictor.sources.settings import Settings, from_environ

HOST = ("--host", "RTX 4090")
REPO = "owner/repo"
INFO = f"/api/models/{REPO}/revision/main?blobs=true"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serve() as told:
        for name in ("HF_TOKEN", "HF_HOME", "HF_HUB_OFFLINE", "LLAMA_CACHE", "OLLAMA_MODELS"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HF_ENDPOINT", told.url)
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        monkeypatch.setenv("TOKCAST_CACHE", str(tmp_path / "cache"))
        yield told


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """No test waits for a server that asks for patience: the seconds are written down."""
    seconds: list[float] = []

    def settings(environ: Mapping[str, str], offline: bool | None) -> Settings:
        return replace(from_environ(environ, offline), sleep=seconds.append)

    monkeypatch.setattr("tokcast.cli.select.from_environ", settings)
    return seconds


def _file(folder: Path, header: Header) -> bytes:
    path = folder / "written.gguf"
    write_gguf(path, header.metadata, header.tensors, sparse_data=False)
    return path.read_bytes()


def _quants(folder: Path, *file_types: str, **keys: str) -> dict[str, bytes]:
    found = {}
    for name in file_types:
        header = catalogue.header("qwen3-0.6b", name)
        metadata = {**header.metadata, **{k.replace("__", "."): v for k, v in keys.items()}}
        found[f"Qwen3-0.6B-{name}.gguf"] = _file(folder, replace(header, metadata=metadata))
    return found


def _select(*args: str) -> tuple[Result, dict[str, object]]:
    result = run("select", *args, *HOST, "-o", "json")
    return result, json.loads(result.out) if result.out else {}


def _addresses(data: dict[str, object]) -> list[str]:
    candidates = data["candidates"]
    assert isinstance(candidates, list)
    return sorted(c["address"] for c in candidates)


def _unread(data: dict[str, object]) -> dict[str, str]:
    unread = data["unread"]
    assert isinstance(unread, list)
    return {u["address"]: u["why"] for u in unread}


def test_every_quant_of_a_repository_with_its_real_header(server: Server, tmp_path: Path) -> None:
    files = _quants(tmp_path, "Q8_0", "Q4_K_M", "BF16")
    hub(server, REPO, {"README.md": b"", "mmproj-F16.gguf": b"?", **files})
    result, data = _select(REPO)
    assert result.code == 0
    assert _addresses(data) == [
        f"hf:{REPO}/Qwen3-0.6B-{name}.gguf" for name in ("BF16", "Q4_K_M", "Q8_0")
    ]
    assert data["command"] == f"llama-server -hf {REPO}:Q8_0 -ngl 99 -c 4096"
    # One request for the list and one for each header: none is as long as the first range.
    assert len(server.requests) == 4
    expected = catalogue.header("qwen3-0.6b", "Q8_0")
    pick = data["pick"]
    assert isinstance(pick, dict)
    assert pick["n_bytes"] == sum(t.n_bytes for t in expected.tensors)


def test_a_file_that_its_quant_does_not_tell_is_named(server: Server, tmp_path: Path) -> None:
    (body,) = _quants(tmp_path, "Q8_0").values()
    hub(server, REPO, {"plain.gguf": body})
    _, data = _select(REPO)
    assert data["command"] == f"llama-server -hf {REPO} -hff plain.gguf -ngl 99 -c 4096"
    hub(server, REPO, {"a-Q8_0.gguf": body, "b-it-Q8_0.gguf": body})
    _, data = _select(REPO)
    assert "-hff " in str(data["command"])


def test_headers_fetched_before_need_no_request(server: Server, tmp_path: Path) -> None:
    hub(server, REPO, _quants(tmp_path, "Q8_0", "Q4_K_M"))
    _select(REPO)
    server.forget()
    _, data = _select(REPO)
    assert server.paths() == [INFO]
    assert len(_addresses(data)) == 2


def test_broken_off_half_way_the_rest_is_fetched_next_time(server: Server, tmp_path: Path) -> None:
    hub(server, REPO, _quants(tmp_path, "Q8_0", "Q4_K_M"))
    page = server.pages[f"/{REPO}/resolve/main/Qwen3-0.6B-Q4_K_M.gguf"]
    page.statuses = [500] * 3
    _, data = _select(REPO)
    assert list(_unread(data)) == [f"hf:{REPO}/Qwen3-0.6B-Q4_K_M.gguf"]
    server.forget()
    _, data = _select(REPO)
    assert _unread(data) == {}
    assert len(server.requests) == 2


def test_offline_caches_are_used_and_it_says_so(server: Server, tmp_path: Path) -> None:
    hub(server, REPO, _quants(tmp_path, "Q8_0"))
    _select(REPO)
    server.forget()
    result = run("select", REPO, *HOST, "--offline")
    assert server.requests == []
    assert result.code == 0
    assert "offline; read as fetched earlier" in result.out
    result = run("select", "owner/other", *HOST, "--offline")
    assert result.code == 2
    assert "never fetched before, and offline; go online once" in result.err


def test_parts_of_a_split_model_are_one(server: Server, tmp_path: Path) -> None:
    whole = catalogue.header("qwen3-0.6b", "Q8_0")
    names = split_names("Qwen3-0.6B-Q8_0-00001-of-00003.gguf")
    assert names is not None
    files = {}
    for i, name in enumerate(names):
        facts = {"split.no": i, "split.count": 3, "split.tensors.count": len(whole.tensors)}
        metadata = {**whole.metadata, **facts} if i == 0 else facts
        part = replace(whole, metadata=metadata, tensors=whole.tensors[i::3])
        files[name] = _file(tmp_path, part)
    hub(server, REPO, files)
    _, data = _select(REPO)
    assert _addresses(data) == [f"hf:{REPO}/{names[0]}"]
    pick = data["pick"]
    assert isinstance(pick, dict)
    assert (pick["n_bytes"], pick["quant"]) == (sum(t.n_bytes for t in whole.tensors), "Q8_0")


def test_a_listing_in_pages(server: Server, tmp_path: Path) -> None:
    files = _quants(tmp_path, "Q8_0", "Q4_K_M", "BF16")
    hub(server, REPO, files)
    server.pages[INFO] = Page(json.dumps({"id": REPO, "tags": ["license:mit"]}).encode())
    tree = f"/api/models/{REPO}/tree/main?recursive=true"
    for i, (name, body) in enumerate(files.items()):
        oid = hashlib.sha256(body).hexdigest()
        entries = [
            {"type": "directory", "path": "sub"},
            {"type": "file", "path": name, "size": len(body), "lfs": {"oid": oid}},
        ]
        page = Page(json.dumps(entries).encode(), ranges=False)
        if i + 1 < len(files):
            page.headers["Link"] = f'<{server.url}{tree}&cursor={i + 1}>; rel="next"'
        server.pages[tree + (f"&cursor={i}" if i else "")] = page
    _, data = _select(REPO, "--license", "MIT")
    assert len(_addresses(data)) == 3
    assert data["n_feasible"] == 3
    server.forget()
    _, data = _select(REPO, "--offline")
    assert len(_addresses(data)) == 3


@pytest.mark.parametrize(
    "elsewhere",
    [
        "http://127.0.0.1:9/api",
        "http://169.254.169.254/latest",
        "file:///etc/passwd",
        "http://a@b/",
    ],
)
def test_a_next_page_elsewhere_is_not_followed(
    server: Server, tmp_path: Path, elsewhere: str
) -> None:
    hub(server, REPO, _quants(tmp_path, "Q8_0"))
    server.pages[INFO] = Page(b"{}")
    tree = f"/api/models/{REPO}/tree/main?recursive=true"
    entries = [{"type": "file", "path": "Qwen3-0.6B-Q8_0.gguf"}]
    link = {"Link": f'<{elsewhere}>; rel="next"'}
    server.pages[tree] = Page(json.dumps(entries).encode(), headers=link)
    _, data = _select(REPO)
    assert len(_addresses(data)) == 1
    warnings = data["warnings"]
    assert isinstance(warnings, list)
    assert any("the next page is on another server, so it was not read" in w for w in warnings)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://huggingface.co/x", False),
        ("https://8.8.8.8/x", False),
        ("https://[2606:4700::1111]/", False),
        ("http://127.0.0.1/x", True),
        ("http://10.1.2.3:80/x", True),
        ("http://169.254.169.254/latest/meta-data", True),
        ("http://[::1]/", True),
        ("http://[fe80::1%25eth0]/", True),
        ("http://localhost:8000/", True),
        ("http://2130706433/", True),
        ("http://0x7f.1/", True),
        ("http://router.lan/", True),
        ("http://metadata.google.internal/", True),
        ("http://intranet/", True),
    ],
)
def test_private_addresses(url: str, expected: bool) -> None:
    assert is_private(url) == expected


def test_the_token_goes_to_the_hub_alone(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    files = _quants(tmp_path, "Q8_0", "Q4_K_M")
    hub(server, REPO, files)
    with serve() as cdn:
        for name, body in files.items():
            cdn.pages[f"/blob/{name}"] = Page(body)
            path = f"/{REPO}/resolve/main/{name}"
            server.pages[path] = Page(location=f"{cdn.url}/blob/{name}")
        _, data = _select(REPO)
        assert len(_addresses(data)) == 2
        assert len(cdn.requests) == 2
        assert all("authorization" not in r.headers for r in cdn.requests)
    assert all(r.headers["authorization"] == "Bearer hf_secret" for r in server.requests)


@pytest.mark.parametrize(("status", "word"), [(401, "no access (401)"), (403, "gated (403)")])
def test_a_gated_repository_does_not_stop_the_others(
    server: Server, tmp_path: Path, status: int, word: str
) -> None:
    hub(server, REPO, _quants(tmp_path, "Q8_0"))
    server.pages["/api/models/owner/gated/revision/main?blobs=true"] = Page(
        statuses=[status] * 9, headers={"X-Error-Code": "GatedRepo"} if status == 403 else {}
    )
    result, data = _select(REPO, "owner/gated")
    assert result.code == 0
    assert len(_addresses(data)) == 1
    (why,) = _unread(data).values()
    assert word in why
    alone = run("select", "owner/gated", *HOST)
    assert alone.code == 2
    assert word in alone.err


def test_too_many_requests_are_waited_for(
    server: Server, tmp_path: Path, waits: list[float]
) -> None:
    hub(server, REPO, _quants(tmp_path, "Q8_0"))
    page = server.pages[f"/{REPO}/resolve/main/Qwen3-0.6B-Q8_0.gguf"]
    page.statuses, page.headers = [429, 429], {"Retry-After": "3"}
    _, data = _select(REPO)
    assert len(_addresses(data)) == 1
    assert waits == [3.0, 3.0]


def test_a_dying_connection_goes_on_where_it_stopped(server: Server, tmp_path: Path) -> None:
    hub(server, REPO, _quants(tmp_path, "Q8_0"))
    page = server.pages[f"/{REPO}/resolve/main/Qwen3-0.6B-Q8_0.gguf"]
    page.breaks, page.piece = [5000, 5000], 1000
    _, data = _select(REPO)
    assert len(_addresses(data)) == 1
    assert _unread(data) == {}


def test_a_slow_server_slows_its_own_file_only(server: Server, tmp_path: Path) -> None:
    types = tuple(name for name in catalogue.file_types() if name.startswith(("Q", "IQ4")))[:14]
    hub(server, REPO, _quants(tmp_path, *types))
    for name in types:
        page = server.pages[f"/{REPO}/resolve/main/Qwen3-0.6B-{name}.gguf"]
        page.seconds_a_piece = 0.3
    started = time.perf_counter()
    _, data = _select(REPO)
    assert len(_addresses(data)) == len(types)
    # One after the other they would take 4.2 s.
    assert time.perf_counter() - started < 3


def test_what_is_no_model_is_told_beside_the_others(server: Server, tmp_path: Path) -> None:
    files = _quants(tmp_path, "Q8_0")
    hub(server, REPO, {**files, "page-Q4_K_M.gguf": b"<!doctype html>" * 9, "e-Q2_K.gguf": b""})
    result, data = _select(REPO)
    assert result.code == 0
    assert len(_addresses(data)) == 1
    why = _unread(data)
    assert "expected a GGUF file, found an HTML or XML page" in why[f"hf:{REPO}/page-Q4_K_M.gguf"]
    assert "empty file" in why[f"hf:{REPO}/e-Q2_K.gguf"]


def test_a_repository_of_a_thousand_files(server: Server, tmp_path: Path) -> None:
    (body,) = _quants(tmp_path, "Q8_0").values()
    others = {f"notes/{i}.txt": b"" for i in range(970)}
    hub(server, REPO, {**others, **{f"m{i}-Q8_0.gguf": body for i in range(30)}})
    _, data = _select(REPO)
    assert len(_addresses(data)) == 30
    assert len(server.requests) == 31


def test_names_that_leave_the_repository_are_left_out(server: Server, tmp_path: Path) -> None:
    files = _quants(tmp_path, "Q8_0")
    hub(server, REPO, files)
    facts = json.loads(server.pages[INFO].body)
    for name in ("../../etc/passwd", "/etc/passwd", "a\x1b[31m-Q4_0.gguf", "..\\x.gguf"):
        facts["siblings"].append({"rfilename": name})
    server.pages[INFO] = Page(json.dumps(facts).encode())
    _, data = _select(REPO)
    assert _addresses(data) == [f"hf:{REPO}/Qwen3-0.6B-Q8_0.gguf"]
    assert all("passwd" not in path for path in server.paths())


def test_control_characters_of_a_header_are_escaped(server: Server, tmp_path: Path) -> None:
    hub(server, REPO, _quants(tmp_path, "Q8_0", general__name="\x1b[2Jevil\x07"))
    for form in ("table", "json", "csv", "md", "jsonl"):
        result = run("select", REPO, *HOST, "-o", form)
        assert result.code == 0
        assert "\x1b" not in result.out
        assert "\x07" not in result.out
        assert form == "md" or "evil" in result.out


def test_a_search_with_its_limit(server: Server, tmp_path: Path) -> None:
    hub(server, REPO, _quants(tmp_path, "Q8_0"))
    hub(server, "owner/second", _quants(tmp_path, "Q4_K_M"))
    names = [REPO, "../../x", "owner/second", "owner/third"]
    query = "search=qwen3+gguf&sort=downloads&direction=-1&limit=2"
    server.pages[f"/api/models?{query}"] = Page(json.dumps([{"id": n} for n in names]).encode())
    _, data = _select("--search", "qwen3 gguf", "--limit", "2")
    assert len(_addresses(data)) == 2
    assert data["looked_at"] == ["2 repositories found for 'qwen3 gguf'"]


def test_an_empty_search_says_what_was_looked_at(server: Server) -> None:
    query = "search=nothing&sort=downloads&direction=-1&limit=20"
    server.pages[f"/api/models?{query}"] = Page(b"[]")
    result = run("select", "--search", "nothing", *HOST)
    assert result.code == 1
    assert result.out == (
        "Nothing to choose from.\n\nLooked at: 0 repositories found for 'nothing'.\n"
    )


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("../../etc/passwd", "no such file or folder"),
        ("file:///etc/passwd", "expected a path that exists, or hf:owner/repo"),
        ("owner/..", "expected owner/repo[:quant]"),
        ("hf:owner/repo/../../x.gguf", "expected a file of the repository"),
        ("a\x1b[31mb", "expected a path, URL, owner/repo[:quant]"),
    ],
)
def test_addresses_that_are_none(
    server: Server, address: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Somewhere from which the relative path leads nowhere.
    monkeypatch.chdir(tmp_path)
    result = run("select", address, *HOST)
    assert (result.code, result.out) == (2, "")
    assert expected in result.err
    assert result.err.count("\n") == 1
    assert server.requests == []


def _with_vocabulary(folder: Path, file_type: str, tokens: tuple[str, ...]) -> bytes:
    header = catalogue.header("qwen3-0.6b", file_type)
    listed = {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": (1,) * len(tokens)}
    return _file(folder, replace(header, metadata={**header.metadata, **listed}))


def test_a_vocabulary_is_fetched_once(server: Server, tmp_path: Path) -> None:
    tokens = tuple(f"token-{i}" for i in range(40_000))
    other = tuple(f"t0ken-{i}" for i in range(40_000))
    late = (*tokens[:-1], "a longer last one")
    files = {
        "m-Q8_0.gguf": _with_vocabulary(tmp_path, "Q8_0", tokens),
        "m-Q4_K_M.gguf": _with_vocabulary(tmp_path, "Q4_K_M", tokens),
        "m-Q6_K.gguf": _with_vocabulary(tmp_path, "Q6_K", other),
        # Alike where it is compared, and then not: it has to be read again.
        "m-Q2_K.gguf": _with_vocabulary(tmp_path, "Q2_K", late),
    }
    hub(server, REPO, files)
    _, data = _select(REPO)
    assert _unread(data) == {}
    candidates = data["candidates"]
    assert isinstance(candidates, list)
    for candidate in candidates:
        expected = catalogue.header("qwen3-0.6b", candidate["quant"])
        assert candidate["n_bytes"] == sum(t.n_bytes for t in expected.tensors)
    n_vocabulary = len(files["m-Q8_0.gguf"])
    assert n_vocabulary > 900_000
    by_file = {
        name: [r.headers["range"] for r in server.requests if r.path.endswith(name)]
        for name in files
    }
    read_whole = [name for name, ranges in by_file.items() if "bytes=0-1048575" in ranges]
    # Whichever came first, the one of another vocabulary is asked on, the unlike one again.
    assert len(read_whole) in (1, 2)
    server.forget()
    _, again = _select(REPO)
    assert server.paths() == [INFO]
    assert again["candidates"] == candidates
