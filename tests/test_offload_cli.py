"""`--part offload` of fit and evaluate: what is refused before anything is fitted."""

import pytest
from cli_tools import good
from typer.testing import CliRunner

from tokcast.cli.app import application


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("evaluate", "--part", "cards"), "--part 'cards': expected models or offload"),
        (("fit", "--part", ""), "--part '': expected models or offload"),
        (
            ("evaluate", "--part", "offload", "--on", "rows.csv"),
            "--part offload: takes no --on, --save or --cluster; leave them out",
        ),
        (("fit", "--part", "offload", "-o", "xml"), "xml"),
    ],
)
def test_bad_input_is_told_in_one_line(words: tuple[str, ...], told: str) -> None:
    result = CliRunner().invoke(application(), list(words))
    assert result.exit_code != 0
    assert told in f"{result.output}{result.exception}"


def test_sequences_share_the_context_that_a_model_was_trained_for() -> None:
    args = ("predict", "qwen3-8b@Q4_K_M", "--host", "RTX 4090", "-d", "4k")
    assert "trained for a context" not in good(*args, "-np", "16", "-c", "64k")
    text = good(*args, "-np", "1", "-c", "64k")
    assert "trained for a context of 40960, but 65536 asked for" in text
