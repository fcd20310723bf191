"""Real GGUF files for tests: `make oracles` fetches them, their facts are committed."""

import csv
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER = Path(os.environ.get("TOKCAST_ORACLES") or ROOT / "build" / "oracles")
GEMMA = "gemma3-270m-q4_k_m.gguf"

with (ROOT / "tests" / "data" / "gguf" / "files.csv").open(newline="") as _file:
    FACTS = {row["file"]: row for row in csv.DictReader(_file)}
VOCABULARIES = tuple(name for name in FACTS if name.startswith("ggml-vocab-"))


def real(name: str) -> Path:
    """Return the path of a real file, or skip the test; fail it where none may be missing."""
    path = FOLDER / name
    if path.exists():
        return path
    if os.environ.get("TOKCAST_REQUIRE_ORACLES") == "1":
        pytest.fail(f"{path} is missing: run make oracles")
    pytest.skip(f"{name} is not in {FOLDER}: run make oracles")
