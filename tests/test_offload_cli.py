"""`--part offload` of fit and evaluate: what is refused before anything is fitted."""

import pytest
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
