"""What `select` takes."""

from typing import Annotated

import typer

from tokcast.cli import arguments as arg

app = typer.Typer()

Search = Annotated[
    str | None, typer.Option("--search", metavar="TEXT", help="Search the Hub for repositories.")
]
Author = Annotated[
    str | None, typer.Option("--author", metavar="NAME", help="Repositories of the Hub by NAME.")
]
Limit = Annotated[str, typer.Option("--limit", metavar="N", help="Repositories a search may find.")]
Local = Annotated[
    bool, typer.Option("--local", help="Models that other programs keep on this machine.")
]
ListFile = Annotated[
    str | None, typer.Option("--list", metavar="FILE", help="Models to choose from, one a line.")
]
MaxTtft = Annotated[
    str | None, typer.Option("--max-ttft", metavar="TIME", help="Longest wait for a first token.")
]
MaxTurn = Annotated[
    str | None, typer.Option("--max-turn", metavar="TIME", help="Longest turn of a --workload.")
]
Licences = Annotated[
    list[str] | None, typer.Option("--license", metavar="NAME", help="Licences that will do.")
]
QualityFloor = Annotated[
    str | None,
    typer.Option("--quality-floor", metavar="LOSS", help="Largest published loss, as 2% or 1.02."),
]
Sort = Annotated[
    str,
    typer.Option("--sort", metavar="GOAL", help="size, speed, quality, turn or memory."),
]
Top = Annotated[str, typer.Option("--top", metavar="N", help="Lines of the table.")]
Quants = Annotated[
    bool, typer.Option("--quants", help="Every quantization, not only each model's best.")
]
Why = Annotated[
    str | None, typer.Option("--why", metavar="MODEL", help="What ruled a model out, by how much.")
]
WhatIf = Annotated[
    list[str] | None, typer.Option("--what-if", metavar="HOST", help="The same on another host.")
]
Hosts = Annotated[
    str | None,
    typer.Option("--hosts", metavar="FILE", help="Which of these hosts will do; all for all."),
]
Plot = Annotated[
    str | None, typer.Option("--plot", metavar="FILE", help="Draw speed over loss into an .svg.")
]


@app.command()
def select(
    models: arg.Models = None,
    search: Search = None,
    author: Author = None,
    limit: Limit = "20",
    local: Local = False,
    list_file: ListFile = None,
    host: arg.HostName = None,
    backend: arg.Backend = None,
    runtime: arg.Runtime = None,
    bandwidth: arg.Bandwidth = None,
    tflops: arg.Tflops = None,
    memory: arg.Memory = None,
    workload: arg.WorkloadName = None,
    n_prompt: arg.OnePrompt = "512",
    at_depth: arg.AtDepth = "0",
    n_context: arg.HeldContext = None,
    n_ubatch: arg.MicroBatch = "512",
    type_k: arg.CacheTypeK = "f16",
    type_v: arg.CacheTypeV = "f16",
    flash_attn: arg.FlashAttention = "auto",
    min_decode: arg.MinDecode = None,
    max_ttft: MaxTtft = None,
    max_turn: MaxTurn = None,
    quality_floor: QualityFloor = None,
    licence: Licences = None,
    sort: Sort = "size",
    top: Top = "15",
    quants: Quants = False,
    why: Why = None,
    what_if: WhatIf = None,
    hosts: Hosts = None,
    plot: Plot = None,
    offline: arg.Offline = False,
    output: arg.Output = "table",
) -> None:
    """Choose a model and a quantization to run on a host.

    Example: tokcast select --host "RTX 4090" --min-decode 30 --at-depth 16k
    """
    from tokcast.cli import select as command
    from tokcast.cli.select_request import Request, Show

    request = Request(
        addresses=tuple(models or ()),
        search=search,
        author=author,
        limit=limit,
        is_local=local,
        list_file=list_file,
        host=host,
        backend=backend,
        runtime=runtime,
        bandwidth=bandwidth,
        tflops=tflops,
        memory=memory,
        workload=workload,
        n_prompt=n_prompt,
        at_depth=at_depth,
        n_context=n_context,
        n_ubatch=n_ubatch,
        type_k=type_k,
        type_v=type_v,
        flash_attn=flash_attn,
        min_decode=min_decode,
        max_ttft=max_ttft,
        max_turn=max_turn,
        quality_floor=quality_floor,
        licences=tuple(licence or ()),
        sort=sort,
        offline=offline,
    )
    show = Show(
        top=top, quants=quants, why=why, what_if=tuple(what_if or ()), hosts=hosts, plot=plot
    )
    raise typer.Exit(command.run(request, show, output))
