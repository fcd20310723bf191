"""The command line itself: the installed script, help, usage errors, how it ends."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_tools import MODEL, RTX, Result, good, labels, refused, run, small

from tokcast.cli import app, startup
from tokcast.cli.commands import WORDS

pytestmark = pytest.mark.usefixtures("empty_home", "eighty_columns")


TOKCAST = Path(sys.executable).with_name("tokcast")


def script(*args: str, **kwargs: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [TOKCAST, *args], capture_output=True, text=True, timeout=60, check=False, **kwargs
    )


# The installed script
def test_the_script_predicts() -> None:
    done = script("predict", MODEL, *RTX, "--offline")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(
        "Llama 3.1 8B Q4_K_M on NVIDIA GeForce RTX 4090 (llama.cpp, CUDA)\n"
    )


def test_the_script_fails_in_one_line() -> None:
    done = script("predict", "no such model", *RTX)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("tokcast: ")
    assert done.stderr.count("\n") == 1


def test_a_reader_that_leaves_is_no_error() -> None:
    command = f"{TOKCAST} hosts list | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, timeout=60, check=True
    )
    first, status = done.stdout.splitlines()
    assert (first.split()[1:], status, done.stderr) == (["chips"], "0", "")


def test_a_terminal_without_the_characters() -> None:
    done = script(
        "predict", MODEL, *RTX, "-o", "md", env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert done.returncode == 0
    assert r"\xb1" in done.stdout


def test_light_commands_import_nothing_heavy(tmp_path: Path) -> None:
    """A prediction from a file needs neither numbers' nor network's libraries."""
    heavy = (
        "numpy scipy pandas statsmodels gguf httpx rich pydantic psutil platformdirs ssl "
        "urllib.request concurrent.futures email"
    )
    code = (
        "import sys; from tokcast.cli.app import main\n"
        "try: main()\n"
        "finally: print([m for m in sys.argv[1].split() if m in sys.modules], file=sys.stderr)"
    )
    code = code.replace("sys.argv[1]", repr(heavy))
    path = small(tmp_path / "small.gguf")
    done = subprocess.run(
        [sys.executable, "-c", code, "predict", str(path), *RTX],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "[]\n")


# Help, version, usage
def test_the_version() -> None:
    name, number = good("--version").split()
    assert name == "tokcast"
    assert number[0].isdigit()


@pytest.mark.parametrize(
    "command",
    ["", "predict", "inspect", "doctor", "fit", "evaluate", "hosts", "hosts list", "hosts show"],
)
def test_help_fits_the_screen_and_leaks_no_types(command: str) -> None:
    short, long = (good(*command.split(), flag) for flag in ("-h", "--help"))
    assert short == long
    assert short.startswith(f"Usage: tokcast {command}".rstrip())
    assert max(map(len, short.splitlines())) <= 80
    assert "list[" not in short
    assert "..." not in short.partition("Commands:")[2]


@pytest.mark.parametrize("command", [[], ["hosts"]])
def test_a_command_that_needs_another_word_shows_its_help(command: list[str]) -> None:
    result = run(*command)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("Usage: tokcast")
    assert "Commands:" in result.err


@pytest.mark.parametrize(
    ("args", "line"),
    [
        (["predict", MODEL, "--hots", "x"], "No such option: --hots (Possible options: --host"),
        (["bogus"], "No such command 'bogus'; see tokcast -h"),
        (["hosts", "bogus"], "No such command 'bogus'; see tokcast hosts -h"),
        (["hosts", "show"], "Missing argument 'NAME'; see tokcast hosts show -h"),
        (["inspect"], "Missing argument 'MODEL'; see tokcast inspect -h"),
        (["predict", MODEL, "-d"], "Option '-d' requires an argument; see tokcast"),
        (["hosts", "list", "a", "\x1b[31m"], "Got unexpected extra argument"),
    ],
)
def test_usage_errors_take_one_line(args: list[str], line: str) -> None:
    assert refused(*args).startswith(line)


def test_typer_without_its_inner_parts_still_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("typer._coercion.RuntimeParam")
    monkeypatch.setattr(app, "hide_types", lambda command: None)
    assert labels(MODEL, *RTX, "-d", "0") == ["pp512", "tg128"]
    assert labels("-m", MODEL, *RTX, "-d", "0", "-n", "0") == ["pp512"]
    assert refused("predict") == (
        "no model given; expected a file, owner/repo[:quant] or name@FILETYPE"
    )


def test_every_parameter_is_passed_through() -> None:
    """An option of another kind would silently arrive as text."""
    command = app.typer.main.get_command(app.application())
    kinds = {p.type_descriptor.annotation for p in startup._parameters(command)}
    assert kinds <= set(startup.PLAIN)


def test_a_first_word_brings_its_whole_command() -> None:
    """A word that no module claims would exist in the help alone, or lack some of its own."""
    whole = commands_of()
    assert set(whole) == {word for words in WORDS.values() for word in words}
    for word, subcommands in whole.items():
        assert commands_of(word)[word] == subcommands


def commands_of(word: str | None = None) -> dict[str, set[str]]:
    """Return the commands made for a first word, with their subcommands."""
    made = app.typer.main.get_command(app.application(word))
    return {name: set(getattr(one, "commands", ())) for name, one in made.commands.items()}


def test_defects_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokcast.hosts.registry.chips", lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        run("hosts", "list")


def test_an_interrupt_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tokcast.hosts.registry.chips", interrupted)
    result = run("hosts", "list")
    assert (result.code, result.out, result.err) == (130, "", "")


def test_progress_stays_off_what_is_no_terminal(tmp_path: Path) -> None:
    result: Result = run("predict", small(tmp_path / "a.gguf"), *RTX)
    assert result.err == ""
