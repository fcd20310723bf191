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
Bandwidth = Annotated[
    str | None, typer.Option("--bandwidth", metavar="GB/S", help="Memory bandwidth to assume.")
]
Tflops = Annotated[
    str | None, typer.Option("--tflops", metavar="TFLOPS", help="FP16 matrix rate to assume.")
]
Memory = Annotated[
    str | None, typer.Option("--memory", metavar="SIZE", help="Device memory to assume, as 24G.")
]
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
Prompt = Annotated[str, typer.Option("-p", "--n-prompt", metavar="N", help="Prompt tokens.")]
Depth = Annotated[str, typer.Option("-d", "--n-depth", metavar="N", help="Tokens cached.")]
Phase = Annotated[str, typer.Option("--phase", metavar="NAME", help="decode or prefill.")]
Budget = Annotated[
    str, typer.Option("--budget", metavar="TIME", help="How long to measure: 60s, 5m, 20m.")
]
Threads = Annotated[
    str | None, typer.Option("-t", "--threads", metavar="N", help="Threads; default all cores.")
]
To = Annotated[str | None, typer.Option("--to", metavar="FILE", help="Write there instead.")]
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
WorkloadName = Annotated[
    str | None,
    typer.Option("--workload", metavar="NAME", help="Lengths of real use, as chat or rag."),
]
Price = Annotated[
    str | None, typer.Option("--price", metavar="N", help="What a kWh costs: answers' cost.")
]
GridName = Annotated[
    str | None, typer.Option("--grid", metavar="CODE", help="Country, or grams of CO2 a kWh.")
]
