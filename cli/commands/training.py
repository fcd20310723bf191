"""What `energy train`, `energy train-fit` and `energy sweep` take."""

from typing import Annotated

import typer

from tokcast.cli import arguments as arg
from tokcast.cli.commands.energy import energy_app

# The commands are of the group that `energy` makes; nothing is added to the top level here.
app = typer.Typer()

Config = Annotated[
    str,
    typer.Option("--config", metavar="MODEL", help="config.json, name, or TOML recipe."),
]
Devices = Annotated[
    str | None, typer.Option("--devices", metavar="N", help="Devices; default 1, or --host's.")
]
Strategy = Annotated[
    str | None,
    typer.Option("--strategy", metavar="NAME", help="none, fsdp, tp, dp, pp, or such as tp2+pp4."),
]
TrainBatch = Annotated[
    str | None,
    typer.Option("-b", "--batch", metavar="N", help="Sequences of a step, all devices; default 8."),
]
Length = Annotated[
    str | None, typer.Option("--length", metavar="N", help="Tokens of a sequence; default 512.")
]
Micro = Annotated[
    str | None, typer.Option("--micro", metavar="N", help="Micro-batches of a step; default 1.")
]
Steps = Annotated[
    str | None, typer.Option("--steps", metavar="N", help="Steps of the run; default 1000.")
]
Precision = Annotated[
    str | None,
    typer.Option("--precision", metavar="NAME", help="bf16, fp16, tf32 or fp32."),
]
Recompute = Annotated[
    bool | None,
    typer.Option("--recompute/--keep", help="Compute activations again, or keep them."),
]
PowerLimit = Annotated[
    str | None, typer.Option("--power-limit", metavar="W", help="Watts each card may draw.")
]
LinkRate = Annotated[
    str | None, typer.Option("--link", metavar="GB/S", help="What devices send each other.")
]
Speedup = Annotated[
    str | None, typer.Option("--speedup", metavar="N", help="Measured speedup over one device.")
]
Watts = Annotated[
    str | None, typer.Option("--watts", metavar="W", help="Power of one device, where not known.")
]
OnSweep = Annotated[
    str | None, typer.Option("--on", metavar="FILE", help="A sweep of yours, in place of ours.")
]
SaveLaws = Annotated[
    str | None, typer.Option("--save", metavar="FILE", help="Write the laws here.")
]
SweepTo = Annotated[
    str, typer.Option("--to", metavar="FILE", help="The CSV that rows are added to.")
]
Points = Annotated[str, typer.Option("--points", metavar="N", help="Points of one process.")]


@energy_app.command("train")
def train(
    config: Config,
    host: arg.HostName = None,
    devices: Devices = None,
    strategy: Strategy = None,
    batch: TrainBatch = None,
    length: Length = None,
    micro: Micro = None,
    steps: Steps = None,
    precision: Precision = None,
    recompute: Recompute = None,
    power_limit: PowerLimit = None,
    link: LinkRate = None,
    speedup: Speedup = None,
    watts: Watts = None,
    threads: arg.Threads = None,
    bandwidth: arg.Bandwidth = None,
    tflops: arg.Tflops = None,
    memory: arg.Memory = None,
    price: arg.Price = None,
    grid: arg.GridName = None,
    output: arg.Output = "table",
) -> None:
    """Predict the seconds and joules of training a model.

    Example: tokcast energy train --config llama-3.2-1b --host "A100 PCIe 80GB" --devices 4
    """
    from tokcast.cli import energy_train as command
    from tokcast.cli.energy_recipe import Request

    request = Request(
        config=config,
        host=host,
        devices=devices,
        strategy=strategy,
        batch=batch,
        length=length,
        micro=micro,
        steps=steps,
        precision=precision,
        recompute=recompute,
        power_limit=power_limit,
        link=link,
        speedup=speedup,
        watts=watts,
        threads=threads,
        bandwidth=bandwidth,
        tflops=tflops,
        memory=memory,
        price=price,
        grid=grid,
    )
    raise typer.Exit(command.run(request, output))


@energy_app.command("train-fit")
def train_fit(on: OnSweep = None, save: SaveLaws = None, output: arg.Output = "table") -> None:
    """Fit the laws of training again, with their held-out error.

    Example: tokcast energy train-fit
    """
    from tokcast.cli import energy_train_fit as command

    raise typer.Exit(command.run(on, save, output))


@energy_app.command("sweep")
def sweep(
    to: SweepTo = "training_sweep.csv",
    points: Points = "120",
    budget: arg.Budget = "200s",
    threads: arg.Threads = None,
    output: arg.Output = "table",
) -> None:
    """Time training steps on this machine, to be gone on with.

    Example: tokcast energy sweep --to training_sweep.csv --budget 3min
    """
    from tokcast.cli import energy_sweep as command

    raise typer.Exit(command.run(to, points, budget, threads, output))
