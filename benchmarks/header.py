"""Time and memory to read a GGUF header: tokcast, peers that are installed, and GGUFReader.

    python benchmarks/header.py [FILE.gguf ...]

Without a file: every real file that `make oracles` fetched. Each reader runs in processes of its
own, taking turns, so that a busy machine slows all alike. Peak memory is that of a whole process.
`gguf.GGUFReader` takes seconds, so it gets one run, on the first file only.
"""

import argparse
import importlib
import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ORACLES = Path(os.environ.get("TOKCAST_ORACLES") or ROOT / "build" / "oracles")
ROUNDS = 3
RUNS = 5
SLOW = "gguf.GGUFReader"


def tokcast(path: Path) -> None:
    from tokcast.predictor.gguf import read_gguf_file

    read_gguf_file(path)


def mdl(path: Path) -> None:
    from mdl_fit.gguf import read_local

    read_local(path)


def llama_roofline(path: Path) -> None:
    from llama_roofline.gguf import read_gguf

    with path.open("rb") as file:
        read_gguf(file)


def official(path: Path) -> None:
    from gguf import GGUFReader

    GGUFReader(path)


READERS: dict[str, tuple[str, Callable[[Path], None]]] = {
    "tokcast": ("tokcast.predictor.gguf", tokcast),
    "llama-mdl": ("mdl_fit.gguf", mdl),
    "llama-roofline": ("llama_roofline.gguf", llama_roofline),
    SLOW: ("gguf", official),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--reader", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    files = arguments.files or sorted(ORACLES.glob("*.gguf"))
    if arguments.reader:
        print(json.dumps(measure(arguments.reader, files[0])))
    elif not files:
        sys.exit(f"no GGUF files in {ORACLES}: name one, or run make oracles")
    else:
        print(f"{'file':32} {'reader':16} {'median s':>9} {'fastest s':>9} {'peak MB':>8}")
        for path in files:
            compare(path, with_official=path == files[0])


def measure(reader: str, path: Path) -> dict[str, object]:
    """Return seconds of each run and the process's peak memory; imports are not timed."""
    module, read = READERS[reader]
    importlib.import_module(module)
    seconds = []
    for _ in range(1 if reader == SLOW else RUNS):
        start = time.perf_counter()
        read(path)
        seconds.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # macOS counts bytes, Linux kibibytes.
    return {"seconds": seconds, "peak_mb": peak / (1e6 if sys.platform == "darwin" else 1e3)}


def compare(path: Path, *, with_official: bool) -> None:
    present = [
        name
        for name, (module, _) in READERS.items()
        if importlib.util.find_spec(module.partition(".")[0]) and (with_official or name != SLOW)
    ]
    seconds: dict[str, list[float]] = {name: [] for name in present}
    peaks: dict[str, float] = {}
    for turn in range(ROUNDS):
        for name in present:
            if name != SLOW or turn == 0:
                command = [sys.executable, __file__, "--reader", name, str(path)]
                result = json.loads(subprocess.check_output(command))
                seconds[name] += result["seconds"]
                peaks[name] = max(result["peak_mb"], peaks.get(name, 0))
    for name, runs in seconds.items():
        figures = f"{statistics.median(runs):9.4f} {min(runs):9.4f} {peaks[name]:8.1f}"
        print(f"{path.name[:32]:32} {name:16} {figures}", flush=True)


if __name__ == "__main__":
    main()
