"""What `roofline` takes."""

from typing import Annotated

import typer

from tokcast.cli import arguments as arg

app = typer.Typer()
roofline_app = typer.Typer(
    help="Walls of layouts, memory levels, emulated FP64, stages.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.add_typer(roofline_app, name="roofline")

SectionPart = Annotated[
    str | None, typer.Argument(metavar="TEXT", help="Only sections whose title holds this.")
]
StageFile = Annotated[
    str | None,
    typer.Argument(metavar="FILE", help="Stages in TOML; default: a 3D Gaussian-splatting frame."),
]
LevelsFile = Annotated[
    str | None,
    typer.Argument(
        metavar="FILE", help="Machines and mappings in TOML; default: FlashAttention on two NPUs."
    ),
]
KernelsFile = Annotated[
    str | None,
    typer.Argument(metavar="FILE", help="Machine and kernels in TOML; default: a B300."),
]
Devices = Annotated[str, typer.Option("--devices", metavar="N", help="Devices, all alike.")]
LayoutNames = Annotated[
    str | None,
    typer.Option(
        "--layout",
        metavar="NAME,...",
        help="tp: all divided; ep: experts divided, the rest on each device; default: both.",
    ),
]
Weights = Annotated[
    str | None,
    typer.Option("--weights", metavar="TYPE", help="Type of the matrices instead, as F8_E4M3."),
]
Cache = Annotated[
    str, typer.Option("-ctk", "--cache-type-k", metavar="TYPE", help="Type of the K/V cache.")
]
Usable = Annotated[
    str,
    typer.Option("--usable", metavar="SHARE", help="Share of the memory for weights and K/V."),
]
Network = Annotated[
    str, typer.Option("--network", metavar="GB/S", help="Network bandwidth of a device.")
]
Message = Annotated[
    str, typer.Option("--message", metavar="TIME", help="Time of a collective of no length.")
]


@roofline_app.command("figures")
def roofline_figures(text: SectionPart = None, output: arg.Output = "table") -> None:
    """Show published figures beside what the formulas give.

    Example: tokcast roofline figures floors
    """
    from tokcast.cli import roofline_figures as command

    raise typer.Exit(command.run(text, output))


@roofline_app.command("walls")
def roofline_walls(
    model: arg.OneModel,
    host: arg.HostName = None,
    devices: Devices = "8",
    layout: LayoutNames = None,
    n_depth: arg.Depth = "8k",
    weights: Weights = None,
    type_k: Cache = "bf16",
    memory: arg.Memory = None,
    usable: Usable = "90%",
    bandwidth: arg.Bandwidth = None,
    tflops: arg.Tflops = None,
    network: Network = "50",
    message: Message = "20us",
    offline: arg.Offline = False,
    output: arg.Output = "table",
) -> None:
    """Compare layouts by which wall binds first as requests grow.

    Example: tokcast roofline walls deepseek-v3.2 --weights F8_E4M3 --host H20 --devices 16
    """
    from tokcast.cli import roofline_walls as command

    request = command.Request(
        model=model,
        host=host,
        devices=devices,
        layouts=layout,
        n_depth=n_depth,
        weights=weights,
        cache=type_k,
        memory=memory,
        usable=usable,
        bandwidth=bandwidth,
        tflops=tflops,
        network=network,
        message=message,
        offline=offline,
    )
    raise typer.Exit(command.run(request, output))


@roofline_app.command("stages")
def roofline_stages(file: StageFile = None, output: arg.Output = "table") -> None:
    """Name each stage's bottleneck, and the most that changes bring.

    Example: tokcast roofline stages renderer.toml
    """
    from tokcast.cli import roofline_stages as command

    raise typer.Exit(command.run(file, output))


@roofline_app.command("levels")
def roofline_levels(file: LevelsFile = None, output: arg.Output = "table") -> None:
    """Show the ridge at each memory level, and how far to fuse.

    Example: tokcast roofline levels npu.toml
    """
    from tokcast.cli import roofline_levels as command

    raise typer.Exit(command.run(file, output))


@roofline_app.command("emulate")
def roofline_emulate(file: KernelsFile = None, output: arg.Output = "table") -> None:
    """Hold FP64 emulated on matrix units against native FP64.

    Example: tokcast roofline emulate gpu.toml
    """
    from tokcast.cli import roofline_emulate as command

    raise typer.Exit(command.run(file, output))
