"""What `serve`, `verify` and `doctor` take."""

import typer

from tokcast.cli import arguments as arg

app = typer.Typer()


@app.command()
def doctor(output: arg.Output = "table") -> None:
    """Check this installation, this machine and the model folders."""
    from tokcast.cli import doctor as command

    raise typer.Exit(command.run(output))


@app.command()
def serve(
    host: arg.Bind = "127.0.0.1",
    port: arg.Port = "8047",
    public: arg.Public = False,
    folder: arg.Folders = None,
    mirror: arg.Mirrors = None,
    name: arg.Names = None,
) -> None:
    """Open the page and the API on this machine.

    Example: tokcast serve --folder ~/models
    """
    from tokcast.cli import serve as command

    request = command.Request(
        host=host,
        port=port,
        public=public,
        folders=tuple(folder or ()),
        mirrors=tuple(mirror or ()),
        names=tuple(name or ()),
    )
    raise typer.Exit(command.run(request))


@app.command()
def verify(file: arg.Exported, output: arg.Output = "table") -> None:
    """Check the receipt of an exported file.

    Example: tokcast verify tokcast-worksheet.json
    """
    from tokcast.cli import verify as command

    raise typer.Exit(command.run(file, output))
