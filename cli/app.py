"""The typer application: what each command takes. Bodies live in their own modules."""

import io
import os
import sys
from typing import Annotated

import typer

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

Output = Annotated[
    str, typer.Option("-o", "--output", metavar="FORMAT", help="table, json, jsonl, csv or md.")
]
Offline = Annotated[
    bool, typer.Option("--offline", help="Use local files, caches and the catalogue only.")
]
HostName = Annotated[
    str | None,
    typer.Option(
        "--host",
        metavar="NAME",
        help='A chip ("RTX 4090", "2x RTX 3090"), a TOML file, or this machine.',
    ),
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
    models: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODEL",
            help="File, folder, URL, owner/repo[:quant], ollama:name, or name@FILETYPE.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option("-m", "--model", metavar="MODEL", help="A model, as above.")
    ] = None,
    hf: Annotated[
        list[str] | None,
        typer.Option("-hf", "--hf-repo", metavar="OWNER/REPO[:QUANT]", help="A Hub repository."),
    ] = None,
    host: HostName = None,
    backend: Annotated[
        str | None,
        typer.Option(
            "--backend", metavar="NAME", help="CUDA, ROCm, Vulkan, Metal, MLX, SYCL or CPU."
        ),
    ] = None,
    runtime: Annotated[
        str | None, typer.Option("--runtime", metavar="NAME", help="llama.cpp or mlx.")
    ] = None,
    n_prompt: Annotated[
        str, typer.Option("-p", "--n-prompt", metavar="N,...", help="Prompt tokens.")
    ] = "512",
    n_gen: Annotated[
        str, typer.Option("-n", "--n-gen", metavar="N,...", help="Tokens to generate.")
    ] = "128",
    n_depth: Annotated[
        str | None,
        typer.Option(
            "-d", "--n-depth", metavar="N,...", help="Cached tokens before; default 0,4k,16k."
        ),
    ] = None,
    n_ubatch: Annotated[
        str, typer.Option("-ub", "--ubatch-size", metavar="N", help="Micro-batch.")
    ] = "512",
    type_k: Annotated[
        str, typer.Option("-ctk", "--cache-type-k", metavar="TYPE", help="Type of the K cache.")
    ] = "f16",
    type_v: Annotated[
        str, typer.Option("-ctv", "--cache-type-v", metavar="TYPE", help="Type of the V cache.")
    ] = "f16",
    flash_attn: Annotated[
        str, typer.Option("-fa", "--flash-attn", metavar="on|off|auto", help="Flash attention.")
    ] = "auto",
    n_context: Annotated[
        str | None,
        typer.Option("-c", "--ctx-size", metavar="N", help="Context to hold in memory."),
    ] = None,
    bandwidth: Bandwidth = None,
    tflops: Tflops = None,
    memory: Memory = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the ledger: bytes, operations, seconds.")
    ] = False,
    offline: Offline = False,
    output: Output = "table",
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
def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="As for predict.")],
    tensors: Annotated[bool, typer.Option("--tensors", help="List every tensor.")] = False,
    offline: Offline = False,
    output: Output = "table",
) -> None:
    """Show what is in a model file: bytes by type and component.

    Example: tokcast inspect ./gemma3-270m-q4_k_m.gguf
    """
    from tokcast.cli import inspect as command

    raise typer.Exit(command.run(model, tensors, offline, output))


@app.command()
def doctor(output: Output = "table") -> None:
    """Check this installation, this machine and the model folders."""
    from tokcast.cli import doctor as command

    raise typer.Exit(command.run(output))


@app.command()
def fit(
    save: Annotated[
        str | None, typer.Option("--save", metavar="FILE", help="Write the coefficients here.")
    ] = None,
    effects: Annotated[
        bool, typer.Option("--effects", help="List the effects with their standard errors.")
    ] = False,
    output: Output = "table",
) -> None:
    """Fit the coefficients again, with their held-out error.

    Example: tokcast fit --effects
    """
    from tokcast.cli import fit as command

    raise typer.Exit(command.run(save, effects, output))


@hosts_app.command("list")
def hosts_list(
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="Only chips whose name holds this.")
    ] = None,
    output: Output = "table",
) -> None:
    """List the known chips.

    Example: tokcast hosts list "rtx 30"
    """
    from tokcast.cli import hosts as command

    raise typer.Exit(command.run_list(text, output))


@hosts_app.command("show")
def hosts_show(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A chip, as in --host.")],
    output: Output = "table",
) -> None:
    """Show a chip's published figures and where they come from.

    Example: tokcast hosts show "rtx 4090"
    """
    from tokcast.cli import hosts as command

    raise typer.Exit(command.run_show(name, output))


@hosts_app.command("detect")
def hosts_detect(output: Output = "table") -> None:
    """Say what this machine has, and what could not be read."""
    from tokcast.cli import hosts as command

    raise typer.Exit(command.run_detect(output))


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
        return int(command(prog_name="tokcast", standalone_mode=False) or 0)
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
