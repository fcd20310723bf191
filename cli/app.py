"""The typer application: what each command takes. Bodies live in their own modules."""

import io
import os
import sys
from typing import Annotated

import typer

from tokcast.cli import arguments as arg
from tokcast.cli.render import plain
from tokcast.cli.startup import HELP_NAMES, hide_types, skip_adapters, usage_error
from tokcast.predictor.errors import InputError

app = typer.Typer(
    name="tokcast",
    help="How fast a language model will run on a machine, how sure that is, and why.",
    epilog="Exit codes: 0 done, 1 it ran and the answer is no, 2 bad input.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": HELP_NAMES},
)
hosts_app = typer.Typer(
    help="List, show and detect chips.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(hosts_app, name="hosts")
plot_app = typer.Typer(
    help="Draw to an SVG or PNG file.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(plot_app, name="plot")
measure_app = typer.Typer(
    help="Measure models here; list, share and import figures.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(measure_app, name="measure")


def _version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        typer.echo(f"tokcast {version('tokcast')}")
        raise typer.Exit


def _on_hub(address: str) -> str:
    """Return an address that no file or folder of this machine can take the place of."""
    return address if address.startswith(("hf:", "https://", "http://")) else f"hf:{address}"


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Show the version.")
    ] = False,
) -> None:
    """Let --version come before a command."""


@app.command()
def predict(
    models: arg.Models = None,
    model: arg.MoreModels = None,
    hf: arg.HubModels = None,
    host: arg.HostName = None,
    backend: arg.Backend = None,
    runtime: arg.Runtime = None,
    n_prompt: arg.Prompts = "512",
    n_gen: arg.Generations = "128",
    n_depth: arg.Depths = None,
    n_ubatch: arg.MicroBatch = "512",
    type_k: arg.CacheTypeK = "f16",
    type_v: arg.CacheTypeV = "f16",
    flash_attn: arg.FlashAttention = "auto",
    n_context: arg.Context = None,
    bandwidth: arg.Bandwidth = None,
    tflops: arg.Tflops = None,
    memory: arg.Memory = None,
    explain: arg.Explain = False,
    offline: arg.Offline = False,
    output: arg.Output = "table",
) -> None:
    """Predict how fast models run on a host, and how sure that is.

    Example: tokcast predict qwen3-30b-a3b@Q4_K_M --host "RTX 4090" -d 0,16k
    """
    from tokcast.cli import predict as command

    request = command.Request(
        addresses=(*(models or ()), *(model or ()), *map(_on_hub, hf or ())),
        host=host,
        backend=backend,
        runtime=runtime,
        n_prompt=n_prompt,
        n_gen=n_gen,
        n_depth=n_depth,
        n_ubatch=n_ubatch,
        type_k=type_k,
        type_v=type_v,
        flash_attn=flash_attn,
        n_context=n_context,
        bandwidth=bandwidth,
        tflops=tflops,
        memory=memory,
        explain=explain,
        offline=offline,
    )
    raise typer.Exit(command.run(request, output))


@app.command()
def select(
    models: arg.Models = None,
    search: arg.Search = None,
    author: arg.Author = None,
    limit: arg.Limit = "20",
    local: arg.Local = False,
    list_file: arg.ListFile = None,
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
    max_ttft: arg.MaxTtft = None,
    max_turn: arg.MaxTurn = None,
    quality_floor: arg.QualityFloor = None,
    licence: arg.Licences = None,
    sort: arg.Sort = "size",
    top: arg.Top = "15",
    quants: arg.Quants = False,
    why: arg.Why = None,
    what_if: arg.WhatIf = None,
    hosts: arg.Hosts = None,
    plot: arg.Plot = None,
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


@app.command()
def inspect(
    model: arg.OneModel,
    tensors: arg.Tensors = False,
    offline: arg.Offline = False,
    output: arg.Output = "table",
) -> None:
    """Show what is in a model file: bytes by type and component.

    Example: tokcast inspect ./gemma3-270m-q4_k_m.gguf
    """
    from tokcast.cli import inspect as command

    raise typer.Exit(command.run(model, tensors, offline, output))


@app.command()
def doctor(output: arg.Output = "table") -> None:
    """Check this installation, this machine and the model folders."""
    from tokcast.cli import doctor as command

    raise typer.Exit(command.run(output))


@app.command()
def fit(
    save: arg.Save = None,
    effects: arg.Effects = False,
    output: arg.Output = "table",
) -> None:
    """Fit the coefficients again, with their held-out error.

    Example: tokcast fit --effects
    """
    from tokcast.cli import fit as command

    raise typer.Exit(command.run(save, effects, output))


@app.command()
def evaluate(
    on: arg.On = None,
    n_folds: arg.Folds = "10",
    save: arg.SaveScores = None,
    cluster: arg.Cluster = None,
    output: arg.Output = "table",
) -> None:
    """Score predictions on what the fit did not see.

    Example: tokcast evaluate --on measurements.csv -o json
    """
    from tokcast.cli import evaluate as command
    from tokcast.cli.options import one_count

    request = command.Request(on, one_count(n_folds, "--folds", at_least=2), save, cluster)
    raise typer.Exit(command.run(request, output))


@app.command()
def serve(
    host: arg.Bind = "127.0.0.1",
    port: arg.Port = "8047",
    public: arg.Public = False,
    folder: arg.Folders = None,
    mirror: arg.Mirrors = None,
    name: arg.Names = None,
) -> None:
    """Open the page and the API on this machine.

    Example: tokcast serve --folder ~/models
    """
    from tokcast.cli import serve as command

    request = command.Request(
        host=host,
        port=port,
        public=public,
        folders=tuple(folder or ()),
        mirrors=tuple(mirror or ()),
        names=tuple(name or ()),
    )
    raise typer.Exit(command.run(request))


@app.command()
def verify(file: arg.Exported, output: arg.Output = "table") -> None:
    """Check the receipt of an exported file.

    Example: tokcast verify tokcast-worksheet.json
    """
    from tokcast.cli import verify as command

    raise typer.Exit(command.run(file, output))


@hosts_app.command("list")
def hosts_list(
    text: arg.NamePart = None,
    output: arg.Output = "table",
) -> None:
    """List the known chips.

    Example: tokcast hosts list "rtx 30"
    """
    from tokcast.cli import hosts as command

    raise typer.Exit(command.run_list(text, output))


@hosts_app.command("show")
def hosts_show(
    name: arg.Chip,
    output: arg.Output = "table",
) -> None:
    """Show a chip's published figures and where they come from.

    Example: tokcast hosts show "rtx 4090"
    """
    from tokcast.cli import hosts as command

    raise typer.Exit(command.run_show(name, output))


@hosts_app.command("detect")
def hosts_detect(output: arg.Output = "table") -> None:
    """Say what this machine has, and what could not be read."""
    from tokcast.cli import hosts as command

    raise typer.Exit(command.run_detect(output))


@plot_app.command("roofline")
def plot_roofline(
    models: arg.Models = None,
    host: arg.HostNames = None,
    backend: arg.Backend = None,
    n_prompt: arg.Prompt = "512",
    n_depth: arg.Depth = "0",
    phase: arg.Phase = "decode",
    theme: arg.Theme = "light",
    width: arg.Width = "760",
    offline: arg.Offline = False,
    output: arg.DrawingFile = "roofline.svg",
) -> None:
    """Draw the roofline with each phase under it.

    Example: tokcast plot roofline llama-3.1-8b@Q4_K_M --host 'RTX 4090' -o roofline.svg
    """
    given = (n_prompt, n_depth, phase, theme, width)
    raise typer.Exit(_plot("roofline", models, host, backend, given, offline, output))


@plot_app.command("depth")
def plot_depth(
    models: arg.Models = None,
    host: arg.HostNames = None,
    backend: arg.Backend = None,
    n_prompt: arg.Prompt = "512",
    n_depth: arg.Depth = "0",
    phase: arg.Phase = "decode",
    theme: arg.Theme = "light",
    width: arg.Width = "760",
    offline: arg.Offline = False,
    output: arg.DrawingFile = "depth.svg",
) -> None:
    """Draw speed over context depth, with its interval.

    Example: tokcast plot depth qwen3-8b@Q4_K_M --host 'RTX 3090' -o depth.png
    """
    given = (n_prompt, n_depth, phase, theme, width)
    raise typer.Exit(_plot("depth", models, host, backend, given, offline, output))


@plot_app.command("quants")
def plot_quants(
    models: arg.Models = None,
    host: arg.HostNames = None,
    backend: arg.Backend = None,
    n_prompt: arg.Prompt = "512",
    n_depth: arg.Depth = "0",
    phase: arg.Phase = "decode",
    theme: arg.Theme = "light",
    width: arg.Width = "760",
    offline: arg.Offline = False,
    output: arg.DrawingFile = "quants.svg",
) -> None:
    """Draw a model's file types beside each other.

    Example: tokcast plot quants llama-3.1-8b --host 'RTX 3060 12GB' -o quants.svg
    """
    given = (n_prompt, n_depth, phase, theme, width)
    raise typer.Exit(_plot("quants", models, host, backend, given, offline, output))


@plot_app.command("hosts")
def plot_hosts(
    models: arg.Models = None,
    host: arg.HostNames = None,
    backend: arg.Backend = None,
    n_prompt: arg.Prompt = "512",
    n_depth: arg.Depth = "0",
    phase: arg.Phase = "decode",
    theme: arg.Theme = "light",
    width: arg.Width = "760",
    offline: arg.Offline = False,
    output: arg.DrawingFile = "hosts.svg",
) -> None:
    """Draw one model on several hosts.

    Example: tokcast plot hosts gpt-oss-20b@MXFP4_MOE -o hosts.svg
    """
    given = (n_prompt, n_depth, phase, theme, width)
    raise typer.Exit(_plot("hosts", models, host, backend, given, offline, output))


def _plot(
    kind: str,
    models: list[str] | None,
    hosts: list[str] | None,
    backend: str | None,
    given: tuple[str, str, str, str, str],
    offline: bool,
    output: str,
) -> int:
    from tokcast.cli import plot as command

    if not models:
        raise InputError("no model given; expected a file, owner/repo[:quant] or name@FILETYPE")
    n_prompt, n_depth, phase, theme, width = given
    request = command.Request(
        models=tuple(models),
        hosts=tuple(hosts or ()),
        backend=backend,
        n_prompt=n_prompt,
        n_depth=n_depth,
        phase=phase,
        theme=theme,
        width=width,
        offline=offline,
        output=output,
    )
    return command.run(kind, request)


@app.command()
def calibrate(
    budget: arg.Budget = "5m",
    files: arg.WithFiles = None,
    runtime: arg.MeasureRuntime = None,
    threads: arg.Threads = None,
    host: arg.HostName = None,
    bandwidth: arg.Bandwidth = None,
    fresh: arg.Fresh = False,
    refit: arg.Refit = False,
    plan: arg.PlanOnly = False,
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
    runtime: arg.MeasureRuntime = None,
    n_prompt: arg.Prompts = "512",
    n_gen: arg.Generations = "128",
    n_depth: arg.MeasureDepths = None,
    repeats: arg.Repeats = "5",
    launches: arg.Launches = "1",
    threads: arg.Threads = None,
    n_batch: arg.Batch = "2048",
    n_ubatch: arg.MicroBatch = "512",
    flash_attn: arg.FlashAttention = "auto",
    type_k: arg.CacheTypeK = "f16",
    type_v: arg.CacheTypeV = "f16",
    n_gpu_layers: arg.GpuLayers = None,
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
def measure_list(text: arg.RunPart = None, output: arg.Output = "table") -> None:
    """List the runs that are kept."""
    from tokcast.cli import runs as command

    raise typer.Exit(command.run_list(text, output))


@measure_app.command("show")
def measure_show(id_: arg.RunId, output: arg.Output = "table") -> None:
    """Show a run with all its samples."""
    from tokcast.cli import runs as command

    raise typer.Exit(command.run_show(id_, output))


@measure_app.command("export")
def measure_export(text: arg.RunPart = None, to: arg.To = None) -> None:
    """Print figures as CSV in the interchange schema, ready to share."""
    from tokcast.cli import runs as command

    raise typer.Exit(command.run_export(text, to))


@measure_app.command("import")
def measure_import(
    files: arg.Files, host: arg.HostName = None, output: arg.Output = "table"
) -> None:
    """Keep the figures of llama-bench, mlx_lm.benchmark and LocalScore output."""
    from tokcast.cli import runs as command

    raise typer.Exit(command.run_import(files, host, output))


@measure_app.command("check")
def measure_check(file: arg.OneFile = None, output: arg.Output = "table") -> None:
    """Say which figures, of a file or of those kept, are not to be trusted."""
    from tokcast.cli import runs as command

    raise typer.Exit(command.run_check(file, output))


def main() -> None:
    """Run the command line; bad input becomes one line on stderr and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a character gets its escape, not a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader went away (`| head`): not an error; keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)


def _run() -> int:
    command = typer.main.get_command(app)
    skip_adapters(command)
    hide_types(command)
    try:
        # Not the command's own `main`, which turns a broken pipe into a failure.
        with command.make_context("tokcast", sys.argv[1:]) as context:
            command.invoke(context)
        return 0
    except typer.Exit as end:
        return end.exit_code
    except InputError as error:
        print(f"tokcast: {plain(str(error))}", file=sys.stderr)
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        message = usage_error(error)
        if message is None:
            raise
        print(message, file=sys.stderr)
    return 2
