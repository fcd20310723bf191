"""What `energy` takes: how good predictions of energy are, and the energy of training."""

from typing import Annotated

import typer

from tokcast.cli import arguments as arg

app = typer.Typer()
energy_app = typer.Typer(
    help="Energy: what a token and a training run cost.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(energy_app, name="energy")

SaveEnergy = Annotated[
    str | None, typer.Option("--save", metavar="FILE", help="Write the coefficients here.")
]


@energy_app.callback()
def _energy() -> None:
    """Keep the group a group however many commands it has."""


@energy_app.command("evaluate")
def evaluate(save: SaveEnergy = None, output: arg.Output = "table") -> None:
    """Fit energy again, with its error on models and chips left out.

    Example: tokcast energy evaluate
    """
    from tokcast.cli import energy as command

    raise typer.Exit(command.evaluate(save, output))
