"""`tokcast plot` writes what it is asked for, or says why not."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from cli_tools import good, refused

LLAMA = "llama-3.1-8b@Q4_K_M"


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("roofline", [LLAMA, "--host", "RTX 4090", "-d", "4096"]),
        ("depth", [LLAMA, "qwen3-8b@Q4_K_M", "--host", "RTX 4090", "--host", "RTX 3090"]),
        ("depth", [LLAMA, "--host", "RTX 4090", "--phase", "prefill", "--theme", "dark"]),
        ("quants", ["llama-3.1-8b", "--host", "RTX 3060 12GB"]),
        ("hosts", [LLAMA, "-d", "8192", "--width", "900"]),
        ("hosts", [LLAMA, "--host", "RTX 4090", "--host", "RTX 3090", "--phase", "prefill"]),
    ],
)
def test_svg(kind: str, words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "out.svg"
    shown = good("plot", kind, *words, "--offline", "-o", path)
    assert shown == f"{path}: {path.stat().st_size:,} bytes\n"
    root = ET.fromstring(path.read_text(encoding="utf-8"))
    assert root.tag.endswith("}svg")
    if "--width" in words:
        assert root.get("width") == "900"
    if "dark" in words:
        assert "#161a21" in path.read_text(encoding="utf-8")


def test_png(tmp_path: Path) -> None:
    pytest.importorskip("resvg_py", reason="PNG needs resvg-py")
    path = tmp_path / "out.png"
    good("plot", "roofline", LLAMA, "--host", "RTX 4090", "--offline", "-o", path)
    assert path.read_bytes().startswith(b"\x89PNG\r\n")


def test_png_without_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "resvg_py", None)
    words = ("plot", "depth", LLAMA, "--host", "RTX 4090", "-o", tmp_path / "out.png")
    assert "pip install 'tokcast[plots]'" in refused(*words)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["roofline", LLAMA, "-o", "x.pdf"], "ends in .svg or .png"),
        (["roofline", LLAMA, "--host", "RTX 4090", "-o", "/none/x.svg"], "No such file"),
        (["roofline"], "no model given"),
        (["depth", *[LLAMA] * 5, "--host", "RTX 4090"], "5 pairs of model and host"),
        (["depth", LLAMA, "--host", "RTX 4090", "--phase", "x"], "expected decode or prefill"),
        (["depth", LLAMA, "--host", "RTX 4090", "--theme", "x"], "expected one of light, dark"),
        (["depth", LLAMA, "--host", "RTX 4090", "--width", "9"], "at least 280"),
        (["depth", LLAMA, "--host", "RTX 4090", "--width", "9999"], "280 to 4000"),
        (["quants", "a", "b"], "one model of the catalogue"),
        (["hosts", "a", "b"], "expected one model"),
        (["hosts", LLAMA, *["--host", "RTX 4090"] * 41], "at most 40"),
        (["quants", "nope", "--host", "RTX 4090"], "no model 'nope'"),
        (["roofline", LLAMA, "--host", "RTX 9999"], "is not a known chip"),
    ],
)
def test_bad_input(
    words: list[str], told: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert told in refused("plot", *words)
    assert list(tmp_path.iterdir()) == []
