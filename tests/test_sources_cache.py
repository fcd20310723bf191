"""Headers that were fetched before: when they are used, and when they are not."""

import os
from pathlib import Path

import pytest
from http_server import Page, serve
from model_files import large_vocabulary, small_gguf
from source_tools import Place

from tokcast.predictor.errors import InputError
from tokcast.predictor.sources import cache
from tokcast.predictor.sources.cache import Entry, HeaderCache


def test_an_unchanged_file_costs_one_request_and_no_bytes(tmp_path: Path) -> None:
    body = large_vocabulary(100_000)[0] + bytes(200 * 64 * 64 * 4)
    place = Place(tmp_path)
    with serve({"/m.gguf": Page(body, etag='"1"')}) as server:
        first = place.open(f"{server.url}/m.gguf")
        server.forget()
        assert place.open(f"{server.url}/m.gguf") == first
        assert [request.headers["if-none-match"] for request in server.requests] == ['"1"']
        assert server.n_sent == 0


def test_the_hub_is_asked_only_up_to_its_redirect(tmp_path: Path) -> None:
    place = Place(tmp_path)
    redirect = Page(location="/store", headers={"X-Linked-ETag": '"sha"'})
    with serve({"/a": redirect, "/store": Page(small_gguf(), etag='"other"')}) as server:
        first = place.open(f"{server.url}/a")
        server.forget()
        assert place.open(f"{server.url}/a") == first
        assert server.paths() == ["/a"]


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    place = Place(tmp_path)
    changed = Page(small_gguf(b"new"), etag='"2"')
    with serve({"/m.gguf": Page(small_gguf(b"old"), etag='"1"', later=changed)}) as server:
        names = [place.open(f"{server.url}/m.gguf").metadata["general.name"] for _ in range(3)]
    assert names == ["old", "new", "new"]
    assert len(place.cached()) == 1


def test_without_an_etag_a_file_is_read_every_time_but_serves_offline(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with serve({"/m.gguf": Page(small_gguf())}) as server:
        url = f"{server.url}/m.gguf"
        first = place.open(url)
        assert place.open(url) == first
        assert server.ranges() == ["bytes=0-1048575"] * 2
        again = place.open(url, offline=True)
        assert len(server.requests) == 2
    assert (again.tensors, len(again.warnings)) == (first.tensors, 1)
    with pytest.raises(InputError, match="gguf: never fetched before, and offline"):
        place.open(f"{server.url}/other.gguf", offline=True)


def test_a_server_that_fails_is_replaced_by_the_cache(tmp_path: Path) -> None:
    place = Place(tmp_path)
    page = Page(small_gguf(), etag='"1"')
    with serve({"/m.gguf": page}) as server:
        url = f"{server.url}/m.gguf"
        place.open(url)
        page.statuses = [500] * 3
        (warning,) = place.open(url).warnings
        assert warning.startswith(f"{url}: the server fails (500)")
        page.statuses = [404]
        with pytest.raises(InputError, match="not found"):
            place.open(url)


@pytest.mark.parametrize("offline", [True, False])
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-1],
        lambda data: data + b"x",
        lambda data: data[:-5] + b"12345",
        lambda data: data.replace(b"n_bytes", b"n_bites"),
        lambda data: b"[" * 5000 + data,
        lambda data: b"\xff\xfe" + data,
        lambda data: b"3\n" + data,
    ],
)
def test_a_damaged_entry_is_dropped_without_a_word(
    tmp_path: Path, damage: object, offline: bool
) -> None:
    assert callable(damage)
    place = Place(tmp_path)
    with serve({"/m.gguf": Page(small_gguf(), etag='"1"')}) as server:
        url = f"{server.url}/m.gguf"
        first = place.open(url)
        (path,) = place.cached()
        path.write_bytes(damage(path.read_bytes()))
        if offline:
            with pytest.raises(InputError, match="never fetched before"):
                place.open(url, offline=True)
            assert place.cached() == []
        else:
            assert place.open(url) == first
            assert place.open(url) == first
            assert [r.headers.get("if-none-match") for r in server.requests] == [None, None, '"1"']


def test_an_entry_that_does_not_parse_is_fetched_again(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with serve({"/m.gguf": Page(small_gguf(), etag='"1"')}) as server:
        url = f"{server.url}/m.gguf"
        first = place.open(url)
        HeaderCache(tmp_path / "cache" / "headers").store(url, Entry(b"GGUF", "1", None))
        assert place.open(url) == first
        HeaderCache(tmp_path / "cache" / "headers").store(url, Entry(b"GGUF", "1", None))
        with pytest.raises(InputError, match="never fetched before"):
            place.open(url, offline=True)


def test_a_cache_that_cannot_be_written_does_no_harm(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (tmp_path / "cache").write_bytes(b"a file where the folder should be")
    with serve({"/m.gguf": Page(small_gguf(), etag='"1"')}) as server:
        assert place.open(f"{server.url}/m.gguf").tensors


def test_the_least_recently_used_entries_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MAX_CACHE_BYTES", 3500)
    kept = HeaderCache(tmp_path)
    for age, name in ((50, "a"), (40, "b"), (30, "c")):
        kept.store(name, Entry(name.encode() * 1000, "", None))
        (path,) = (p for p in tmp_path.iterdir() if p.stat().st_mtime > 1e9)
        os.utime(path, (1e9 - age, 1e9 - age))
    assert kept.load("a") == Entry(b"a" * 1000, "", None)
    kept.store("d", Entry(b"d" * 1000, "e", 7))
    assert [name for name in "abcd" if kept.load(name)] == ["a", "c", "d"]
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 3500


def test_a_very_large_entry_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MAX_ENTRY_BYTES", 1000)
    HeaderCache(tmp_path).store("a", Entry(bytes(1001), "", None))
    assert HeaderCache(tmp_path).load("a") is None


def test_the_platforms_folder_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import platformdirs

    monkeypatch.setattr(platformdirs, "user_cache_path", lambda *a, **k: tmp_path / "platform")
    place = Place(tmp_path, environ={"TOKCAST_CACHE": ""})
    with serve({"/m.gguf": Page(small_gguf(), etag='"1"')}) as server:
        place.open(f"{server.url}/m.gguf")
    assert len(list((tmp_path / "platform" / "headers").iterdir())) == 1
