"""What `triage` takes."""

from typing import Annotated

import typer

from tokcast.cli import arguments as arg

app = typer.Typer()

Target = Annotated[
    str,
    typer.Argument(
        metavar="RUN|FILE|NUMBER",
        help="A kept run's id, benchmark output, or tokens/s (or a time, as 12ms) with --model.",
    ),
]
TriageModel = Annotated[
    str | None,
    typer.Option("-m", "--model", metavar="MODEL", help="The model that was measured."),
]
Generated = Annotated[
    str, typer.Option("-n", "--n-gen", metavar="N", help="Tokens generated; decode.")
]
Threshold = Annotated[
    str,
    typer.Option(
        "--threshold", metavar="SHARE", help="How far above the floor calls for a profiler."
    ),
]


@app.command()
def triage(
    target: Target,
    model: TriageModel = None,
    host: arg.HostName = None,
    backend: arg.Backend = None,
    runtime: arg.Runtime = None,
    phase: arg.Phase = "decode",
    n_prompt: arg.Prompt = "512",
    n_gen: Generated = "128",
    n_depth: arg.Depth = "0",
    n_ubatch: arg.MicroBatch = "512",
    type_k: arg.CacheTypeK = "f16",
    type_v: arg.CacheTypeV = "f16",
    flash_attn: arg.FlashAttention = "auto",
    bandwidth: arg.Bandwidth = None,
    tflops: arg.Tflops = None,
    threshold: Threshold = "25%",
    offline: arg.Offline = False,
    output: arg.Output = "table",
) -> None:
    """Hold a measurement against the floor of its step.

    Below it an input is wrong; inside it the overlap is read out; above it the usual range of
    such a stack decides whether to profile, and what.

    Example: tokcast triage 130 -m llama-3.1-8b@Q4_K_M --host "RTX 4090"
    """
    from tokcast.cli import triage as command
    from tokcast.cli.triage_cases import Request

    request = Request(
        target=target,
        model=model,
        host=host,
        backend=backend,
        runtime=runtime,
        phase=phase,
        n_prompt=n_prompt,
        n_gen=n_gen,
        n_depth=n_depth,
        n_ubatch=n_ubatch,
        type_k=type_k,
        type_v=type_v,
        flash_attn=flash_attn,
        bandwidth=bandwidth,
        tflops=tflops,
        threshold=threshold,
        offline=offline,
    )
    raise typer.Exit(command.run(request, output))
