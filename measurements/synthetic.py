"""GGUF files with random weights of given shapes and types, for measuring without a download.

Speed depends on shapes and types, hardly on what the weights say. No tokenizer is written:
llama.cpp takes `no_vocab` and a vocabulary size.
"""

import errno
import shutil
from dataclasses import replace
from pathlib import Path

from tokcast.measurements.random_blocks import Bytes, bytes_of
from tokcast.predictor.errors import InputError
from tokcast.predictor.gguf_write import data_offsets, header_bytes
from tokcast.predictor.header import Header

_SUFFIX = ".partial"


class NoRoomError(InputError):
    """The disk has no room for a model: every further one would fail alike."""


def need_bytes(header: Header) -> int:
    """Return the size of the file that `write` makes."""
    head, n_data = header_bytes(_with_tokenizer(header).metadata, header.tensors)
    return len(head) + n_data


def _with_tokenizer(header: Header) -> Header:
    metadata = {**header.metadata, "tokenizer.ggml.model": "no_vocab"}
    return replace(header, metadata=metadata)


def check_room(folder: Path, n_bytes: int) -> None:
    """Raise NoRoomError where a folder's disk has no room for so many bytes."""
    free = shutil.disk_usage(folder).free
    if free < n_bytes * 1.05 + (64 << 20):
        raise NoRoomError(
            f"{folder}: {n_bytes / 1e9:.2f} GB needed, {free / 1e9:.2f} GB free; free some space"
            " or set TOKCAST_SCRATCH to a folder on another disk"
        )


def write(path: Path, header: Header, seed: int = 0) -> None:
    """Write a GGUF file with random weights; what is there already is replaced when done.

    Raises NoRoomError when the disk fills up; nothing is left of the file then.
    """
    made = _with_tokenizer(header)
    head, n_data = header_bytes(made.metadata, made.tensors)
    check_room(path.parent, len(head) + n_data)
    offsets = data_offsets(made.tensors)
    tiles: dict[str, Bytes] = {}
    unfinished = path.with_name(path.name + _SUFFIX)
    try:
        with unfinished.open("wb") as file:
            file.write(head)
            for tensor, offset in zip(made.tensors, offsets, strict=False):
                file.seek(len(head) + offset)
                for part in bytes_of(tensor, tiles, seed):
                    file.write(part)
            file.truncate(len(head) + n_data)
        unfinished.replace(path)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoRoomError(
                f"{path.parent}: the disk is full; free {n_data / 1e9:.2f} GB or set"
                " TOKCAST_SCRATCH to a folder on another disk"
            ) from error
        raise InputError(f"{path}: {error.strerror}; expected a folder to write to") from error
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
