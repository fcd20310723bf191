"""What `energy` takes: how good predictions of energy are, and the energy of training."""

import typer

app = typer.Typer()
energy_app = typer.Typer(
    help="Energy: what a token and a training run cost.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(energy_app, name="energy")


@energy_app.callback()
def _energy() -> None:
    """Keep the group a group however many commands it has."""
