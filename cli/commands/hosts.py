"""What `hosts` takes."""

from typing import Annotated

import typer

from tokcast.cli import arguments as arg

app = typer.Typer()
hosts_app = typer.Typer(
    help="List, show and detect chips.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(hosts_app, name="hosts")

NamePart = Annotated[
    str | None, typer.Argument(metavar="TEXT", help="Only chips whose name holds this.")
]
Chip = Annotated[str, typer.Argument(metavar="NAME", help="A chip, as in --host.")]


@hosts_app.command("list")
def hosts_list(
    text: NamePart = None,
    output: arg.Output = "table",
) -> None:
    """List the known chips.

    Example: tokcast hosts list "rtx 30"
    """
    from tokcast.cli import hosts as command

    raise typer.Exit(command.run_list(text, output))


@hosts_app.command("show")
def hosts_show(
    name: Chip,
    output: arg.Output = "table",
) -> None:
    """Show a chip's published figures and where they come from.

    Example: tokcast hosts show "rtx 4090"
    """
    from tokcast.cli import hosts as command

    raise typer.Exit(command.run_show(name, output))


@hosts_app.command("detect")
def hosts_detect(output: arg.Output = "table") -> None:
    """Say what this machine has, and what could not be read."""
    from tokcast.cli import hosts as command

    raise typer.Exit(command.run_detect(output))
