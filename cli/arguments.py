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
Energy = Annotated[bool, typer.Option("--energy", help="Joules a token, and of 1,000 answers.")]
Price = Annotated[
    str | None, typer.Option("--price", metavar="N", help="What a kWh costs: answers' cost.")
]
GridName = Annotated[
    str | None, typer.Option("--grid", metavar="CODE", help="Country, or grams of CO2 a kWh.")
]
PowerLimit = Annotated[
    str | None, typer.Option("--power-limit", metavar="W", help="Power limit of each card.")
]
Tensors = Annotated[bool, typer.Option("--tensors", help="List every tensor.")]
Save = Annotated[
    str | None, typer.Option("--save", metavar="FILE", help="Write the coefficients here.")
]
FitPart = Annotated[
    str,
    typer.Option("--part", metavar="PART", help="models, or offload: what placements add."),
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
Folds = Annotated[
    str, typer.Option("--folds", metavar="N", help="Parts of the chips to leave out in turn.")
]
NamePart = Annotated[
    str | None, typer.Argument(metavar="TEXT", help="Only chips whose name holds this.")
]
Chip = Annotated[str, typer.Argument(metavar="NAME", help="A chip, as in --host.")]
Bind = Annotated[
    str,
    typer.Option("--host", metavar="ADDRESS", help="Address to listen on; others may reach it."),
]
Port = Annotated[str, typer.Option("--port", metavar="N", help="Port to listen on; 0 for any.")]
Public = Annotated[
    bool, typer.Option("--public", help="Read no local file, fetch nothing, tell no device.")
]
Folders = Annotated[
    list[str] | None,
    typer.Option("--folder", metavar="DIR", help="Offer the GGUF files below this folder."),
]
Mirrors = Annotated[
    list[str] | None,
    typer.Option("--mirror", metavar="URL", help="A place beside the Hub to fetch headers from."),
]
Names = Annotated[
    list[str] | None,
    typer.Option("--name", metavar="NAME", help="A Host name that this server goes by."),
]
Exported = Annotated[str, typer.Argument(metavar="FILE", help="A JSON, CSV or SVG export.")]
HostNames = Annotated[
    list[str] | None,
    typer.Option("--host", metavar="NAME", help="A chip, as for predict; may come again."),
]
Prompt = Annotated[str, typer.Option("-p", "--n-prompt", metavar="N", help="Prompt tokens.")]
Depth = Annotated[str, typer.Option("-d", "--n-depth", metavar="N", help="Tokens cached.")]
Phase = Annotated[str, typer.Option("--phase", metavar="NAME", help="decode or prefill.")]
Theme = Annotated[str, typer.Option("--theme", metavar="NAME", help="light or dark.")]
Width = Annotated[str, typer.Option("--width", metavar="N", help="Width in pixels.")]
DrawingFile = Annotated[
    str, typer.Option("-o", "--output", metavar="FILE", help="File to write: .svg or .png.")
]
Budget = Annotated[
    str, typer.Option("--budget", metavar="TIME", help="How long to measure: 60s, 5m, 20m.")
]
WithFiles = Annotated[
    list[str] | None,
    typer.Option("--with", metavar="FILE", help="Use llama-bench results instead of measuring."),
]
MeasureRuntime = Annotated[
    str | None,
    typer.Option("--runtime", metavar="NAME", help="llama.cpp, llama-bench or mlx."),
]
Threads = Annotated[
    str | None, typer.Option("-t", "--threads", metavar="N", help="Threads; default all cores.")
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
To = Annotated[str | None, typer.Option("--to", metavar="FILE", help="Write there instead.")]
Files = Annotated[list[str], typer.Argument(metavar="FILE...", help="Output of a benchmark.")]
OneFile = Annotated[
    str | None, typer.Argument(metavar="FILE", help="Output of a benchmark; default: what is kept.")
]
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
