"""The two ways of asking a machine about itself, and what an answer looks like."""

import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tokcast.predictor.host import Host

Run = Callable[[Sequence[str]], str | None]
ReadText = Callable[[str], str | None]

MIB = 2.0**20
GIB = 2.0**30

_TIMEOUT_S = 2.0
# These two are slow to start on a cold machine, and nothing else can answer for them.
_SLOW_TIMEOUT_S = {"powershell": 8.0, "powershell.exe": 8.0, "system_profiler": 8.0}
# Tools that work but are often not on the path: drivers under WSL, ROCm, root's tools.
_USUAL_FOLDERS = ("/usr/lib/wsl/lib", "/opt/rocm/bin", "/usr/sbin", "/sbin")
_MOST_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class Probe:
    """How to run a tool and read a file here; both return None where that is not possible."""

    run: Run
    read_text: ReadText

    def line(self, path: str) -> str:
        """Return a one-line file's text, empty where it cannot be read."""
        return (self.read_text(path) or "").strip("\0\n ")

    def number(self, path: str) -> float | None:
        """Return the number that a file holds."""
        return number(self.line(path))


@dataclass(frozen=True, slots=True)
class Found:
    """Chips that one source of knowledge sees, and what a user should know about them."""

    hosts: tuple[Host, ...] = ()
    notes: tuple[str, ...] = ()

    def __add__(self, other: "Found") -> "Found":
        return Found(self.hosts + other.hosts, self.notes + other.notes)


def number(value: object) -> float | None:
    """Return a plain decimal number; None for `[N/A]`, `Unknown` and all else."""
    text = str(value).strip()
    return float(text) if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", text) else None


def run_tool(command: Sequence[str]) -> str | None:
    """Return what a tool prints; None if it is absent, fails or takes longer than it should."""
    tool = shutil.which(command[0]) or _in_usual_folders(command[0])
    if tool is None:
        return None
    try:
        done = subprocess.run(
            [tool, *command[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SLOW_TIMEOUT_S.get(command[0], _TIMEOUT_S),
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def read_file(path: str) -> str | None:
    """Return the start of a text file; None if it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(_MOST_BYTES).decode("utf-8", "replace")
    except (OSError, ValueError):
        return None


def _in_usual_folders(tool: str) -> str | None:
    return shutil.which(tool, path=":".join(_USUAL_FOLDERS))
