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
