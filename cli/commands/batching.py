"""What `measure batch` and `attribute` take."""

from typing import Annotated

import typer

from tokcast.cli import arguments as arg
from tokcast.cli.commands.measure import measure_app

app = typer.Typer()

Rounds = Annotated[
    str, typer.Option("--rounds", metavar="N", help="Rounds, each with prefixes of its own.")
]
Slots = Annotated[str, typer.Option("--slots", metavar="N", help="Sequences kept at once.")]
Cells = Annotated[str, typer.Option("-c", "--ctx-size", metavar="N", help="Cells they share.")]
LongestPrefix = Annotated[
    str, typer.Option("--longest", metavar="N", help="Most tokens that a sequence has cached.")
]
Seed = Annotated[str, typer.Option("--seed", metavar="N", help="Seed of the lengths.")]
BatchFile = Annotated[
    str | None,
    typer.Argument(metavar="FILE", help="Batches, a line each; default: those that ship."),
]
ModelName = Annotated[
    str | None, typer.Option("-m", "--model", metavar="MODEL", help="The model that ran them.")
]
FitFile = Annotated[
    str | None, typer.Option("--fit", metavar="FILE", help="Fitted times that --save wrote.")
]
BatchName = Annotated[
    str | None, typer.Option("--batch", metavar="NAME", help="Show this batch's shares only.")
]
HeldOut = Annotated[
    bool, typer.Option("--held-out", help="Show the error on rounds left out of the fit.")
]
SaveFits = Annotated[
    str | None, typer.Option("--save", metavar="FILE", help="Write the fitted times here.")
]


@measure_app.command("batch")
def measure_batch(
    model: arg.OneModel,
    rounds: Rounds = "8",
    slots: Slots = "16",
    cells: Cells = "8k",
    longest: LongestPrefix = "2k",
    seed: Seed = "1",
    threads: arg.Threads = None,
    n_ubatch: arg.MicroBatch = "512",
    flash_attn: arg.FlashAttention = "auto",
    to: arg.To = None,
    offline: arg.Offline = False,
    output: arg.Output = "table",
) -> None:
    """Measure passes that several requests of mixed lengths share, on the processor.

    Example: tokcast measure batch qwen3-0.6b@Q4_K_M --to batches.csv
    """
    from tokcast.cli import measure_batch as command

    request = command.Request(
        model=model,
        n_rounds=rounds,
        n_slots=slots,
        n_cells=cells,
        longest=longest,
        seed=seed,
        n_threads=threads,
        n_ubatch=n_ubatch,
        flash_attn=flash_attn,
        to=to,
        offline=offline,
    )
    raise typer.Exit(command.run(request, output))


@app.command()
def attribute(
    file: BatchFile = None,
    model: ModelName = None,
    fit: FitFile = None,
    batch: BatchName = None,
    held_out: HeldOut = False,
    save: SaveFits = None,
    offline: arg.Offline = False,
    output: arg.Output = "table",
) -> None:
    """Divide the time of shared passes among their requests.

    Example: tokcast attribute batches.csv
    """
    from tokcast.cli import attribute as command

    request = command.Request(
        file=file,
        model=model,
        fit=fit,
        batch=batch,
        is_held_out=held_out,
        save=save,
        offline=offline,
    )
    raise typer.Exit(command.run(request, output))
