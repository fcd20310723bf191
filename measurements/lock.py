"""One measurement at a time on a machine: two would disturb each other."""

import contextlib
import importlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from tokcast.predictor.errors import InputError

FILE = "measuring.lock"


def _try(file: IO[str]) -> bool:
    # Either module is on its own systems only, which a type checker sees one of.
    try:
        if os.name == "nt":
            windows: Any = importlib.import_module("msvcrt")
            windows.locking(file.fileno(), windows.LK_NBLCK, 1)
        else:
            posix: Any = importlib.import_module("fcntl")
            posix.flock(file, posix.LOCK_EX | posix.LOCK_NB)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def exclusive(
    folder: Path,
    say: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """Hold the machine for measuring; where another process does, say so once and wait.

    The lock goes with its process, however that ends.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / FILE).open("a+", encoding="ascii")
    except OSError as error:
        raise InputError(
            f"{folder}: {error.strerror}; set TOKCAST_DATA to a folder that can be written to"
        ) from error
    with file:
        if not _try(file):
            file.seek(0)
            pid = file.read().strip() or "?"
            say(f"another tokcast measures on this machine (process {pid}); waiting for it")
            while not _try(file):
                sleep(0.5)
        file.seek(0)
        file.truncate()
        file.write(str(os.getpid()))
        file.flush()
        yield
