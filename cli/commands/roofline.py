"""What `roofline` takes."""

from typing import Annotated

import typer

from tokcast.cli import arguments as arg

app = typer.Typer()
roofline_app = typer.Typer(
    help="Walls of deployments, ridges by memory level, emulation, stages of any program.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(roofline_app, name="roofline")

SectionPart = Annotated[
    str | None, typer.Argument(metavar="TEXT", help="Only sections whose title holds this.")
]


@roofline_app.command("figures")
def roofline_figures(text: SectionPart = None, output: arg.Output = "table") -> None:
    """Show published figures beside what the formulas here give.

    Example: tokcast roofline figures floors
    """
    from tokcast.cli import roofline_figures as command

    raise typer.Exit(command.run(text, output))
