"""Documentation is true: examples print what is shown, all is described, links lead somewhere."""

import importlib.util
import re
import shlex
import sys
from itertools import chain
from pathlib import Path
from types import ModuleType

import pytest
import typer
from oracles import ROOT, real

from tokcast.cli.app import application
from tokcast.hosts.registry import chips
from tokcast.measurements.cleaning import RULES
from tokcast.measurements.schema import COLUMNS, REQUIRED, packaged


def _refresh() -> ModuleType:
    spec = importlib.util.spec_from_file_location("refresh", ROOT / "docs" / "refresh.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["refresh"] = module
    spec.loader.exec_module(module)
    return module


refresh = _refresh()
PAGES: dict[str, str] = {p.name: p.read_text(encoding="utf-8") for p in refresh.pages()[1:]}
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = [
    pytest.param(example, id=f"{page.parent.name}/{page.name}: {example.command}")
    for page in refresh.pages()
    for example in refresh.examples(page.read_text(encoding="utf-8"))
]
DATA = PAGES["data.md"]
_ALL = "\n".join([README, *PAGES.values()])


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_prints_what_is_shown(example: refresh.Example) -> None:  # type: ignore[name-defined]
    for name in example.files:
        real(name)
    assert refresh.run(example.command) == example.output, "run python docs/refresh.py"


def test_tables_made_from_data_are_fresh() -> None:
    for page in refresh.pages():
        text = page.read_text(encoding="utf-8")
        assert refresh._MADE.sub(refresh._made, text) == text, "run python docs/refresh.py"
    assert all(f"| `{rule.name}` | {rule.reason} |" in DATA for rule in RULES)


def _commands() -> list[tuple[str, typer.core.TyperCommand]]:
    found, pending = [], [("", typer.main.get_command(application()))]
    while pending:
        path, command = pending.pop()
        inner = getattr(command, "commands", None)
        if inner is None:
            found.append((path.strip(), command))
        else:
            pending += [(f"{path} {name}", sub) for name, sub in inner.items()]
    return found


@pytest.mark.parametrize("path", [path for path, _ in _commands()])
def test_every_command_and_option_is_described(path: str) -> None:
    described = [page for page in PAGES.values() if f"tokcast {path}" in page]
    assert described
    for param in dict(_commands())[path].params:
        for spelled in param.opts if param.param_type_name == "option" else ():
            word = re.compile(rf"(?<![\w-]){re.escape(spelled)}(?![\w-])")
            assert any(map(word.search, described)), spelled


def test_options_that_pages_show_exist() -> None:
    """Blocks that are not run are held to the commands too."""
    commands = dict(_commands())
    blocks = re.findall(r"^```(?:bash|console|text)\n(.*?)^```", _ALL, re.MULTILINE | re.DOTALL)
    for line in re.findall(r"^(?:\$ )?tokcast (\w.*)$", "\n".join(blocks), re.MULTILINE):
        words = shlex.split(line, comments=True)
        path = next((p for p in commands if p == " ".join(words[: len(p.split())])), None)
        if path is None:
            assert words[0][0].isdigit(), line
            continue
        known = set(chain(*(param.opts for param in commands[path].params)))
        assert {w for w in words if re.match(r"--?[a-z]", w)} <= known, line


def test_links_lead_somewhere() -> None:
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text(encoding="utf-8")):
            assert (path.parent / target).exists(), f"{path.name}: {target}"


def test_every_page_is_in_the_index() -> None:
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", PAGES["README.md"]))
    assert linked == set(PAGES) - {"README.md"}
    assert "(docs/README.md)" in README


def test_no_page_names_a_machine() -> None:
    for path in (*refresh.pages(), ROOT / "CHANGELOG.md"):
        assert not re.search(r"(?<![\w/.])/(work|root|tmp|home)/", path.read_text(encoding="utf-8"))


def test_the_readme_opens_with_a_sentence_and_its_proof() -> None:
    first, sentence, block = README.split("\n\n")[:3]
    assert first == "# tokcast"
    assert sentence.count(". ") == 0
    assert sentence.endswith(".")
    assert block.startswith("```console\n$ tokcast predict ")


def test_figures_in_prose() -> None:
    assert f"{len(chips())} known chips" in README
    rows = packaged()
    counts = [m.chip for m in rows]
    strix = counts.count("AMD Ryzen AI Max+ 395 (Radeon 8060S)") / len(rows)
    assert 1 / 3 < strix < 0.4
    assert 300 < len(set(counts)) < 320
    assert sum("thread-copy" in m.flags for m in rows) / len(rows) == pytest.approx(0.1, abs=0.01)
    assert not any(m.backend == "MLX" and m.phase == "prefill" and m.n_depth for m in rows)
    assert sum((m.n_depth or 0) > 32768 for m in rows) / len(rows) < 0.03
    dates = sorted(m.date for m in rows if m.date)
    assert (dates[0][:4], dates[-1][:4]) == ("2023", "2026")


def test_every_column_and_flag_is_described() -> None:
    for name in COLUMNS:
        assert re.search(rf"^\| .*`{name}`", DATA, re.MULTILINE), name
    for flag in frozenset().union(*(m.flags for m in packaged())):
        assert f"`{flag}`" in DATA, flag
    assert "only `chip`, `backend`, `model_id`, `file_type`,\n`phase` and `tok_s` are" in DATA
    assert REQUIRED == ("chip", "backend", "model_id", "file_type", "phase", "tok_s")


def test_every_source_is_named_with_its_licence() -> None:
    for m in packaged():
        source = m.source
        if not source:
            assert "repo-unknown" in m.flags
        elif source.startswith("https://github.com/"):
            assert "/".join(source.split("/")[3:5]) in DATA, source
        elif source.startswith("https://"):
            assert source.split("/")[2] in DATA, source
        else:
            assert source.split("@")[0].split(":")[0] in DATA, source


def test_a_page_is_refreshed_in_place() -> None:
    page = "a\n```console\n$ tokcast --version\nold\n```\nb\n<!-- rules -->\nold\n<!-- /rules -->\n"
    new = refresh.refreshed(page)
    assert re.fullmatch(
        r"a\n```console\n\$ tokcast --version\ntokcast \d.*\n```\nb\n", new[: new.index("<!--")]
    )
    assert "| rule | why the row is not used |" in new
    assert refresh.refreshed(new) == new


def test_what_is_no_example() -> None:
    with pytest.raises(ValueError, match=r"begins with 'hello', expected"):
        list(refresh.examples("```console\nhello\n```\n"))
    with pytest.raises(ValueError, match=r"'rm x': expected a tokcast command"):
        refresh.run("rm x")


def test_pages_are_found() -> None:
    assert refresh.pages()[0] == ROOT / "README.md"
    assert Path(ROOT / "docs" / "predict.md") in refresh.pages()
