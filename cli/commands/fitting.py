"""What `fit` and `evaluate` take."""

from typing import Annotated

import typer

from tokcast.cli import arguments as arg

app = typer.Typer()

Save = Annotated[
    str | None, typer.Option("--save", metavar="FILE", help="Write the coefficients here.")
]
FitPart = Annotated[
    str,
    typer.Option("--part", metavar="PART", help="models, or offload: what placements add."),
]
Effects = Annotated[
    bool, typer.Option("--effects", help="List the effects with their standard errors.")
]
On = Annotated[
    str | None,
    typer.Option("--on", metavar="FILE", help="Score the released coefficients on its rows."),
]
SaveScores = Annotated[
    str | None,
    typer.Option("--save", metavar="FOLDER", help="Write accuracy.md, its plots and JSON here."),
]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", metavar="ADDRESS", help="Fit on a dask cluster, or on: local."),
]
Folds = Annotated[
    str, typer.Option("--folds", metavar="N", help="Parts of the chips to leave out in turn.")
]


@app.command()
def fit(
    save: Save = None,
    effects: Effects = False,
    part: FitPart = "models",
    output: arg.Output = "table",
) -> None:
    """Fit the coefficients again, with their held-out error.

    Example: tokcast fit --effects
    """
    from tokcast.cli import fit as command
    from tokcast.cli import offload

    if offload.is_asked(part):
        raise typer.Exit(offload.fit(save, effects, output))
    raise typer.Exit(command.run(save, effects, output))


@app.command()
def evaluate(
    on: On = None,
    n_folds: Folds = "10",
    save: SaveScores = None,
    cluster: Cluster = None,
    part: FitPart = "models",
    output: arg.Output = "table",
) -> None:
    """Score predictions on what the fit did not see.

    Example: tokcast evaluate --on measurements.csv -o json
    """
    from tokcast.cli import evaluate as command
    from tokcast.cli import offload
    from tokcast.cli.options import one_count

    if offload.is_asked(part):
        raise typer.Exit(offload.evaluate(bool(on or save or cluster), output))
    request = command.Request(on, one_count(n_folds, "--folds", at_least=2), save, cluster)
    raise typer.Exit(command.run(request, output))
