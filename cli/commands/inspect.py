"""What `inspect` takes."""

from typing import Annotated

import typer

from tokcast.cli import arguments as arg

app = typer.Typer()

Tensors = Annotated[bool, typer.Option("--tensors", help="List every tensor.")]


@app.command()
def inspect(
    model: arg.OneModel,
    tensors: Tensors = False,
    offline: arg.Offline = False,
    output: arg.Output = "table",
) -> None:
    """Show what is in a model file: bytes by type and component.

    Example: tokcast inspect ./gemma3-270m-q4_k_m.gguf
    """
    from tokcast.cli import inspect as command

    raise typer.Exit(command.run(model, tensors, offline, output))
