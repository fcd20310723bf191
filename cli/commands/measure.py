"""What `calibrate` and `measure` take."""

from typing import Annotated

import typer

from tokcast.cli import arguments as arg

app = typer.Typer()
measure_app = typer.Typer(
    help="Measure models here; list, share and import figures.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(measure_app, name="measure")

WithFiles = Annotated[
    list[str] | None,
    typer.Option("--with", metavar="FILE", help="Use llama-bench results instead of measuring."),
]
MeasureRuntime = Annotated[
    str | None,
    typer.Option("--runtime", metavar="NAME", help="llama.cpp, llama-bench or mlx."),
]
Fresh = Annotated[
    bool, typer.Option("--fresh", help="Begin anew instead of going on where one was stopped.")
]
Refit = Annotated[
    bool, typer.Option("--refit", help="Fit again from the runs kept, without measuring.")
]
PlanOnly = Annotated[bool, typer.Option("--plan", help="Show what would be measured, and stop.")]
MeasureDepths = Annotated[
    str | None, typer.Option("-d", "--n-depth", metavar="N,...", help="Tokens cached; default 0.")
]
Repeats = Annotated[
    str, typer.Option("-r", "--repetitions", metavar="N", help="Least undisturbed repetitions.")
]
Launches = Annotated[
    str, typer.Option("--launches", metavar="N", help="Separate launches of the runtime.")
]
Batch = Annotated[str, typer.Option("-b", "--batch-size", metavar="N", help="Logical batch.")]
GpuLayers = Annotated[
    str | None,
    typer.Option("-ngl", "--n-gpu-layers", metavar="N", help="Layers on the GPU; 0 for none."),
]
RunPart = Annotated[
    str | None,
    typer.Argument(metavar="TEXT", help="Only runs whose id, host or model holds this."),
]
RunId = Annotated[str, typer.Argument(metavar="ID", help="A run's id, or its first letters.")]
Files = Annotated[list[str], typer.Argument(metavar="FILE...", help="Output of a benchmark.")]
OneFile = Annotated[
    str | None, typer.Argument(metavar="FILE", help="Output of a benchmark; default: what is kept.")
]


@app.command()
def calibrate(
    budget: arg.Budget = "5m",
    files: WithFiles = None,
    runtime: MeasureRuntime = None,
    threads: arg.Threads = None,
    host: arg.HostName = None,
    bandwidth: arg.Bandwidth = None,
    fresh: Fresh = False,
    refit: Refit = False,
    plan: PlanOnly = False,
    output: arg.Output = "table",
) -> None:
    """Measure this machine, and sharpen predictions for it.

    Example: tokcast calibrate --budget 5m
    """
    from tokcast.cli import calibrate as command

    request = command.Request(
        budget, tuple(files or ()), runtime, threads, host, bandwidth, fresh, refit, plan
    )
    raise typer.Exit(command.run(request, output))


@measure_app.command("run")
def measure_run(
    model: arg.OneModel,
    runtime: MeasureRuntime = None,
    n_prompt: arg.Prompts = "512",
    n_gen: arg.Generations = "128",
    n_depth: MeasureDepths = None,
    repeats: Repeats = "5",
    launches: Launches = "1",
    threads: arg.Threads = None,
    n_batch: Batch = "2048",
    n_ubatch: arg.MicroBatch = "512",
    flash_attn: arg.FlashAttention = "auto",
    type_k: arg.CacheTypeK = "f16",
    type_v: arg.CacheTypeV = "f16",
    n_gpu_layers: GpuLayers = None,
    offline: arg.Offline = False,
    output: arg.Output = "table",
) -> None:
    """Measure one model as llama-bench does, every sample kept.

    A model that is not on this machine is measured with random weights in its shapes.

    Example: tokcast measure run ./gemma3-270m-q4_k_m.gguf -d 0,512,2048 --launches 3
    """
    from tokcast.cli import measure as command

    request = command.Request(
        model=model,
        runtime=runtime,
        n_prompt=n_prompt,
        n_gen=n_gen,
        n_depth=n_depth,
        n_repeats=repeats,
        n_launches=launches,
        n_threads=threads,
        n_batch=n_batch,
        n_ubatch=n_ubatch,
        flash_attn=flash_attn,
        type_k=type_k,
        type_v=type_v,
        n_gpu_layers=n_gpu_layers,
        offline=offline,
    )
    raise typer.Exit(command.run(request, output))


@measure_app.command("list")
def measure_list(text: RunPart = None, output: arg.Output = "table") -> None:
    """List the runs that are kept."""
    from tokcast.cli import runs as command

    raise typer.Exit(command.run_list(text, output))


@measure_app.command("show")
def measure_show(id_: RunId, output: arg.Output = "table") -> None:
    """Show a run with all its samples."""
    from tokcast.cli import runs as command

    raise typer.Exit(command.run_show(id_, output))


@measure_app.command("export")
def measure_export(text: RunPart = None, to: arg.To = None) -> None:
    """Print figures as CSV in the interchange schema, ready to share."""
    from tokcast.cli import runs as command

    raise typer.Exit(command.run_export(text, to))


@measure_app.command("import")
def measure_import(files: Files, host: arg.HostName = None, output: arg.Output = "table") -> None:
    """Keep the figures of llama-bench, mlx_lm.benchmark and LocalScore output."""
    from tokcast.cli import runs as command

    raise typer.Exit(command.run_import(files, host, output))


@measure_app.command("check")
def measure_check(file: OneFile = None, output: arg.Output = "table") -> None:
    """Say which figures, of a file or of those kept, are not to be trusted."""
    from tokcast.cli import runs as command

    raise typer.Exit(command.run_check(file, output))
