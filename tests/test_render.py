"""Text, tables and numbers as they are printed."""

import io
import json
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokcast.cli.names import LONGEST, short_name
from tokcast.cli.progress import Progress
from tokcast.cli.render import (
    Report,
    Table,
    count,
    cut,
    layout,
    params,
    plain,
    rate,
    render,
    size,
    squeeze,
    wrap,
)
from tokcast.predictor.errors import InputError

pytestmark = pytest.mark.usefixtures("eighty_columns")


GIB = 1024.0**3


def test_not_a_number_never_gets_into_json() -> None:
    report = Report((), (), (), {"x": float("nan")}, [{"x": float("inf")}])
    for output in ("json", "jsonl", "csv"):
        with pytest.raises(ValueError, match="not JSON compliant"):
            render(report, output)


def test_formats_are_named_when_there_is_no_such() -> None:
    with pytest.raises(InputError, match=r"^-o yaml: unknown format; expected one of table, json"):
        render(Report((), (), (), {}, []), "yaml")


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("Llama 3.1 8B", "Llama 3.1 8B"),
        ("Qwen3 30B-A3B / Qwen3-Coder 30B-A3B", "Qwen3 30B-A3B"),
        ("Llama 3.1 / 3.3 70B", "Llama 3.1 70B"),
        ("DeepSeek-V3 / R1 / V3.1 671B", "DeepSeek-V3 671B"),
        ("GLM-4.5 / 4.6 / 4.7 355B-A32B", "GLM-4.5 355B-A32B"),
        ("Mistral Small 3/3.1/3.2 24B, Devstral Small", "Mistral Small 3/3.1/3.2 24B"),
        ("Qwen3 0.6B (GGUFs that store output.weight)", "Qwen3 0.6B"),
        ("Phi-3.5 mini / Phi-3 mini 128k", "Phi-3.5 mini"),
        ("a" * 50, "a" * (LONGEST - 1) + "…"),
        ("", ""),
    ],
)
def test_short_names(name: str, short: str) -> None:
    assert short_name(name) == short


def test_texts_of_numbers() -> None:
    assert [rate(x) for x in (1234567.0, 100, 99.94, 9.994, 0.5)] == [
        "1,234,567",
        "100",
        "99.9",
        "9.99",
        "0.50",
    ]
    assert [size(x) for x in (0, 512, 1024**2, GIB, 1.5 * GIB)] == [
        "0",
        "0.5 KiB",
        "1.0 MiB",
        "1.00 GiB",
        "1.50 GiB",
    ]
    assert [params(x) for x in (8.03e9, 268.1e6, 0)] == ["8.03 B", "268.10 M", "0.00 M"]
    assert [count(x) for x in (512, 1000, 1024, 16896, 131072, 16897)] == [
        "512",
        "1000",
        "1k",
        "16.5k",
        "128k",
        "16897",
    ]


def test_what_a_file_says_can_not_drive_the_terminal() -> None:
    evil = "\x1b]0;owned\x07\x9b31m\u202ename\nsecond"
    assert plain(evil) == r"\x1b]0;owned\x07\x9b31m\u202ename\nsecond"
    table = Table(("a|b", "b"), ((evil, "x|y"),))
    report = Report((evil,), (table,), (evil,), {"x": evil}, [{"x": evil}], command=evil)
    for output in ("table", "json", "jsonl", "csv", "md"):
        text = render(report, output)
        assert all(c.isprintable() or c == "\n" for c in text)
    assert json.loads(render(report, "json")) == {"x": evil}
    assert r"| x\|y |" in render(report, "md")
    tagged = Report((), (Table(("name",), (("<img src=x>[a](b)",),)),), (), {}, [], command="x")
    assert r"| \<img src=x>\[a](b) |" in render(tagged, "md")


def test_cutting() -> None:
    assert (cut("abcdef", 6), cut("abcdef", 5), cut("abc def", 5)) == ("abcdef", "abcd…", "abc…")
    assert (squeeze("abcdef", 6), squeeze("abcdefgh", 5)) == ("abcdefgh"[:6], "ab…gh")


def test_wrapped_lines_are_indented_further() -> None:
    assert wrap("  aa bb cc", columns=7) == ["  aa bb", "    cc"]
    assert wrap("", columns=7) == [""]
    assert wrap("longer-than-a-line", columns=7) == ["longer-than-a-line"]


def test_a_long_last_column_wraps() -> None:
    table = Table(("k", "found"), (("a", "word " * 30), ("b", "x")))
    printed = layout(table)
    assert max(map(len, printed)) <= 80
    assert printed[2].startswith("   word")
    assert printed[-1] == "b  x"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_one_line_on_a_terminal_and_wiped(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with Progress() as progress:
        progress("reading \x1b[31m" + "x" * 100)
    shown, wiped = screen.getvalue().split("\r\x1b[K")[1:]
    assert shown.startswith(r"reading \x1b[31mxxx")
    assert len(shown) == 79
    assert wiped == ""


@settings(deadline=None, max_examples=50)
@given(
    cells=st.lists(
        st.tuples(st.text(max_size=90), st.sampled_from(["1", "12,345"])), min_size=1, max_size=4
    ),
    columns=st.integers(1, 200),
)
def test_tables_fit_the_screen(cells: list[tuple[str, str]], columns: int) -> None:
    table = Table(("name", "n"), tuple(cells), frozenset({"n"}))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        printed = layout(table)
    assert max(map(len, printed)) <= min(max(columns, 60), 100)
    assert len(printed) == 1 + len(cells)


def test_several_columns_give_way_where_one_is_not_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    table = Table(("first", "second", "n"), (("a" * 40, "b" * 40, "1,234"),), frozenset({"n"}))
    assert max(map(len, layout(table))) <= 60
