"""What no test may see of the machine it runs on: figures and calibrations kept there."""

import pytest


@pytest.fixture(autouse=True)
def _own_data_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.setenv("TOKCAST_DATA", str(tmp_path_factory.getbasetemp() / "no-data"))
