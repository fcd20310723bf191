"""What `plot` takes."""

from typing import Annotated

import typer

from tokcast.cli import arguments as arg
from tokcast.predictor.errors import InputError

app = typer.Typer()
plot_app = typer.Typer(
    help="Draw to an SVG or PNG file.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(plot_app, name="plot")

HostNames = Annotated[
    list[str] | None,
    typer.Option("--host", metavar="NAME", help="A chip, as for predict; may come again."),
]
Theme = Annotated[str, typer.Option("--theme", metavar="NAME", help="light or dark.")]
Width = Annotated[str, typer.Option("--width", metavar="N", help="Width in pixels.")]
DrawingFile = Annotated[
    str, typer.Option("-o", "--output", metavar="FILE", help="File to write: .svg or .png.")
]


@plot_app.command("roofline")
def plot_roofline(
    models: arg.Models = None,
    host: HostNames = None,
    backend: arg.Backend = None,
    n_prompt: arg.Prompt = "512",
    n_depth: arg.Depth = "0",
    phase: arg.Phase = "decode",
    theme: Theme = "light",
    width: Width = "760",
    offline: arg.Offline = False,
    output: DrawingFile = "roofline.svg",
) -> None:
    """Draw the roofline with each phase under it.

    Example: tokcast plot roofline llama-3.1-8b@Q4_K_M --host 'RTX 4090' -o roofline.svg
    """
    given = (n_prompt, n_depth, phase, theme, width)
    raise typer.Exit(_plot("roofline", models, host, backend, given, offline, output))


@plot_app.command("depth")
def plot_depth(
    models: arg.Models = None,
    host: HostNames = None,
    backend: arg.Backend = None,
    n_prompt: arg.Prompt = "512",
    n_depth: arg.Depth = "0",
    phase: arg.Phase = "decode",
    theme: Theme = "light",
    width: Width = "760",
    offline: arg.Offline = False,
    output: DrawingFile = "depth.svg",
) -> None:
    """Draw speed over context depth, with its interval.

    Example: tokcast plot depth qwen3-8b@Q4_K_M --host 'RTX 3090' -o depth.png
    """
    given = (n_prompt, n_depth, phase, theme, width)
    raise typer.Exit(_plot("depth", models, host, backend, given, offline, output))


@plot_app.command("quants")
def plot_quants(
    models: arg.Models = None,
    host: HostNames = None,
    backend: arg.Backend = None,
    n_prompt: arg.Prompt = "512",
    n_depth: arg.Depth = "0",
    phase: arg.Phase = "decode",
    theme: Theme = "light",
    width: Width = "760",
    offline: arg.Offline = False,
    output: DrawingFile = "quants.svg",
) -> None:
    """Draw a model's file types beside each other.

    Example: tokcast plot quants llama-3.1-8b --host 'RTX 3060 12GB' -o quants.svg
    """
    given = (n_prompt, n_depth, phase, theme, width)
    raise typer.Exit(_plot("quants", models, host, backend, given, offline, output))


@plot_app.command("hosts")
def plot_hosts(
    models: arg.Models = None,
    host: HostNames = None,
    backend: arg.Backend = None,
    n_prompt: arg.Prompt = "512",
    n_depth: arg.Depth = "0",
    phase: arg.Phase = "decode",
    theme: Theme = "light",
    width: Width = "760",
    offline: arg.Offline = False,
    output: DrawingFile = "hosts.svg",
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
