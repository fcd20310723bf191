"""What `scaling` takes."""

from typing import Annotated

import typer

from tokcast.cli import arguments as arg

app = typer.Typer()

Params = Annotated[
    str | None, typer.Option("--params", metavar="N", help="Active parameters, as 8B: ask a law.")
]
Bits = Annotated[str, typer.Option("--bits", metavar="N", help="Bits a weight.")]
LawPlot = Annotated[
    str | None, typer.Option("--plot", metavar="FILE", help="Draw exponents into an .svg.")
]
SaveLaws = Annotated[
    str | None, typer.Option("--save", metavar="FILE", help="Fit again and write the laws here.")
]


@app.command()
def scaling(
    params: Params = None,
    bits: Bits = "4.85",
    bandwidth: arg.Bandwidth = None,
    n_depth: arg.Depth = "0",
    backend: arg.Backend = None,
    plot: LawPlot = None,
    save: SaveLaws = None,
    output: arg.Output = "table",
) -> None:
    """Show how speed and energy scale, and where laws bend.

    Example: tokcast scaling --backend CUDA --params 8B --bandwidth 1008
    """
    from tokcast.cli import scaling as command

    request = command.Request(params, bits, bandwidth, n_depth, backend, plot, save)
    raise typer.Exit(command.run(request, output))
