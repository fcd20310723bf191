"""What `recommend`, `adapt` and `precision` take."""

from typing import Annotated

import typer

from tokcast.cli import arguments as arg

app = typer.Typer()
precision_app = typer.Typer(
    help="Number formats: bits, products, attention kernels, a published toolkit.",
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
