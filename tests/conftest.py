"""What tests see of the machine they run on: none of its figures, and a home of their own."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _own_data_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("TOKCAST_DATA", str(tmp_path_factory.getbasetemp() / "no-data"))


@pytest.fixture
def empty_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Give a home in which nothing lies, and nothing of the Hub's settings."""
    for name in ("HOME", "USERPROFILE", "TOKCAST_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    for name in ("HF_HOME", "HF_TOKEN", "HF_ENDPOINT", "HF_HUB_OFFLINE", "LLAMA_CACHE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the screen that outputs are laid out for."""
    monkeypatch.setenv("COLUMNS", "80")
