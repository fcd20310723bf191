"""Choosing among models on this machine: folders, lists, caches of other programs."""

import json
from pathlib import Path

import pytest
from cli_tools import refused, run, save
from model_files import mlx_files

from tokcast.predictor import catalogue

HOST = ("--host", "RTX 4090")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    names = ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "LLAMA_CACHE", "OLLAMA_MODELS")
    for name in (*names, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return folder


def _put(path: Path, name: str = "qwen3-0.6b", file_type: str = "Q8_0") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return save(path, catalogue.header(name, file_type))


def _data(*args: str | Path) -> dict[str, object]:
    return dict(json.loads(run("select", *args, *HOST, "-o", "json").out))


def _field(data: dict[str, object], key: str) -> list[object]:
    candidates = data["candidates"]
    assert isinstance(candidates, list)
    return sorted(c[key] for c in candidates)


def test_a_folder_with_several_models(tmp_path: Path) -> None:
    folder = tmp_path / "models"
    one = _put(folder / "a" / "Qwen3-0.6B-Q8_0.gguf")
    two = _put(folder / "b" / "Llama-3.2-1B-UD-Q4_K_XL.gguf", "llama-3.2-1b", "Q4_K_M")
    _put(folder / "b" / "mmproj-F16.gguf")
    for name, body in mlx_files().items():
        path = folder / "mlx" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(body)
    data = _data(folder)
    assert _field(data, "address") == [str(one), str(two)]
    assert _field(data, "quant") == ["Q8_0", "UD-Q4_K_XL"]
    # The larger one, as neither's type loses much on the models it was published of.
    assert data["command"] == f"llama-server -m {two} -ngl 99 -c 4096"
    apple = json.loads(run("select", folder, "--host", "M2 Ultra 76-core", "-o", "json").out)
    assert _field(apple, "format") == ["gguf", "gguf", "mlx"]


def test_a_list_of_names(tmp_path: Path) -> None:
    listed = tmp_path / "list.txt"
    model = _put(tmp_path / "m-Q8_0.gguf")
    listed.write_text(f"# mine\nqwen3-8b@Q4_K_M\n\n{model}  # a file\nqwen3-4b\n")
    data = _data("--list", listed)
    addresses = _field(data, "address")
    assert len(addresses) == 2 + 33
    assert str(model) in addresses
    assert "qwen3-8b@Q4_K_M" in addresses


def test_a_list_that_cannot_be_read(tmp_path: Path) -> None:
    assert "No such file" in refused("select", "--list", tmp_path / "none.txt", *HOST)
    empty = tmp_path / "empty.txt"
    empty.write_text("# nothing\n")
    assert "expected names, one a line, found none" in refused("select", "--list", empty, *HOST)


def test_one_bad_name_of_a_list_does_not_stop_the_others(tmp_path: Path) -> None:
    data = _data("qwen3-8b@Q4_K_M", "qwen9-8b")
    assert _field(data, "address") == ["qwen3-8b@Q4_K_M"]
    (unread,) = data["unread"] if isinstance(data["unread"], list) else []
    assert unread["address"] == "qwen9-8b"
    assert "no model 'qwen9-8b' in the catalogue" in unread["why"]


def _ollama(home: Path, name: str, tag: str, model: Path) -> None:
    root = home / ".ollama" / "models"
    digest = "sha256:" + "ab" * 32
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": digest}
    manifest = root / "manifests" / "registry.ollama.ai" / "library" / name / tag
    manifest.parent.mkdir(parents=True)
    manifest.write_text(json.dumps({"layers": [layer]}))
    blob = root / "blobs" / digest.replace(":", "-")
    blob.parent.mkdir()
    blob.write_bytes(model.read_bytes())


def test_models_of_other_programs(home: Path, tmp_path: Path) -> None:
    lm_studio = _put(home / ".lmstudio/models/owner/repo/Qwen3-4B-Q4_K_M.gguf", "qwen3-4b")
    snapshot = home / ".cache/huggingface/hub/models--o--r/snapshots/abc"
    cached = _put(snapshot / "Qwen3-1.7B-Q6_K.gguf", "qwen3-1.7b", "Q6_K")
    _ollama(home, "qwen3", "0.6b-q8_0", _put(tmp_path / "m.gguf"))
    data = _data("--local")
    expected = sorted([str(lm_studio), str(cached), "ollama:qwen3:0.6b-q8_0"])
    assert _field(data, "address") == expected
    looked_at = data["looked_at"]
    assert isinstance(looked_at, list)
    assert str(home / ".lmstudio" / "models") in looked_at
    why = run("select", "--local", *HOST, "--why", "ollama")
    assert "1 of 1 files called 'ollama' meet the wishes" in why.out


def test_no_local_models_says_which_folders(home: Path) -> None:
    result = run("select", "--local", *HOST)
    assert result.code == 1
    assert "Nothing to choose from." in result.out
    assert "/.ollama/models" in result.out.replace("\n  ", "")


def test_an_ollama_winner_is_run_by_ollama(home: Path, tmp_path: Path) -> None:
    _ollama(home, "qwen3", "0.6b-q8_0", _put(tmp_path / "m.gguf"))
    assert _data("--local")["command"] == "ollama run qwen3:0.6b-q8_0"


def test_an_mlx_winner_is_run_by_mlx(tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    folder.mkdir()
    for name, body in mlx_files().items():
        (folder / name).write_bytes(body)
    result = run("select", folder, "--host", "M2 Ultra 76-core", "-o", "json")
    assert json.loads(result.out)["command"] == f"mlx_lm.server --model {folder}"
