"""What `predict` takes."""

from typing import Annotated

import typer

from tokcast.cli import arguments as arg
from tokcast.cli import placement_arguments as put

app = typer.Typer()

MoreModels = Annotated[
    list[str] | None, typer.Option("-m", "--model", metavar="MODEL", help="A model, as above.")
]
HubModels = Annotated[
    list[str] | None,
    typer.Option("-hf", "--hf-repo", metavar="OWNER/REPO[:QUANT]", help="A Hub repository."),
]
Depths = Annotated[
    str | None,
    typer.Option("-d", "--n-depth", metavar="N,...", help="Tokens cached; default 0,4k,16k."),
]
Context = Annotated[
    str | None, typer.Option("-c", "--ctx-size", metavar="N", help="Context to hold in memory.")
]
Explain = Annotated[
    bool, typer.Option("--explain", help="Show the ledger: bytes, operations, seconds.")
]
Energy = Annotated[bool, typer.Option("--energy", help="Joules a token, and of 1,000 answers.")]
PowerLimit = Annotated[
    str | None, typer.Option("--power-limit", metavar="W", help="Power limit of each card.")
]
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
    model: MoreModels = None,
    hf: HubModels = None,
    host: arg.HostName = None,
    backend: arg.Backend = None,
    runtime: arg.Runtime = None,
    n_prompt: arg.Prompts = "512",
    n_gen: arg.Generations = "128",
    n_depth: Depths = None,
    n_ubatch: arg.MicroBatch = "512",
    type_k: arg.CacheTypeK = "f16",
    type_v: arg.CacheTypeV = "f16",
    flash_attn: arg.FlashAttention = "auto",
    n_context: Context = None,
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
    energy: Energy = False,
    price: arg.Price = None,
    grid: arg.GridName = None,
    power_limit: PowerLimit = None,
    explain: Explain = False,
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
