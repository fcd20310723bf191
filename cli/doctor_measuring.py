"""What `tokcast doctor` says of measuring: runtimes, energy, contention, store, calibration."""

import sys
from collections.abc import Iterator

from tokcast.measurements.gate import PRESSURE_FILE, nvml_library, read_text, stalled_us
from tokcast.measurements.launch import describe
from tokcast.measurements.meters import POWERCAP, open_meter
from tokcast.measurements.runners import llama_bench, llama_cpp, mlx
from tokcast.measurements.store_file import FILE, data_folder, newest_calibrations
from tokcast.predictor.errors import InputError

Finding = tuple[str, str, str]


def _runtime(name: str, install: str) -> Finding:
    try:
        setup = describe(name)
    except InputError as error:
        reason = "not installed" if "not installed" in str(error) else str(error)
        return f"measure: {name}", "note", f"{reason}; run: {install}"
    on = setup.build if name == "mlx" else setup.backend
    return f"measure: {name}", "ok", f"{setup.version}, on {on}"


def _runtimes() -> Iterator[Finding]:
    yield _runtime("llama.cpp", llama_cpp.INSTALL)
    binary = llama_bench.find()
    there = f"not found; {llama_bench.INSTALL}, or set LLAMA_BENCH"
    yield "measure: llama-bench", "ok" if binary else "note", str(binary or there)
    yield _runtime("mlx", mlx.INSTALL)


def _how_to_count_energy() -> str:
    if sys.platform == "darwin":
        return "no counter; run: pip install zeus-apple-silicon"
    if POWERCAP.is_dir() and any(POWERCAP.glob("*-rapl:*")):
        return "RAPL is for root only; run: sudo chmod a+r /sys/class/powercap/*/energy_uj"
    return "no counter found; with an NVIDIA card run: pip install nvidia-ml-py"


def _watch() -> Finding:
    seen = []
    if stalled_us(read_text(PRESSURE_FILE)) is not None:
        seen.append(PRESSURE_FILE)
    elif sys.platform == "win32":
        return "contention", "note", "no pressure or load figures on Windows: close other programs"
    else:
        seen.append("load average")
    if nvml_library() is not None:
        seen.append("NVML clocks and throttle reasons")
    return "contention", "ok", ", ".join(seen)


def _kept() -> Iterator[Finding]:
    path = data_folder() / FILE
    yield (
        "store",
        "ok" if path.exists() else "note",
        f"{path}{'' if path.exists() else ', none yet'}",
    )
    stored = newest_calibrations()
    if not stored:
        yield "calibration", "note", "none; run: tokcast calibrate"
    for c in {(c["host"], c["runtime"], c["backend"]): c for c in reversed(stored)}.values():
        what = f"{c['host']}, {c['runtime']} ({c['backend']}), {c['created'][:10]}"
        yield "calibration", "ok", what


def findings() -> Iterator[Finding]:
    """Yield (what, ok or note, what was found and the command that brings what is missing)."""
    yield from _runtimes()
    meter = open_meter()
    yield "energy", "ok" if meter else "note", meter.source if meter else _how_to_count_energy()
    yield _watch()
    yield from _kept()
