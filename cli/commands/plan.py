"""What `plan` takes."""

from typing import Annotated

import typer

from tokcast.cli import arguments as arg
from tokcast.cli import placement_arguments as put

app = typer.Typer()
PlanPlot = Annotated[
    str | None,
    typer.Option("--plot", metavar="FILE", help="Draw speed over layers off the cards."),
]


@app.command()
def plan(
    model: arg.OneModel,
    host: arg.HostName = None,
    backend: arg.Backend = None,
    n_context: arg.HeldContext = None,
    min_decode: arg.MinDecode = None,
    n_prompt: arg.OnePrompt = "512",
    at_depth: arg.AtDepth = "0",
    n_ubatch: arg.MicroBatch = "512",
    type_k: arg.CacheTypeK = "f16",
    type_v: arg.CacheTypeV = "f16",
    flash_attn: arg.FlashAttention = "auto",
    n_parallel: put.Parallel = None,
    swa_full: put.SwaFull = False,
    n_threads: put.ThreadsUsed = None,
    memory: arg.Memory = None,
    plot: PlanPlot = None,
    offline: arg.Offline = False,
    output: arg.Output = "table",
) -> None:
    """Find where to put a model that is too large for a card.

    Example: tokcast plan gpt-oss-120b --host "RTX 4090 + 64G DDR5-5600" -c 32k
    """
    from tokcast.cli import plan as command
    from tokcast.cli.placement_words import Words

    request = command.Request(
        address=model,
        host=host,
        backend=backend,
        n_context=n_context,
        min_decode=min_decode,
        n_prompt=n_prompt,
        at_depth=at_depth,
        n_ubatch=n_ubatch,
        type_k=type_k,
        type_v=type_v,
        flash_attn=flash_attn,
        memory=memory,
        plot=plot,
        offline=offline,
        placement=Words(n_parallel=n_parallel, swa_full=swa_full, n_threads=n_threads),
    )
    raise typer.Exit(command.run(request, output))
