"""Repositories of the Hub: which file is meant, and what reading it costs."""

from pathlib import Path

import pytest
from http_server import Page, Server, hub, serve
from model_files import mlx_files, small_gguf, split_gguf
from source_tools import Place

from tokcast.predictor.errors import InputError
from tokcast.predictor.header import Header

LISTING = "/api/models/owner/repo/revision/main?blobs=true"


def _open(tmp_path: Path, server: Server, address: str) -> Header:
    return Place(tmp_path, server.url).open(address)


def _name(header: Header) -> object:
    return header.metadata["general.name"]


def _quants(*names: str) -> dict[str, bytes]:
    return {name: small_gguf(name.encode()) for name in names}


@pytest.mark.parametrize(
    ("address", "file"),
    [
        ("owner/repo", "m-Q4_K_M.gguf"),
        ("owner/repo:q8_0", "m-Q8_0.gguf"),
        ("hf:owner/repo:Q8_0", "m-Q8_0.gguf"),
        ("hf://owner/repo:F16", "m.f16.gguf"),
        ("hf:owner/repo/sub/other.gguf", "sub/other.gguf"),
        ("https://hf.co.example/x", ""),
    ],
)
def test_forms_of_an_address(tmp_path: Path, address: str, file: str) -> None:
    names = ("mmproj-Q4_K_M.gguf", "m-BF16.gguf", "m-Q4_K_M.gguf", "m-Q8_0.gguf", "m.f16.gguf")
    with serve() as server:
        hub(server, "owner/repo", {"README.md": b"", **_quants(*names, "sub/other.gguf")})
        address = address.replace("https://hf.co.example/x", f"{server.url}/owner/repo")
        header = _open(tmp_path, server, address)
    file = file or "m-Q4_K_M.gguf"
    assert _name(header) == file
    assert header.source == f"hf:owner/repo/{file}"
    assert header.warnings == ()


def test_a_page_of_the_hub_is_the_file_it_shows(tmp_path: Path) -> None:
    with serve() as server:
        hub(server, "owner/repo", _quants("m-Q8_0.gguf"), revision="v2")
        for kind in ("blob", "resolve"):
            url = f"{server.url}/owner/repo/{kind}/v2/m-Q8_0.gguf"
            header = _open(tmp_path, server, url)
            assert header.source == "hf:owner/repo@v2/m-Q8_0.gguf"
        assert _name(_open(tmp_path, server, f"{server.url}/owner/repo/tree/v2")) == "m-Q8_0.gguf"
        assert _name(_open(tmp_path, server, "owner/repo@v2")) == "m-Q8_0.gguf"


def test_without_a_default_quant_the_choice_is_said(tmp_path: Path) -> None:
    with serve() as server:
        hub(server, "owner/repo", _quants("m-Q2_K.gguf", "m-Q8_0.gguf"))
        header = _open(tmp_path, server, "owner/repo")
        assert _name(header) == "m-Q8_0.gguf"
        assert header.warnings == (
            "no Q4_K_M in hf:owner/repo, so this is m-Q8_0.gguf; "
            "add :quant for another of Q2_K, Q8_0",
        )


def test_a_quant_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    with serve() as server:
        hub(server, "owner/repo", _quants("m-Q2_K.gguf", "m.Q8_0.gguf", "UD/m-UD-IQ2_XXS.gguf"))
        with pytest.raises(InputError, match=r"it has Q2_K, Q8_0, UD-IQ2_XXS$"):
            _open(tmp_path, server, "owner/repo:Q3_K_S")


def test_a_split_model_in_a_folder_is_read_whole(tmp_path: Path) -> None:
    names = [f"Q4_K_M/m-Q4_K_M-0000{part}-of-00003.gguf" for part in (1, 2, 3)]
    with serve() as server:
        hub(server, "owner/repo", dict(zip(names, split_gguf(3), strict=True)))
        for address in ("owner/repo", "owner/repo:q4_k_m", f"hf:owner/repo/{names[1]}"):
            header = _open(tmp_path, server, address)
            assert header.n_parts == 3
            assert len(header.tensors) == 3
        server.forget()
        del server.pages[f"/owner/repo/resolve/main/{names[2]}"]
        hub(server, "owner/other", dict(zip(names[:2], split_gguf(3), strict=False)))
        with pytest.raises(InputError, match="expected GGUF files, or config"):
            _open(tmp_path, server, "owner/other")


def test_an_mlx_repository_is_read_by_the_headers_of_its_weights(tmp_path: Path) -> None:
    files = mlx_files()
    shards = [name for name in files if name.endswith(".safetensors")]
    for name in shards:
        files[name] += bytes(4 << 20)
    with serve() as server:
        hub(server, "owner/repo", files)
        header = _open(tmp_path, server, "owner/repo")
        assert (header.format, header.n_parts) == ("mlx", 2)
        assert {tensor.type for tensor in header.tensors} == {"MLX4G32", "F16"}
        assert server.n_sent < 400_000
        paths = {f"/owner/repo/resolve/main/{name}" for name in ("config.json", *shards)}
        assert set(server.paths()) == {LISTING, *paths}
        server.forget()
        assert _open(tmp_path, server, "owner/repo") == header
        assert server.paths() == [LISTING]
        files.pop(shards[0])
        hub(server, "owner/repo", files)
        with pytest.raises(InputError, match=f"{shards[0]} missing"):
            _open(tmp_path, server, "owner/repo")


def test_a_repository_without_a_model_says_what_is_in_it(tmp_path: Path) -> None:
    with serve() as server:
        hub(server, "owner/repo", {"README.md": b"", "pytorch_model.bin": b""})
        with pytest.raises(InputError, match=r"it has README.md, pytorch_model.bin$"):
            _open(tmp_path, server, "owner/repo")
        with pytest.raises(InputError, match=r"a \.gguf file; for MLX give hf:owner/repo"):
            _open(tmp_path, server, "hf:owner/repo/pytorch_model.bin")
        hub(server, "owner/repo", {"config.json": b"[]", "model.safetensors": b""})
        with pytest.raises(InputError, match=r"config.json: expected a JSON object, found '\[\]'"):
            _open(tmp_path, server, "owner/repo")
        with pytest.raises(InputError, match="hf:owner/repo:Q4_0: expected GGUF files"):
            _open(tmp_path, server, "owner/repo:Q4_0")


@pytest.mark.parametrize(
    "names",
    [
        ["../../etc/passwd-Q4_K_M.gguf"],
        ["/etc/Q4_K_M.gguf"],
        ["a\\..\\Q4_K_M.gguf", "a//Q4_K_M.gguf", "a/./Q4_K_M.gguf"],
        ["Q4_K_M\x1b[2J.gguf", "Q4_K_M\n.gguf", "x" * 2000 + "Q4_K_M.gguf"],
    ],
)
def test_names_that_no_file_has_are_passed_over(tmp_path: Path, names: list[str]) -> None:
    with serve() as server:
        hub(server, "owner/repo", dict.fromkeys(names, b"x"))
        with pytest.raises(InputError, match="it has nothing") as raised:
            _open(tmp_path, server, "owner/repo")
        assert str(raised.value).isprintable()
        assert server.paths() == [LISTING]


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>\x1b[2J</html>", b"[]", b'{"siblings": 3}', b'{"siblings": [3]}', b"[" * 100_000],
)
def test_a_listing_that_is_none_is_refused(tmp_path: Path, body: bytes) -> None:
    with serve({LISTING: Page(body, ranges=False)}) as server:
        with pytest.raises(InputError, match="expected a list of files, found") as raised:
            _open(tmp_path, server, "owner/repo")
        assert str(raised.value).isprintable()


def test_a_listing_without_end_is_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokcast.predictor.sources.listing.MAX_LISTING_BYTES", 1 << 20)
    page = Page(bytes(32 << 20), ranges=False)
    words = "expected at most 1048576 bytes"
    with serve({LISTING: page}) as server, pytest.raises(InputError, match=words):
        _open(tmp_path, server, "owner/repo")


def test_a_listing_is_fetched_again_when_the_connection_breaks(tmp_path: Path) -> None:
    with serve() as server:
        hub(server, "owner/repo", _quants("m-Q8_0.gguf"))
        server.pages[LISTING].breaks = [5, 5]
        assert _name(_open(tmp_path, server, "owner/repo")) == "m-Q8_0.gguf"


@pytest.mark.parametrize(
    ("status", "code", "token", "words"),
    [
        (
            401,
            "GatedRepo",
            "",
            r"gated \(401\); accept its terms at .*/repo and set HF_TOKEN",
        ),
        (403, "GatedRepo", "hf_x", r"gated \(403\); accept .* as the user whose HF_TOKEN this is"),
        (401, "RepoNotFound", "", r"no such repository, or no access \(401\).* set HF_TOKEN"),
        (401, "", "hf_x", r"no access \(401\).*whether HF_TOKEN may read it"),
        (404, "EntryNotFound", "", r"no such file in the repository \(404\)"),
        (404, "RevisionNotFound", "", r"no such revision \(404\)"),
        (404, "RepoNotFound", "", r"no such repository \(404\)"),
    ],
)
def test_refusals_of_the_hub(
    tmp_path: Path, status: int, code: str, token: str, words: str
) -> None:
    page = Page(statuses=[status], headers={"X-Error-Code": code})
    path = "/owner/repo/resolve/main/m.gguf"
    with serve({path: page}) as server, pytest.raises(InputError, match=words):
        Place(tmp_path, server.url, {"HF_TOKEN": token}).open("hf:owner/repo/m.gguf")


def test_with_a_cached_header_the_listing_is_the_only_request(tmp_path: Path) -> None:
    with serve() as server:
        hub(server, "owner/repo", _quants("m-Q4_K_M.gguf"))
        first = _open(tmp_path, server, "owner/repo")
        assert len(server.requests) == 2
        server.forget()
        assert _open(tmp_path, server, "owner/repo") == first
        assert server.paths() == [LISTING]
        assert server.n_sent == 0
        hub(server, "owner/repo", {"m-Q4_K_M.gguf": small_gguf(b"a later upload")})
        assert _name(_open(tmp_path, server, "owner/repo")) == "a later upload"


def test_offline_what_was_fetched_before_is_used_and_said(tmp_path: Path) -> None:
    place = Place(tmp_path)
    with serve() as server:
        place.endpoint = server.url
        hub(server, "owner/repo", _quants("m-Q4_K_M.gguf"))
        first = place.open("owner/repo")
        server.forget()
        again = place.open("owner/repo", offline=True)
        assert again.tensors == first.tensors
        doubt = "read as fetched earlier, not checked for changes"
        assert again.warnings == (f"offline; {doubt}",)
        with pytest.raises(InputError, match="never fetched before, and offline"):
            place.open("owner/other", offline=True)
        assert server.requests == []
    (warning,) = place.open("owner/repo").warnings
    assert "cannot connect" in warning
    assert warning.endswith(doubt)


def test_offline_comes_from_the_environment_too(tmp_path: Path) -> None:
    for value, is_offline in (("1", True), ("true", True), ("0", False), ("", False)):
        place = Place(tmp_path, environ={"HF_HUB_OFFLINE": value})
        assert place.settings.offline is is_offline


def test_a_portal_s_page_does_not_replace_the_listing_kept(tmp_path: Path) -> None:
    with serve() as server:
        hub(server, "owner/repo", _quants("m-Q8_0.gguf"))
        place = Place(tmp_path, server.url)
        assert _name(place.open("owner/repo")) == "m-Q8_0.gguf"
        server.pages[LISTING] = Page(b"<html>log in</html>")
        with pytest.raises(InputError, match="expected a list of files, found '<html>log in"):
            place.open("owner/repo")
        assert _name(place.open("owner/repo", offline=True)) == "m-Q8_0.gguf"
