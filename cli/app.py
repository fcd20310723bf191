"""The typer application: its groups of commands, and how it ends."""

import errno
import io
import os
import sys
from importlib import import_module
from typing import Annotated

import typer

from tokcast.cli.commands import modules_of
from tokcast.cli.render import plain, squeeze
from tokcast.cli.startup import HELP_NAMES, check_repeats, hide_types, skip_adapters, usage_error
from tokcast.predictor.errors import InputError


def _version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        typer.echo(f"tokcast {version('tokcast')}")
        raise typer.Exit


# A screenful: what was given may be longer than what is to be said of it.
_LONGEST_LINE = 1600
# A full disk, a quota, a device that fails: nothing that tokcast could do about its output.
_OUTPUT_FAILS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def _root(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Show the version.")
    ] = False,
) -> None:
    """Let --version come before a command."""


def application(word: str | None = None) -> typer.Typer:
    """Return the application: the commands of the modules that answer to a word, or all."""
    app = typer.Typer(
        name="tokcast",
        help="How fast a language model will run on a machine, how sure that is, and why.",
        epilog="Exit codes: 0 done, 1 it ran and the answer is no, 2 bad input.",
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": HELP_NAMES},
    )
    app.callback()(_root)
    for name in modules_of(word):
        # A group without a name adds its commands to the top level.
        app.add_typer(import_module(f"tokcast.cli.commands.{name}").app)
    return app


def main() -> None:
    """Run the command line; bad input becomes one line on stderr and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a character gets its escape, not a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader went away (`| head`): not an error; keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:
        if error.filename is not None or error.errno not in _OUTPUT_FAILS:
            raise
        print(f"tokcast: the output cannot be written: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 2
    sys.exit(code)


def _run() -> int:
    words = sys.argv[1:]
    command = typer.main.get_command(application(words[0] if words else None))
    skip_adapters(command)
    hide_types(command)
    try:
        check_repeats(command, sys.argv[1:])
        # Not the command's own `main`, which turns a broken pipe into a failure.
        with command.make_context("tokcast", words) as context:
            command.invoke(context)
        return 0
    except typer.Exit as end:
        return end.exit_code
    except InputError as error:
        print(f"tokcast: {squeeze(plain(str(error)), _LONGEST_LINE)}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        message = usage_error(error)
        if message is None:
            raise
        print(message, file=sys.stderr)
    return 2
