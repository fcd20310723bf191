"""Reading over HTTP: ranges, broken connections, changes on the way, what errors say."""

import json
import socket
import time
from email.utils import formatdate
from pathlib import Path

import pytest
from gguf_bytes import Build
from http_server import Page, serve
from model_files import large_vocabulary, small_gguf, split_gguf
from source_tools import Place

from tokcast.predictor.errors import InputError
from tokcast.predictor.gguf import read_gguf_file
from tokcast.predictor.header import Header
from tokcast.predictor.sources import remote

MIB = 1 << 20


def _truth(tmp_path: Path, body: bytes) -> Header:
    path = tmp_path / "truth.gguf"
    path.write_bytes(body)
    return read_gguf_file(path)


@pytest.fixture(scope="module")
def large() -> tuple[bytes, int]:
    """A header of 262,144 tokens, 6.5 MB, and as much data again."""
    header, n_header = large_vocabulary(262_144)
    assert 6_000_000 < n_header < 7_000_000
    return header + bytes(200 * 64 * 64 * 4), n_header


@pytest.mark.parametrize("n_merges", [0, 514_906])
def test_a_large_vocabulary_costs_its_header_and_at_most_1_mib(
    tmp_path: Path, n_merges: int, large: tuple[bytes, int]
) -> None:
    body, n_header = large
    if n_merges:
        body, n_header = large_vocabulary(262_144, n_merges)
        body += bytes(200 * 64 * 64 * 4)
    with serve({"/m.gguf": Page(body)}) as server:
        header = Place(tmp_path).open(f"{server.url}/m.gguf")
    truth = _truth(tmp_path, body)
    assert (header.tensors, header.metadata) == (truth.tensors, truth.metadata)
    assert header.n_header_bytes == n_header
    assert len(server.requests) <= 4
    assert server.n_sent <= n_header + MIB


def test_a_small_header_is_one_request_of_at_most_1_mib(tmp_path: Path) -> None:
    body = small_gguf(n_data=4 * MIB)
    with serve({"/m.gguf": Page(body)}) as server:
        header = Place(tmp_path).open(f"{server.url}/m.gguf")
    assert header.source == f"{server.url}/m.gguf"
    assert server.ranges() == [f"bytes=0-{MIB - 1}"]
    assert server.n_sent <= MIB


def test_only_bytes_of_the_file_itself_are_asked_for(tmp_path: Path) -> None:
    with serve({"/m.gguf": Page(small_gguf())}) as server:
        Place(tmp_path).open(f"{server.url}/m.gguf")
    assert server.requests[0].headers["accept-encoding"] == "identity"


def test_a_server_without_ranges_is_read_as_a_stream_and_left(
    tmp_path: Path, large: tuple[bytes, int]
) -> None:
    body = large[0] + bytes(32 * MIB)
    with serve({"/m.gguf": Page(body, ranges=False)}) as server:
        header = Place(tmp_path).open(f"{server.url}/m.gguf")
    assert header.n_header_bytes == large[1]
    assert len(server.requests) == 1
    # What a socket's buffers hold goes out before the server notices.
    assert server.n_sent < large[1] + 16 * MIB


@pytest.mark.parametrize("ranges", [True, False])
def test_a_broken_connection_goes_on_where_it_stopped(
    tmp_path: Path, large: tuple[bytes, int], ranges: bool
) -> None:
    page = Page(large[0], etag='"1"', ranges=ranges, breaks=[700_000, 0, 800_000])
    place = Place(tmp_path)
    with serve({"/m.gguf": page}) as server:
        header = place.open(f"{server.url}/m.gguf")
    assert header.tensors == _truth(tmp_path, large[0]).tensors
    starts = [int(str(asked).split("=")[1].split("-")[0]) for asked in server.ranges()]
    if ranges:
        assert starts[:3] == [0, 700_000, 700_000]
        assert place.waits == [0.5, 1.0]
    else:
        assert starts == [0, 700_000, 700_000, 800_000]
        assert place.waits == [0.5, 1.0, 2.0]
    if ranges:
        assert server.n_sent <= large[1] + MIB


def test_a_connection_that_breaks_over_and_over_is_given_up(tmp_path: Path) -> None:
    page = Page(small_gguf(), breaks=[10] * 20)
    place = Place(tmp_path)
    with serve({"/m.gguf": page}) as server, pytest.raises(InputError, match="connection broke"):
        place.open(f"{server.url}/m.gguf")
    assert len(server.requests) == 6
    assert sum(place.waits) < 20


def test_a_file_that_changes_while_it_is_read_is_read_again(
    tmp_path: Path, large: tuple[bytes, int]
) -> None:
    changed = Page(large[0].replace(b"ffn_gate", b"ffn_down"), etag='"2"')
    for etag in ('"1"', 'W/"1"', ""):
        with serve({"/m.gguf": Page(large[0], etag=etag, later=changed)}) as server:
            header = Place(tmp_path / etag.strip('W/"')).open(f"{server.url}/m.gguf")
        assert {tensor.name[-15:] for tensor in header.tensors} == {"ffn_down.weight"}


def test_a_file_that_never_stays_the_same_is_refused(
    tmp_path: Path, large: tuple[bytes, int]
) -> None:
    page = None
    for etag in range(9, -1, -1):
        page = Page(large[0], etag=f'"{etag}"', later=page)
    assert page is not None
    with serve({"/m.gguf": page}) as server, pytest.raises(InputError, match="changed while"):
        Place(tmp_path).open(f"{server.url}/m.gguf")
    assert len(server.requests) <= 4


@pytest.mark.parametrize("ranges", [True, False])
def test_a_header_longer_than_any_is_read_but_not_kept(
    tmp_path: Path,
    large: tuple[bytes, int],
    ranges: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote, "KEPT_BYTES", MIB)
    monkeypatch.setattr(remote, "LONG_STEP_BYTES", MIB)
    page = Page(large[0], etag='"1"', ranges=ranges, breaks=[0, 3 * MIB, 900_000])
    place = Place(tmp_path)
    with serve({"/m.gguf": page}) as server:
        header = place.open(f"{server.url}/m.gguf")
    assert header.tensors == _truth(tmp_path, large[0]).tensors
    assert place.cached() == []


def test_a_server_that_sends_nothing_ends_in_an_error(tmp_path: Path) -> None:
    page = Page(b"GGUF", headers={"Content-Range": "bytes 0-0/99"}, statuses=[206] * 9)
    with serve({"/m.gguf": page}) as server, pytest.raises(InputError, match="nothing sent"):
        Place(tmp_path).open(f"{server.url}/m.gguf")
    assert len(server.requests) <= 2


@pytest.mark.parametrize("given", ["bytes 5-9/99", "", "bytes */99", "bytes 0-٣/99"])
def test_bytes_that_were_not_asked_for_are_refused(tmp_path: Path, given: str) -> None:
    page = Page(headers={"Content-Range": given.encode().decode("latin-1")}, statuses=[206])
    with serve({"/m.gguf": page}) as server, pytest.raises(InputError, match="got other bytes"):
        Place(tmp_path).open(f"{server.url}/m.gguf")


def test_a_slow_server_ends_in_an_error(tmp_path: Path) -> None:
    page = Page(small_gguf(), seconds_a_piece=0.05, piece=4)
    place = Place(tmp_path, changes={"patience_seconds": 0.2})
    start = time.monotonic()
    with serve({"/m.gguf": page}) as server, pytest.raises(InputError, match="not read within"):
        place.open(f"{server.url}/m.gguf")
    assert time.monotonic() - start < 5


def test_all_parts_of_a_split_model_are_read(tmp_path: Path) -> None:
    names = [f"/m-0000{part}-of-00003.gguf" for part in (1, 2, 3)]
    pages = dict(zip(names, map(Page, split_gguf(3)), strict=True))
    with serve({f"{name}?x=1": page for name, page in pages.items()}) as server:
        header = Place(tmp_path).open(f"{server.url}{names[1]}?x=1")
        assert [tensor.name for tensor in header.tensors] == [f"blk.{i}.weight" for i in range(3)]
        assert (header.n_parts, len(server.requests)) == (3, 3)
        del server.pages[f"{names[2]}?x=1"]
        with pytest.raises(InputError, match=r"m-00003-of-00003.gguf: not found \(404\)"):
            Place(tmp_path).open(f"{server.url}{names[0]}?x=1")


def test_a_number_of_parts_that_nobody_has_is_refused(tmp_path: Path) -> None:
    with serve({"/m-00001-of-99999.gguf": Page(split_gguf(2)[0])}) as server:
        with pytest.raises(InputError, match="at most 2000 files"):
            Place(tmp_path).open(f"{server.url}/m-00001-of-99999.gguf")
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, r"wants a login \(401\).* download the file and give its path"),
        (403, r"wants a login \(403\)"),
        (404, r"not found \(404\); check the address"),
        (410, r"not found \(410\)"),
        (418, "answered 418"),
        (416, "found an empty file"),
        (500, r"server fails \(500\)"),
        (503, r"server fails \(503\)"),
    ],
)
def test_refusals_in_words(tmp_path: Path, status: int, words: str) -> None:
    place = Place(tmp_path)
    page = Page(statuses=[status] * 3)
    with serve({"/m.gguf": page}) as server, pytest.raises(InputError, match=words) as raised:
        place.open(f"{server.url}/m.gguf")
    assert "\n" not in str(raised.value)
    assert len(server.requests) == (3 if status >= 500 else 1)


def test_a_failing_server_is_asked_again(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with serve({"/m.gguf": Page(small_gguf(), statuses=[502, 503])}) as server:
        assert place.open(f"{server.url}/m.gguf").tensors
    assert place.waits == [0.5, 1.0]


def test_a_busy_server_is_given_the_time_it_asks_for(tmp_path: Path) -> None:
    page = Page(small_gguf(), statuses=[429, 429], headers={"Retry-After": "7"})
    place = Place(tmp_path)
    with serve({"/m.gguf": page}) as server:
        assert place.open(f"{server.url}/m.gguf").tensors
    assert place.waits == [7.0, 7.0]


@pytest.mark.parametrize("is_date", [False, True])
def test_a_server_that_is_busy_for_long_is_not_waited_for(tmp_path: Path, is_date: bool) -> None:
    after = formatdate(time.time() + 3600, usegmt=True) if is_date else "3600"
    page = Page(small_gguf(), statuses=[429], headers={"Retry-After": after})
    place = Place(tmp_path)
    words = r"too many requests \(429\); try again in 3[56]\d\d s"
    with serve({"/m.gguf": page}) as server, pytest.raises(InputError, match=words):
        place.open(f"{server.url}/m.gguf")
    assert place.waits == []


def test_a_busy_hub_names_the_token(tmp_path: Path) -> None:
    page = Page(statuses=[429] * 3, headers={"Retry-After": "nonsense"})
    listing = {"/api/models/o/r/revision/main?blobs=true": page}
    words = "try again later; with HF_TOKEN set"
    with serve(listing) as server, pytest.raises(InputError, match=words):
        Place(tmp_path, server.url).open("o/r")


def test_what_is_not_a_gguf_file_is_named(tmp_path: Path) -> None:
    page = Page(b"<!DOCTYPE html><title>Sign in</title>")
    with serve({"/m.gguf": page}) as server, pytest.raises(InputError, match="an HTML or XML page"):
        Place(tmp_path).open(f"{server.url}/m.gguf")


def test_a_file_that_ends_within_its_header_is_refused(tmp_path: Path) -> None:
    page = Page(small_gguf()[:120])
    with serve({"/m.gguf": page}) as server, pytest.raises(InputError, match="end of the file"):
        Place(tmp_path).open(f"{server.url}/m.gguf")


def test_nobody_listening_is_said(tmp_path: Path) -> None:
    with serve() as server:
        url = server.url
    with pytest.raises(InputError, match=r"127\.0\.0\.1:\d+: cannot connect .*give a path"):
        Place(tmp_path).open(f"{url}/m.gguf")


def test_a_name_without_address_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*args: object, **kwargs: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(InputError, match=r"models\.example: no address found.*give a path"):
        Place(tmp_path).open("https://models.example/m.gguf")


def test_a_server_without_tls_is_said(tmp_path: Path) -> None:
    with serve() as server:
        url = server.url.replace("http:", "https:")
        with pytest.raises(InputError, match=r"no trusted TLS connection .*SSL_CERT_FILE"):
            Place(tmp_path).open(f"{url}/m.gguf")


@pytest.mark.parametrize("url", ["http://", "http://[::1", "http://host:port/x", "https:///x.gguf"])
def test_addresses_that_are_none(tmp_path: Path, url: str) -> None:
    with pytest.raises(InputError, match="expected a URL"):
        Place(tmp_path).open(url)


@pytest.mark.parametrize("endpoint", ["mirror.example", "ftp://mirror.example", "http://"])
def test_a_mirror_that_is_no_address_is_said(tmp_path: Path, endpoint: str) -> None:
    with pytest.raises(
        InputError, match=r"HF_ENDPOINT '.*': expected an address that begins with https://"
    ):
        Place(tmp_path, endpoint).open("owner/repo")


def test_redirects_are_followed_within_reason(tmp_path: Path) -> None:
    pages = {"/a": Page(location="/b/c"), "/b/c": Page(location="d"), "/b/d": Page(small_gguf())}
    with serve(pages) as server:
        assert Place(tmp_path).open(f"{server.url}/a").tensors
        server.pages["/b/d"] = Page(location="/a")
        with pytest.raises(InputError, match="redirected more than 8 times"):
            Place(tmp_path / "again").open(f"{server.url}/a")
        server.pages["/a"] = Page(location="file:///etc/passwd")
        with pytest.raises(InputError, match="not an address that can be opened"):
            Place(tmp_path / "again").open(f"{server.url}/a")


def test_ranges_after_a_redirect_go_straight_to_its_target(
    tmp_path: Path, large: tuple[bytes, int]
) -> None:
    with serve({"/a": Page(location="/b"), "/b": Page(large[0])}) as server:
        Place(tmp_path).open(f"{server.url}/a")
    assert server.paths() == ["/a", "/b", "/b"]


def test_a_redirect_target_that_expires_is_asked_for_anew(
    tmp_path: Path, large: tuple[bytes, int]
) -> None:
    expired = Page(statuses=[403])
    pages = {
        "/a": Page(location="/b", later=Page(location="/c")),
        "/b": Page(large[0], etag='"1"', later=expired),
        "/c": Page(large[0], etag='"1"'),
    }
    with serve(pages) as server:
        header = Place(tmp_path).open(f"{server.url}/a")
    assert header.n_header_bytes == large[1]
    assert server.paths() == ["/a", "/b", "/b", "/a", "/c"]


def test_secrets_in_an_address_stay_out_of_words_and_files(tmp_path: Path) -> None:
    place = Place(tmp_path)
    body = small_gguf()
    with serve({"/m.gguf?signature=s3cret": Page(body, etag='"1"')}) as server:
        address = (
            server.url.replace("http://", "http://user:passw0rd@") + "/m.gguf?signature=s3cret"
        )
        header = place.open(address)
        server.pages.clear()
        with pytest.raises(InputError, match="not found") as raised:
            place.open(address)
    told = str(raised.value) + json.dumps([header.source, header.warnings])
    told += "".join(str(p) + p.read_bytes().decode("latin-1") for p in place.cached())
    assert "s3cret" not in told
    assert "passw0rd" not in told


def test_a_hostile_count_asks_for_no_more_than_its_share(tmp_path: Path) -> None:
    build = Build().string(b"general.architecture", b"llama")
    tokens = build.array(8, 1 << 60, build.text(b"x" * 8) * 200_000)
    body = build.entry(b"tokenizer.ggml.tokens", 9, tokens).bytes() + bytes(64 * MIB)
    with (
        serve({"/m.gguf": Page(body)}) as server,
        pytest.raises(InputError, match="end of the file"),
    ):
        Place(tmp_path).open(f"{server.url}/m.gguf")
    assert server.n_sent <= 4 * MIB
