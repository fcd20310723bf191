"""Starting fast and failing in one line: what is done to the command-line framework.

Recent typer builds a pydantic adapter for every parameter of the command that runs, 0.1 s for
nothing when the parameters are text and flags, which arrive as `str` and `bool` already. All
options of tokcast are such; their meaning is parsed in `tokcast.cli.options`, where the error
can say what to do. This module hands those parameters through. If typer changes inside, the
import or the attribute is missing and its own, slower way is used.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import typer

from tokcast.cli.render import plain
from tokcast.predictor.errors import InputError

HELP_NAMES = ["-h", "--help"]
_JOINED = "; several numbers are joined by commas"
_COMPARED = "; tokcast select MODEL --hosts FILE compares hosts"
PLAIN = (str, bool, str | None, list[str], list[str] | None)


def _pass_through(value: Any, multiple: bool) -> Any:
    return () if value is None and multiple else value


def skip_adapters(command: Any) -> None:
    """Let every plain parameter of `command` and its subcommands bypass typer's adapters."""
    try:
        from typer._coercion import RuntimeParam
    except ImportError:
        return

    class Plain(RuntimeParam):
        def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
            return _pass_through(value, bool(param.multiple) or param.nargs == -1)

        def _coerce_value(self, value: Any, param: Any, ctx: Any) -> Any:
            return value

    for param in _parameters(command):
        descriptor = getattr(param, "type_descriptor", None)
        if descriptor is not None and descriptor.annotation in PLAIN:
            param._runtime_param = Plain(
                parameter_info=descriptor.parameter_info, annotation=descriptor.annotation
            )


def hide_types(command: Any) -> None:
    """Keep Python types such as `<list[str]>` out of the help on arguments."""
    for param in _parameters(command):
        if param.param_type_name == "argument" and hasattr(param, "display_type_rich"):
            param.display_type_rich = lambda ctx: None


def _parameters(command: Any) -> Iterator[Any]:
    pending = [command]
    while pending:
        current = pending.pop()
        pending.extend(getattr(current, "commands", {}).values())
        yield from current.get_params(typer.Context(current, help_option_names=HELP_NAMES))


def check_repeats(command: Any, words: Sequence[str]) -> None:
    """Raise InputError for an option with one value that is given twice.

    The framework would take the last one without a word, and `--host A --host B` would look
    like a comparison.
    """
    once: dict[str, str] = {}
    given: set[str] = set()
    takes_value = False
    for word in words:
        if takes_value:
            takes_value = False
        elif word == "--":
            return
        elif word in getattr(command, "commands", {}):
            command = command.commands[word]
            once = _once(command)
        else:
            name, equals, _ = word.partition("=")
            takes_value = name in once and not equals
            if name in once and once[name] in given:
                instead = _COMPARED if name == "--host" else _JOINED
                raise InputError(f"{name} is given twice; expected it once{instead}")
            given.add(once.get(name, ""))


def _once(command: Any) -> dict[str, str]:
    """Return {spelling: name} of a command's options that have one value."""
    context = typer.Context(command, help_option_names=HELP_NAMES)
    return {
        spelling: param.name
        for param in command.get_params(context)
        if param.param_type_name == "option" and not param.is_flag and not param.multiple
        for spelling in param.opts
    }


def usage_error(error: Exception) -> str | None:
    """Return what the framework says of a command line it can't read; None for other errors.

    It is one line, but for a command that needs another word after it: that gets its help.
    """
    # typer carries click's classes under another name from one version to the next.
    say = getattr(error, "format_message", None)
    if say is None:
        return None
    message = str(say())
    if type(error).__name__ == "NoArgsIsHelpError":
        return message
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "tokcast"
    return f"tokcast: {plain(' '.join(message.split())).rstrip('.')}; see {path} -h"


def file_error(error: Exception, words: Sequence[str]) -> str | None:
    """Return what is wrong with a file that the command line names, or that lies in a folder named.

    None for every other error, which is a defect.
    """
    if not isinstance(error, OSError) or not isinstance(error.filename, str):
        return None
    above = (Path(error.filename), *Path(error.filename).parents)
    if not any(Path(word.rpartition("=")[2]) in above for word in words):
        return None
    return plain(
        f"tokcast: {error.filename}: {error.strerror}; expected a file that can be read or written"
    )
