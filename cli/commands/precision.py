"""What `recommend`, `adapt` and `precision` take."""

from typing import Annotated

import typer

from tokcast.cli import arguments as arg

app = typer.Typer()
precision_app = typer.Typer(
    help="Number formats: bits, products, attention kernels.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(precision_app, name="precision")

Phase = Annotated[str, typer.Option("--phase", metavar="NAME", help="decode or prefill.")]
Length = Annotated[
    str, typer.Option("-c", "--context", metavar="N", help="Tokens cached, or of the prompt.")
]
Objective = Annotated[
    str, typer.Option("--objective", metavar="NAME", help="balanced, speed, memory or quality.")
]
PlanName = Annotated[
    str | None, typer.Option("--plan", metavar="NAME", help="Show this plan instead of the best.")
]
CacheFormat = Annotated[
    str | None, typer.Option("--kv", metavar="FORMAT", help="K/V cache of every plan.")
]


@app.command()
def recommend(
    model: arg.OneModel,
    phase: Phase = "decode",
    n_context: Length = "4k",
    objective: Objective = "balanced",
    plan: PlanName = None,
    kv: CacheFormat = None,
    host: arg.HostName = None,
    bandwidth: arg.Bandwidth = None,
    tflops: arg.Tflops = None,
    memory: arg.Memory = None,
    offline: arg.Offline = False,
    output: arg.Output = "table",
) -> None:
    """Recommend number formats for a model, operator by operator.

    Example: tokcast recommend llama-3-8b --phase decode --context 4k --host GB10
    """
    from tokcast.cli import precision as command

    request = command.Request(
        model=model,
        phase=phase,
        n_context=n_context,
        objective=objective,
        plan=plan,
        kv=kv,
        host=host,
        bandwidth=bandwidth,
        tflops=tflops,
        memory=memory,
        offline=offline,
    )
    raise typer.Exit(command.run(request, output))


RunsFile = Annotated[
    str, typer.Argument(metavar="FILE", help="Runs as JSON lines or CSV; - reads stdin.")
]
OfModel = Annotated[str, typer.Option("-m", "--model", metavar="MODEL", help="As for predict.")]
Wanted = Annotated[
    str, typer.Option("--min-decode", metavar="N", help="Slowest generation wanted, tokens/s.")
]
Ladder = Annotated[
    str | None,
    typer.Option("--plans", metavar="NAME,...", help="Plans or file types, least lossy first."),
]
Start = Annotated[str | None, typer.Option("--start", metavar="NAME", help="The plan in use.")]


@app.command()
def adapt(
    file: RunsFile,
    model: OfModel,
    min_decode: Wanted,
    plans: Ladder = None,
    start: Start = None,
    host: arg.HostName = None,
    bandwidth: arg.Bandwidth = None,
    tflops: arg.Tflops = None,
    memory: arg.Memory = None,
    offline: arg.Offline = False,
    output: arg.Output = "table",
) -> None:
    """Follow measured runs and say when to change the formats.

    Example: tokcast adapt runs.jsonl -m llama-3-8b --min-decode 20 --host GB10
    """
    from tokcast.cli import adapt as command

    request = command.Request(
        file=file,
        model=model,
        min_decode=min_decode,
        plans=plans,
        start=start,
        host=host,
        bandwidth=bandwidth,
        tflops=tflops,
        memory=memory,
        offline=offline,
    )
    raise typer.Exit(command.run(request, output))


@precision_app.command("formats")
def precision_formats(output: arg.Output = "table") -> None:
    """List number formats with their bits, scales included."""
    from tokcast.cli.precision_tables import formats

    raise typer.Exit(formats(output))


@precision_app.command("product")
def precision_product(
    m: Annotated[str, typer.Option("-m", metavar="N", help="Rows of activations.")] = "1",
    n: Annotated[str, typer.Option("-n", metavar="N", help="Columns of weights.")] = "4096",
    k: Annotated[str, typer.Option("-k", metavar="N", help="Rows of weights.")] = "4096",
    weights: Annotated[
        str, typer.Option("--weights", metavar="FORMAT,...", help="Formats of the weights.")
    ] = "FP16,FP8,INT4,NVFP4",
    activations: Annotated[
        str, typer.Option("--activations", metavar="FORMAT", help="Format of the activations.")
    ] = "FP16",
    host: arg.HostName = None,
    bandwidth: arg.Bandwidth = None,
    tflops: arg.Tflops = None,
    output: arg.Output = "table",
) -> None:
    """Work out one matrix product: a GEMV, or a GEMM with -m.

    Example: tokcast precision product -n 14336 -k 4096 --weights FP16,NVFP4 --host GB10
    """
    from tokcast.cli.precision_tables import ProductRequest, product

    request = ProductRequest(m, n, k, weights, activations, host, bandwidth, tflops)
    raise typer.Exit(product(request, output))


@precision_app.command("attention")
def precision_attention(
    heads: Annotated[str, typer.Option("--heads", metavar="N", help="Query heads.")] = "32",
    kv_heads: Annotated[str, typer.Option("--kv-heads", metavar="N", help="Key heads.")] = "8",
    head_size: Annotated[
        str, typer.Option("--head-size", metavar="N", help="Numbers of a head.")
    ] = "128",
    queries: Annotated[str, typer.Option("--queries", metavar="N", help="Queries.")] = "1",
    keys: Annotated[str, typer.Option("--keys", metavar="N", help="Keys.")] = "4k",
    number_format: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="Queries, and K/V unless --kv.")
    ] = "FP16",
    kv: Annotated[
        str | None, typer.Option("--kv", metavar="FORMAT", help="Format of K/V alone.")
    ] = None,
    kept: Annotated[
        str, typer.Option("--kept", metavar="SHARE", help="Share of key blocks visited.")
    ] = "1",
    host: arg.HostName = None,
    bandwidth: arg.Bandwidth = None,
    tflops: arg.Tflops = None,
    output: arg.Output = "table",
) -> None:
    """Work out the traffic of FlashAttention 1 to 4 for one layer.

    Example: tokcast precision attention --queries 4k --keys 4k --host "H100 SXM"
    """
    from tokcast.cli.precision_attention import AttentionRequest, attention

    sizes = (heads, kv_heads, head_size, queries, keys)
    request = AttentionRequest(*sizes, number_format, kv, kept, host, bandwidth, tflops)
    raise typer.Exit(attention(request, output))


@precision_app.command("published")
def precision_published(output: arg.Output = "table") -> None:
    """Hold a published toolkit's times for Llama 3 8B on GB10 against the ledger's."""
    from tokcast.cli import precision_published as command

    raise typer.Exit(command.run(output))
