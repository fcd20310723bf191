"""What `predict` and `plan` take about where a model lives: llama.cpp's flags by its names."""

from typing import Annotated

import typer

LayersOnCards = Annotated[
    str | None,
    typer.Option(
        "-ngl",
        "--n-gpu-layers",
        metavar="N",
        help="Layers on the cards, the output counted as one; default all.",
    ),
]
ExpertsOnCpu = Annotated[
    str | None,
    typer.Option(
        "-ncmoe",
        "--n-cpu-moe",
        metavar="N",
        help="Layers, from the first, whose experts stay in main memory.",
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option(
        "-ot",
        "--override-tensor",
        metavar="REGEX=DEVICE,...",
        help="Tensors that go elsewhere, as 'ffn_up_exps=CPU'.",
    ),
]
TensorSplit = Annotated[
    str | None,
    typer.Option(
        "-ts", "--tensor-split", metavar="A,B,...", help="Proportions of the cards, as 3,1."
    ),
]
SplitMode = Annotated[
    str | None,
    typer.Option("-sm", "--split-mode", metavar="MODE", help="layer, row or none."),
]
MainGpu = Annotated[
    str | None,
    typer.Option("-mg", "--main-gpu", metavar="N", help="The one card used with -sm none."),
]
NoKvOffload = Annotated[
    bool, typer.Option("-nkvo", "--no-kv-offload", help="Keep the K/V cache in main memory.")
]
FitPlacement = Annotated[
    bool, typer.Option("--fit", help="Choose what fits, as llama-fit-params does.")
]
Parallel = Annotated[
    str | None,
    typer.Option("-np", "--parallel", metavar="N", help="Sequences that share the context."),
]
SwaFull = Annotated[bool, typer.Option("--swa-full", help="Keep all positions of sliding layers.")]
ThreadsUsed = Annotated[
    str | None, typer.Option("-t", "--threads", metavar="N", help="Threads of the processor.")
]
BatchSize = Annotated[
    str | None,
    typer.Option("-b", "--batch-size", metavar="N", help="Batch; a micro-batch is no larger."),
]
