"""Models in files and folders of this machine."""

from pathlib import Path

from tokcast.predictor.errors import InputError
from tokcast.predictor.gguf import read_gguf_file
from tokcast.predictor.header import Header
from tokcast.predictor.sources.choose import is_checkpoint, models
from tokcast.predictor.sources.places import files_in
from tokcast.predictor.text import listing, printable

_OF_A_FOLDER = (".safetensors", ".safetensors.index.json", "config.json")


def read_path(path: Path) -> Header:
    """Return the header of a GGUF file with all its parts, or of the one model in a folder.

    Raises InputError where a folder holds several models, or none.
    """
    if path.is_dir():
        return _read_folder(path)
    if path.name.endswith(_OF_A_FOLDER) and path.with_name("config.json").is_file():
        return _read_mlx(path.parent)
    return read_gguf_file(path)


def _read_folder(folder: Path) -> Header:
    files = files_in(folder)
    found = models(files)
    shown = printable(str(folder), 1000)
    if len(found) > 1:
        raise InputError(
            f"{shown}: expected one model, found {len(found)}: {listing(found)}; "
            "give the path of one of them"
        )
    for name in found:
        return read_gguf_file(files[name])
    if is_checkpoint(files):
        return _read_mlx(folder)
    incomplete = [name for name in files if name.endswith(".gguf")]
    inside = listing(incomplete or files) or "nothing"
    raise InputError(
        f"{shown}: expected a .gguf file with all its parts, or config.json with safetensors; "
        f"found {inside}"
    )


def _read_mlx(folder: Path) -> Header:
    from tokcast.predictor.mlx import read_mlx_folder

    return read_mlx_folder(folder)
