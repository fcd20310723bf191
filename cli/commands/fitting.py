"""What `fit` and `evaluate` take."""

import typer

from tokcast.cli import arguments as arg

app = typer.Typer()


@app.command()
def fit(
    save: arg.Save = None,
    effects: arg.Effects = False,
    part: arg.FitPart = "models",
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
    on: arg.On = None,
    n_folds: arg.Folds = "10",
    save: arg.SaveScores = None,
    cluster: arg.Cluster = None,
    part: arg.FitPart = "models",
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
