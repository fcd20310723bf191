"""What the commands take: flags with their help, those of llama-bench by its names.

All are text or switches; `tokcast.cli.options` gives them their meaning.
"""

from typing import Annotated

import typer

from tokcast.cli.render import check_format


def _checked(output: str) -> str:
    """Refuse an unknown format before any work is done for it."""
    check_format(output)
    return output


Output = Annotated[
    str,
    typer.Option(
        "-o",
        "--output",
        metavar="FORMAT",
        help="table, json, jsonl, csv or md.",
        callback=_checked,
    ),
]
Offline = Annotated[
    bool, typer.Option("--offline", help="Use local files, caches and the catalogue only.")
]
Models = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="MODEL",
        help="File, folder, URL, owner/repo[:quant], ollama:name, or name@FILETYPE.",
        show_default=False,
    ),
]
MoreModels = Annotated[
    list[str] | None, typer.Option("-m", "--model", metavar="MODEL", help="A model, as above.")
]
HubModels = Annotated[
    list[str] | None,
    typer.Option("-hf", "--hf-repo", metavar="OWNER/REPO[:QUANT]", help="A Hub repository."),
]
OneModel = Annotated[str, typer.Argument(metavar="MODEL", help="As for predict.")]
HostName = Annotated[
    str | None,
    typer.Option(
        "--host",
        metavar="NAME",
        help='A chip ("RTX 4090", "2x RTX 3090"), a TOML file, or this machine.',
    ),
]
Backend = Annotated[
    str | None,
    typer.Option("--backend", metavar="NAME", help="CUDA, ROCm, Vulkan, Metal, MLX, SYCL or CPU."),
]
Runtime = Annotated[str | None, typer.Option("--runtime", metavar="NAME", help="llama.cpp or mlx.")]
Prompts = Annotated[
    str, typer.Option("-p", "--n-prompt", metavar="N,...", help="Prompt tokens; 0 for none.")
]
Generations = Annotated[
    str, typer.Option("-n", "--n-gen", metavar="N,...", help="Tokens to generate; 0 for none.")
]
Depths = Annotated[
    str | None,
    typer.Option("-d", "--n-depth", metavar="N,...", help="Tokens cached; default 0,4k,16k."),
]
MicroBatch = Annotated[str, typer.Option("-ub", "--ubatch-size", metavar="N", help="Micro-batch.")]
CacheTypeK = Annotated[
    str, typer.Option("-ctk", "--cache-type-k", metavar="TYPE", help="Type of the K cache.")
]
CacheTypeV = Annotated[
    str, typer.Option("-ctv", "--cache-type-v", metavar="TYPE", help="Type of the V cache.")
]
FlashAttention = Annotated[
    str, typer.Option("-fa", "--flash-attn", metavar="on|off|auto", help="Flash attention.")
]
Context = Annotated[
    str | None, typer.Option("-c", "--ctx-size", metavar="N", help="Context to hold in memory.")
]
Bandwidth = Annotated[
    str | None, typer.Option("--bandwidth", metavar="GB/S", help="Memory bandwidth to assume.")
]
Tflops = Annotated[
    str | None, typer.Option("--tflops", metavar="TFLOPS", help="FP16 matrix rate to assume.")
]
Memory = Annotated[
    str | None, typer.Option("--memory", metavar="SIZE", help="Device memory to assume, as 24G.")
]
Explain = Annotated[
    bool, typer.Option("--explain", help="Show the ledger: bytes, operations, seconds.")
]
Tensors = Annotated[bool, typer.Option("--tensors", help="List every tensor.")]
Save = Annotated[
    str | None, typer.Option("--save", metavar="FILE", help="Write the coefficients here.")
]
Effects = Annotated[
    bool, typer.Option("--effects", help="List the effects with their standard errors.")
]
On = Annotated[
    str | None,
    typer.Option("--on", metavar="FILE", help="Score the released coefficients on its rows."),
]
SaveScores = Annotated[
    str | None,
    typer.Option("--save", metavar="FOLDER", help="Write accuracy.md, its plots and JSON here."),
]
Cluster = Annotated[
    str | None,
    typer.Option("--cluster", metavar="ADDRESS", help="Fit on a dask cluster, or on: local."),
]
Folds = Annotated[str, typer.Option("--folds", metavar="N", help="Parts to leave out in turn.")]
NamePart = Annotated[
    str | None, typer.Argument(metavar="TEXT", help="Only chips whose name holds this.")
]
Chip = Annotated[str, typer.Argument(metavar="NAME", help="A chip, as in --host.")]
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
AtDepth = Annotated[
    str, typer.Option("--at-depth", "-d", metavar="N", help="Tokens cached before the prompt.")
]
OnePrompt = Annotated[
    str, typer.Option("-p", "--n-prompt", metavar="N", help="Tokens of the prompt.")
]
HeldContext = Annotated[
    str | None,
    typer.Option("-c", "--context", "--ctx-size", metavar="N", help="Context to hold in memory."),
]
MinDecode = Annotated[
    str | None, typer.Option("--min-decode", metavar="TOK/S", help="Slowest generation.")
]
MaxTtft = Annotated[
    str | None, typer.Option("--max-ttft", metavar="TIME", help="Longest wait for a first token.")
]
MaxTurn = Annotated[
    str | None, typer.Option("--max-turn", metavar="TIME", help="Longest turn of a --workload.")
]
WorkloadName = Annotated[
    str | None,
    typer.Option("--workload", metavar="NAME", help="Lengths of real use, as chat or rag."),
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
