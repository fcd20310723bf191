"""What users type, taken apart."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from source_tools import Place

from tokcast.predictor.errors import InputError
from tokcast.predictor.sources.address import (
    Address,
    CatalogueModel,
    HubModel,
    LocalModel,
    OllamaModel,
    UrlModel,
    parse,
)

MIRROR = "https://mirror.example/hf"


def _parse(text: str) -> Address:
    return parse(text, Place(Path("/nowhere"), MIRROR).settings)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("owner/repo", HubModel("owner/repo")),
        ("owner/repo:Q4_K_M", HubModel("owner/repo", quant="Q4_K_M")),
        ("owner/repo@v1.0", HubModel("owner/repo", "v1.0")),
        ("hf:owner/repo:UD-Q4_K_XL", HubModel("owner/repo", quant="UD-Q4_K_XL")),
        ("HF:owner/repo/a/b.gguf", HubModel("owner/repo", file="a/b.gguf")),
        ("hf:owner/repo@abc/b.gguf", HubModel("owner/repo", "abc", file="b.gguf")),
        ("hf.co/owner/repo:Q8_0", HubModel("owner/repo", quant="Q8_0")),
        ("ollama:llama3.2", OllamaModel(None, "library", "llama3.2", "latest")),
        ("ollama:qwen3:0.6b", OllamaModel(None, "library", "qwen3", "0.6b")),
        ("ollama:me/mine:x", OllamaModel(None, "me", "mine", "x")),
        ("ollama:hf.co/o/r:Q4_0", OllamaModel("hf.co", "o", "r", "Q4_0")),
        ("llama-3.1-8b@mlx-4bit", CatalogueModel("llama-3.1-8b", "mlx-4bit")),
        ("qwen3-8b", CatalogueModel("qwen3-8b", None)),
        ("https://a.b/m.gguf?x=1", UrlModel("https://a.b/m.gguf?x=1")),
        ("HTTP://a.b:80/m.gguf", UrlModel("HTTP://a.b:80/m.gguf")),
        (
            "https://huggingface.co/o/r/blob/main/a%20b/m.gguf?download=true",
            HubModel("o/r", file="a b/m.gguf", endpoint="https://huggingface.co"),
        ),
        (
            "https://hf.co/o/r/resolve/refs%2Fpr%2F1/m.gguf",
            HubModel("o/r", "refs/pr/1", file="m.gguf", endpoint="https://huggingface.co"),
        ),
        (
            "https://huggingface.co/o/r/tree/main",
            HubModel("o/r", endpoint="https://huggingface.co"),
        ),
        ("https://huggingface.co/o/r/", HubModel("o/r", endpoint="https://huggingface.co")),
        (f"{MIRROR}/o/r/blob/v1/m.gguf", HubModel("o/r", "v1", file="m.gguf", endpoint=MIRROR)),
        (
            "https://huggingface.co/datasets/o/r/blob/main/m.gguf",
            UrlModel("https://huggingface.co/datasets/o/r/resolve/main/m.gguf"),
        ),
        ("https://mirror.example/o/r", UrlModel("https://mirror.example/o/r")),
    ],
)
def test_forms(text: str, address: Address) -> None:
    assert _parse(text) == address
    assert _parse(f" {text}\n") == address


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected a path, URL, owner/repo"),
        ("a\x1b[2Jb", "expected a path, URL, owner/repo"),
        ("owner/", r"'owner/': expected owner/repo\[:quant\]"),
        ("/etc/no/such", "/etc/no/such: no such file or folder$"),
        ("./model", "model: no such file or folder$"),
        ("~/model.gguf", "/nowhere/home/model.gguf: no such file or folder$"),
        ("model.gguf", "model.gguf: no such file or folder$"),
        ("owner/repo/model.gguf", "no such file or folder; on the Hub it is hf:owner/repo/file"),
        ("C:\\models\\x", "no such file or folder"),
        ("a/b/c", "expected a path that exists, or hf:owner/repo"),
        ("hf:owner", "'owner': expected owner/repo"),
        ("hf:owner/re..po", "expected owner/repo"),
        ("hf:owner/repo:", "expected owner/repo"),
        ("hf:owner/repo@", "expected owner/repo"),
        ("hf:../repo", "expected owner/repo"),
        ("hf:owner/repo/../../x.gguf", "expected a file of the repository"),
        ("hf:owner/repo:Q4_0/x.gguf", "expected owner/repo"),
        ("ollama:", r"expected ollama:name\[:tag\]"),
        ("ollama:a/b/c/d", "expected ollama:name"),
        ("ollama:../x", "expected ollama:name"),
        ("ollama:x:..", "expected ollama:name"),
        ("ollama:ho/st/../x", "expected ollama:name"),
        ("x" * 5000 + ".gguf", "no such file or folder"),
    ],
)
def test_what_is_no_address(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as raised:
        _parse(text)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 1300


def test_a_path_that_exists_comes_before_other_readings(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for name in ("owner/repo", "a@Q4_K_M", "qwen3-8b"):
        path = place.put(name, b"")
        assert parse(str(path), place.settings) == LocalModel(path)
    assert parse("~/owner/repo", place.settings) == LocalModel(place.home / "owner/repo")


@settings(max_examples=200, deadline=None)
@given(st.one_of(st.text(), st.from_regex(r"(hf:|ollama:|https?://)?[\w./:@%-]{0,40}")))
def test_anything_is_an_address_or_one_line(text: str) -> None:
    try:
        address = _parse(text)
    except InputError as raised:
        error = str(raised)
    else:
        error = ""
        if isinstance(address, OllamaModel | HubModel) and "://" not in text:
            assert _parse(str(address)) == address
    assert error.isprintable()
