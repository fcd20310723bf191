"""Who gets the Hub's token: the Hub, and nobody a redirect leads to."""

from pathlib import Path

import pytest
from http_server import Page, Server, hub, serve
from model_files import large_vocabulary, small_gguf
from source_tools import Place

from tokcast.predictor.errors import InputError

TOKEN = "hf_" + "x" * 34


def _tokens(server: Server) -> set[str | None]:
    return {request.headers.get("authorization") for request in server.requests}


def _place(tmp_path: Path, endpoint: str) -> Place:
    return Place(tmp_path, endpoint, {"HF_TOKEN": TOKEN})


def test_the_hub_gets_the_token_and_its_file_store_does_not(tmp_path: Path) -> None:
    body = large_vocabulary(100_000)[0] + bytes(200 * 64 * 64 * 4)
    with serve() as endpoint, serve({"/store?signed": Page(body)}) as store:
        hub(endpoint, "owner/repo", {"m-Q8_0.gguf": b""})
        redirect = Page(location=f"{store.url}/store?signed")
        endpoint.pages["/owner/repo/resolve/main/m-Q8_0.gguf"] = redirect
        assert _place(tmp_path, endpoint.url).open("owner/repo").tensors
    assert _tokens(endpoint) == {f"Bearer {TOKEN}"}
    assert len(store.requests) == 2
    assert _tokens(store) == {None}


def test_a_redirect_back_to_the_hub_gets_it_again(tmp_path: Path) -> None:
    with serve() as endpoint, serve() as other:
        path = "/owner/repo/resolve/main/m.gguf"
        endpoint.pages[path] = Page(location=f"{other.url}/x")
        other.pages["/x"] = Page(location=f"{endpoint.url}/y")
        endpoint.pages["/y"] = Page(small_gguf())
        assert _place(tmp_path, endpoint.url).open("hf:owner/repo/m.gguf").tensors
    assert _tokens(endpoint) == {f"Bearer {TOKEN}"}
    assert _tokens(other) == {None}


def test_other_servers_do_not_get_it(tmp_path: Path) -> None:
    with serve() as endpoint, serve({"/m.gguf": Page(small_gguf())}) as other:
        place = _place(tmp_path, endpoint.url)
        assert place.open(f"{other.url}/m.gguf").tensors
        other.pages["/v2/library/m/manifests/latest"] = Page(b"{}")
        place.changes["registry"] = other.url
        with pytest.raises(InputError, match="its manifest names none"):
            place.open("ollama:m")
    assert len(other.requests) == 2
    assert _tokens(other) == {None}


@pytest.mark.parametrize("hostile", ["http://127.0.0.1:{0}.example/", "http://{1}@127.0.0.1:{2}/"])
def test_an_address_that_looks_like_the_hubs_does_not_get_it(tmp_path: Path, hostile: str) -> None:
    with serve() as other:
        endpoint = "http://127.0.0.1:8"
        port = other.url.rpartition(":")[2]
        url = hostile.format(8, "127.0.0.1:8", port)
        place = _place(tmp_path, endpoint)
        with pytest.raises(InputError, match=r"m\.gguf|expected a URL"):
            place.open(f"{url}m.gguf")
    assert f"Bearer {TOKEN}" not in _tokens(other)


@pytest.mark.parametrize(
    ("environ", "files", "token"),
    [
        ({"HF_TOKEN": "a", "HUGGING_FACE_HUB_TOKEN": "b"}, {".cache/huggingface/token": "c"}, "a"),
        ({"HUGGING_FACE_HUB_TOKEN": "b"}, {".cache/huggingface/token": "c"}, "b"),
        ({}, {".cache/huggingface/token": "c\n"}, "c"),
        ({"HF_HOME": "~/hf"}, {"hf/token": "d", ".cache/huggingface/token": "c"}, "d"),
        ({"HF_TOKEN_PATH": "~/t"}, {"t": "e", ".cache/huggingface/token": "c"}, "e"),
        ({"XDG_CACHE_HOME": "~/x"}, {"x/huggingface/token": "f"}, "f"),
        ({"HF_TOKEN": "  "}, {}, None),
        ({}, {}, None),
    ],
)
def test_where_the_token_comes_from(
    tmp_path: Path, environ: dict[str, str], files: dict[str, str], token: str | None
) -> None:
    place = Place(tmp_path, environ=environ)
    for name, text in files.items():
        place.put(name, text.encode())
    assert place.settings.token() == token


@pytest.mark.parametrize("token", ["a\nX-Evil: 1", "hf_\x00", "hf_ü", "two words"])
def test_what_no_token_can_be_is_refused_and_not_shown(tmp_path: Path, token: str) -> None:
    with pytest.raises(InputError, match="HF_TOKEN: expected a token") as raised:
        Place(tmp_path, environ={"HF_TOKEN": token}).settings.token()
    assert token not in str(raised.value)
