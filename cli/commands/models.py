"""What `predict`, `select` and `inspect` take."""

from typing import Annotated

import typer

from tokcast.cli import arguments as arg
from tokcast.cli import placement_arguments as put

app = typer.Typer()

TraceFile = Annotated[
    str | None,
    typer.Option("--trace", metavar="FILE", help="Requests recorded by you, as tasks to time."),
]
Tasks = Annotated[
    str, typer.Option("--tasks", metavar="N", help="Tasks that a workload or trace is timed with.")
]
Seed = Annotated[str, typer.Option("--seed", metavar="N", help="Seed of the tasks drawn.")]


def _on_hub(address: str) -> str:
    """Return an address that no file or folder of this machine can take the place of."""
    return address if address.startswith(("hf:", "https://", "http://")) else f"hf:{address}"


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
    n_gpu_layers: put.LayersOnCards = None,
    n_cpu_moe: put.ExpertsOnCpu = None,
    override_tensor: put.Overrides = None,
    tensor_split: put.TensorSplit = None,
    split_mode: put.SplitMode = None,
    main_gpu: put.MainGpu = None,
    no_kv_offload: put.NoKvOffload = False,
    fit: put.FitPlacement = False,
    n_parallel: put.Parallel = None,
    swa_full: put.SwaFull = False,
    n_threads: put.ThreadsUsed = None,
    n_batch: put.BatchSize = None,
    bandwidth: arg.Bandwidth = None,
    tflops: arg.Tflops = None,
    memory: arg.Memory = None,
    workload: arg.WorkloadName = None,
    trace: TraceFile = None,
    n_tasks: Tasks = "1000",
    seed: Seed = "1",
    energy: arg.Energy = False,
    price: arg.Price = None,
    grid: arg.GridName = None,
    power_limit: arg.PowerLimit = None,
    explain: arg.Explain = False,
    offline: arg.Offline = False,
    output: arg.Output = "table",
) -> None:
    """Predict how fast models run on a host, and how sure that is.

    Example: tokcast predict qwen3-30b-a3b@Q4_K_M --host "RTX 4090" -d 0,16k
    """
    from tokcast.cli import predict as command
    from tokcast.cli.placement_words import Words
    from tokcast.cli.predict_request import Request

    request = Request(
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
        energy=energy,
        price=price,
        grid=grid,
        power_limit=power_limit,
        explain=explain,
        offline=offline,
        workload=workload,
        trace=trace,
        n_tasks=n_tasks,
        seed=seed,
        placement=Words(
            n_gpu_layers=n_gpu_layers,
            n_cpu_moe=n_cpu_moe,
            override_tensor=tuple(override_tensor or ()),
            tensor_split=tensor_split,
            split_mode=split_mode,
            main_gpu=main_gpu,
            no_kv_offload=no_kv_offload,
            fit=fit,
            n_parallel=n_parallel,
            swa_full=swa_full,
            n_threads=n_threads,
            n_batch=n_batch,
        ),
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
