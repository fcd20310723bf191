"""Models that other programs left on this machine, read where they lie."""

import hashlib
import json
from pathlib import Path

import pytest
from http_server import hub, serve
from model_files import mlx_files, small_gguf, split_gguf
from source_tools import Place

from tokcast.predictor.errors import InputError
from tokcast.predictor.sources import model_folders, places

COMMIT = "0123456789abcdef0123456789abcdef01234567"
HUB = ".cache/huggingface/hub"


def _hub_cache(place: Place, root: str, files: dict[str, bytes], ref: str = "main") -> None:
    """Lay files out as huggingface_hub does: blobs, and a snapshot of links to them."""
    folder = f"{root}/models--owner--repo"
    place.put(f"{folder}/refs/{ref}", COMMIT.encode())
    for name, body in files.items():
        blob = place.put(f"{folder}/blobs/{hashlib.sha256(body).hexdigest()}", body)
        link = place.home / folder / "snapshots" / COMMIT / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(blob)


def _ollama(place: Place, root: str, name: str, body: bytes) -> None:
    """Lay a model out as Ollama does: a manifest by name, its layers by digest."""
    digest = hashlib.sha256(body).hexdigest()
    layers = [
        {"mediaType": "application/vnd.ollama.image.license", "digest": f"sha256:{'0' * 64}"},
        {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}"},
    ]
    place.put(f"{root}/manifests/{name}", json.dumps({"layers": layers}).encode())
    place.put(f"{root}/blobs/sha256-{digest}", body)


@pytest.mark.parametrize(
    ("environ", "root"),
    [
        ({}, HUB),
        ({"XDG_CACHE_HOME": "~/x"}, "x/huggingface/hub"),
        ({"HF_HOME": "~/hf"}, "hf/hub"),
        ({"HF_HUB_CACHE": "~/cache"}, "cache"),
        ({"HUGGINGFACE_HUB_CACHE": "~/cache"}, "cache"),
        ({"LLAMA_CACHE": "~/llama"}, "llama"),
    ],
)
def test_the_hubs_cache_is_found(tmp_path: Path, environ: dict[str, str], root: str) -> None:
    place = Place(tmp_path, environ=environ)
    files = {"m-Q8_0.gguf": small_gguf(b"q8"), "sub/m-Q4_K_M.gguf": small_gguf(b"q4")}
    _hub_cache(place, root, files)
    for address, name in (
        ("owner/repo", "q4"),
        ("owner/repo:q8_0", "q8"),
        ("hf:owner/repo/sub/m-Q4_K_M.gguf", "q4"),
        (f"hf:owner/repo@{COMMIT}/m-Q8_0.gguf", "q8"),
        ("https://huggingface.co/owner/repo/blob/main/m-Q8_0.gguf", "q8"),
    ):
        header = place.open(address)
        assert header.metadata["general.name"] == name
        assert header.source.startswith(str(place.home / root))


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({}, ".lmstudio/models/owner/repo/m-Q4_K_M.gguf"),
        ({}, ".cache/lm-studio/models/owner/repo/m-Q4_K_M.gguf"),
        ({"XDG_CACHE_HOME": "~/x"}, "x/llama.cpp/owner_repo_m-Q4_K_M.gguf"),
        ({"LLAMA_CACHE": "~/l"}, "l/owner_repo_m-Q4_K_M.gguf"),
    ],
)
def test_other_programs_files_are_found(
    tmp_path: Path, environ: dict[str, str], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places.sys, "platform", "linux")
    place = Place(tmp_path, environ=environ)
    path = place.put(name, small_gguf())
    assert place.open("owner/repo").source == str(path)
    assert place.open("hf:owner/repo/m-Q4_K_M.gguf").source == str(path)
    with pytest.raises(InputError, match="cannot connect"):
        place.open("owner/repo@v1")


@pytest.mark.parametrize(
    ("platform", "environ", "folder"),
    [
        ("linux", {}, ".cache/llama.cpp"),
        ("darwin", {}, "Library/Caches/llama.cpp"),
        ("win32", {"LOCALAPPDATA": "~/Local"}, "Local/llama.cpp"),
    ],
)
def test_each_platform_has_its_llama_cpp_cache(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    platform: str,
    environ: dict[str, str],
    folder: str,
) -> None:
    monkeypatch.setattr(places.sys, "platform", platform)
    place = Place(tmp_path, environ=environ)
    path = place.put(f"{folder}/owner_repo_m-Q4_K_M.gguf", small_gguf())
    assert place.open("owner/repo").source == str(path)


def test_parts_in_a_flat_cache_are_read_together(tmp_path: Path) -> None:
    place = Place(tmp_path, environ={"LLAMA_CACHE": "~/l"})
    for number, body in enumerate(split_gguf(2), 1):
        place.put(f"l/owner_repo_m-Q4_K_M-0000{number}-of-00002.gguf", body)
    assert place.open("owner/repo").n_parts == 2


def test_what_ollama_pulled_from_the_hub_is_found(tmp_path: Path) -> None:
    place = Place(tmp_path)
    _ollama(place, ".ollama/models", "hf.co/owner/repo/Q4_K_M", small_gguf(b"pulled"))
    assert place.open("owner/repo:q4_k_m").metadata["general.name"] == "pulled"
    assert place.open("ollama:hf.co/owner/repo:Q4_K_M").metadata["general.name"] == "pulled"


def test_an_mlx_model_in_the_hubs_cache_is_found(tmp_path: Path) -> None:
    place = Place(tmp_path)
    _hub_cache(place, HUB, mlx_files())
    header = place.open("owner/repo")
    assert (header.format, header.n_parts) == ("mlx", 2)
    (place.home / HUB / f"models--owner--repo/snapshots/{COMMIT}/config.json").unlink()
    with pytest.raises(InputError, match="cannot connect"):
        place.open("owner/repo")


def test_what_lies_here_incomplete_is_fetched(tmp_path: Path) -> None:
    place = Place(tmp_path)
    parts = split_gguf(2)
    names = [f"m-Q4_K_M-0000{number}-of-00002.gguf" for number in (1, 2)]
    _hub_cache(place, HUB, {names[0]: parts[0], "m-Q8_0.gguf": small_gguf()})
    blobs = place.home / HUB / "models--owner--repo" / "blobs"
    (blobs / hashlib.sha256(small_gguf()).hexdigest()).unlink()
    with serve() as server:
        place.endpoint = server.url
        hub(server, "owner/repo", dict(zip(names, parts, strict=True)))
        for address in ("owner/repo", f"hf:owner/repo/{names[0]}"):
            assert place.open(address).n_parts == 2
        assert len(server.requests) == 5


def test_another_quant_on_this_machine_serves_without_network_only(tmp_path: Path) -> None:
    place = Place(tmp_path)
    _hub_cache(place, HUB, {"m-Q5_K_M.gguf": small_gguf(b"here")})
    for offline in (True, False):
        header = place.open("owner/repo", offline=offline)
        assert header.metadata["general.name"] == "here"
    assert "cannot connect" in header.warnings[0]
    with serve() as server:
        place.endpoint = server.url
        hub(server, "owner/repo", {"m-Q4_K_M.gguf": small_gguf(b"there")})
        assert place.open("owner/repo").metadata["general.name"] == "there"
        del server.pages["/api/models/owner/repo/revision/main?blobs=true"]
        with pytest.raises(InputError, match="not found"):
            place.open("owner/repo")


@pytest.mark.parametrize("ref", ["../../secret", "..", "", "a/b", "\x00"])
def test_a_reference_leads_nowhere_else(tmp_path: Path, ref: str) -> None:
    place = Place(tmp_path)
    place.put("hub/models--owner--repo/refs/main", ref.encode())
    for folder in ("secret", "hub/models--owner--repo", "hub/models--owner--repo/snapshots"):
        place.put(f"{folder}/m-Q4_K_M.gguf", small_gguf())
    found = list(places.find("owner/repo", None, place.settings))
    assert not any(known.files for known in found)
    assert not list(places.find("owner/repo", "../x", place.settings))


@pytest.mark.parametrize(
    "manifest",
    [
        b"",
        b"[]",
        b"{}",
        b'{"layers": [{"mediaType": "application/vnd.ollama.image.model", "digest": "../x"}]}',
        b'{"layers": [{"mediaType": "application/vnd.ollama.image.tensor", "digest": "sha256:0"}]}',
        b'{"layers": [1]}',
        b"[" * 100_000,
    ],
)
def test_a_manifest_that_names_no_weights_is_none(manifest: bytes) -> None:
    assert places.model_digest(manifest) is None


def test_the_folders_that_are_searched_are_told(tmp_path: Path) -> None:
    folders = model_folders({"HOME": str(tmp_path), "LLAMA_CACHE": "/llama"})
    assert ("Hub cache", Path("/llama")) in folders
    assert ("Hub cache", tmp_path / HUB) in folders
    assert ("llama.cpp cache", Path("/llama")) in folders
    assert ("LM Studio models", tmp_path / ".lmstudio/models") in folders
    assert ("Ollama models", tmp_path / ".ollama/models") in folders


def test_a_model_of_ollama_is_read_from_its_folder(tmp_path: Path) -> None:
    for environ, root in (({}, ".ollama/models"), ({"OLLAMA_MODELS": "~/o"}, "o")):
        place = Place(tmp_path / root, environ=environ)
        _ollama(place, root, "registry.ollama.ai/library/tiny/latest", small_gguf(b"one"))
        _ollama(place, root, "registry.ollama.ai/me/tiny/q8", small_gguf(b"two"))
        assert place.open("ollama:tiny").metadata["general.name"] == "one"
        assert place.open("ollama:me/tiny:q8").metadata["general.name"] == "two"


def test_a_model_of_ollama_is_read_from_its_registry(tmp_path: Path) -> None:
    body = small_gguf(b"remote")
    source = Place(tmp_path / "source")
    _ollama(source, "o", "m", body)
    digest = hashlib.sha256(body).hexdigest()
    place = Place(tmp_path)
    with serve() as server:
        place.changes["registry"] = server.url
        hub(server, "x/y", {"blob": body})
        manifest = server.pages.pop("/x/y/resolve/main/blob")
        server.pages[f"/v2/library/tiny/blobs/sha256:{digest}"] = manifest
        manifest_page = (source.home / "o/manifests/m").read_bytes()
        server.pages["/v2/library/tiny/manifests/latest"] = type(manifest)(manifest_page)
        header = place.open("ollama:tiny")
        assert header.metadata["general.name"] == "remote"
        assert header.source == "ollama:tiny:latest"
        assert "manifest.v2+json" in server.requests[0].headers["accept"]
        server.forget()
        assert place.open("ollama:tiny") == header
        assert server.paths() == ["/v2/library/tiny/manifests/latest"]
        with pytest.raises(InputError, match=r"/v2/library/other/manifests/latest: not found"):
            place.open("ollama:other")
