"""Starting fast: text options need no schema.

Recent typer builds a pydantic adapter for every parameter of the command that runs, 0.1 s for
nothing when the parameters are text and flags, which arrive as `str` and `bool` already. All
options of tokcast are such; their meaning is parsed in `tokcast.cli.options`, where the error
can say what to do. This module hands those parameters through. If typer changes inside, the
import or the attribute is missing and its own, slower way is used.
"""

from typing import Any

import typer

HELP_NAMES = ["-h", "--help"]
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

    pending = [command]
    while pending:
        current = pending.pop()
        pending.extend(getattr(current, "commands", {}).values())
        context = typer.Context(current, help_option_names=HELP_NAMES)
        for param in current.get_params(context):
            descriptor = getattr(param, "type_descriptor", None)
            if descriptor is not None and descriptor.annotation in PLAIN:
                param._runtime_param = Plain(
                    parameter_info=descriptor.parameter_info, annotation=descriptor.annotation
                )
