"""`tokcast inspect`: what is in a file."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from cli_tools import RTX, good, refused, run, save, small
from small_models import dense, header, outside, tensor

pytestmark = pytest.mark.usefixtures("empty_home", "eighty_columns")


def test_inspect_counts_by_hand(tmp_path: Path) -> None:
    data = json.loads(good("inspect", small(tmp_path / "a.gguf"), "-o", "json"))
    # Per small_models: 192 of attention, 384 of feed-forward, 80 each outside, three norms of 8.
    assert data["model"]["n_params"] == 192 + 384 + 2 * 80 + 3 * 8
    assert data["model"]["n_bytes"] == 2 * (192 + 384 + 2 * 80) + 4 * 3 * 8
    # One head of 4 for keys and 4 for values, two bytes each.
    assert data["model"]["kv_bytes_per_token"] == 16
    assert data["model"]["file_type"] == "F16"


def test_inspect_says_each_warning_once(tmp_path: Path) -> None:
    path = small(tmp_path / "a.gguf")
    data = json.loads(good("inspect", path, "-o", "json"))
    assert len(data["warnings"]) == len(set(data["warnings"])) == 1
    assert good("inspect", path).count("Note: ") == 1


def test_inspect_lists_tensors(tmp_path: Path) -> None:
    text = good("inspect", small(tmp_path / "a.gguf"), "--tensors")
    assert "\ntoken_embd.weight 8x10 F16 160\n" in re.sub(" +", " ", text)
    rows = good("inspect", small(tmp_path / "a.gguf"), "--tensors", "-o", "csv").splitlines()
    assert rows[0] == "name,shape,type,n_bytes"
    assert rows[1] == 'token_embd.weight,"[8, 10]",F16,160'


def test_inspect_names_kinds_of_layers() -> None:
    for model, words in (
        ("deepseek-v3", "61 layers (all latent)"),
        ("gemma-3-4b", "34 layers (29 sliding, 5 full)"),
        ("falcon-h1-7b", "44 layers (all full + state-space)"),
    ):
        assert words in good("inspect", f"{model}@Q4_K_M")


def test_a_file_without_weights(tmp_path: Path) -> None:
    path = save(tmp_path / "vocab.gguf", replace(dense(), tensors=()))
    assert refused("predict", path, *RTX) == (
        f"{path}: holds no weights, only a vocabulary; nothing to predict"
    )
    result = run("inspect", path)
    assert result.code == 1
    assert "holds no weights" in result.out


def test_a_table_of_tied_weights_is_read(tmp_path: Path) -> None:
    """One table both ways: it is the head, and is read for every token."""
    table, _, norm = outside()
    keys = {"block_count": 0, "embedding_length": 8, "context_length": 4096}
    path = save(
        tmp_path / "tied.gguf", header("llama", keys, table, norm, tensor("x.weight", 8, 8))
    )
    rows = [json.loads(r) for r in run("inspect", path, "-o", "jsonl").out.splitlines()]
    assert [r["read_fraction"] for r in rows if r["component"] == "head"] == [1.0]
