"""How a placement is shown: its devices as a table and as data, and llama.cpp's flags."""

import shlex
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from tokcast.cli.render import GIB, Table, rate, size
from tokcast.predictor.prediction import Prediction

if TYPE_CHECKING:
    from tokcast.cli.placed_fit import PlacedFit
    from tokcast.predictor.placement.devices import Device
    from tokcast.predictor.placement.plan import Placement

# What sampling a token and sending it took beside the model's own time, in pairs of published
# runs of one model timed both ways (docs/placement.md).
SERVER_SECONDS = (0.5e-3, 4e-3)
FAST_TOK_PER_S = 100.0


def machine_words(devices: "Sequence[Device]") -> str:
    """Return the machine's parts, equal cards counted, with the speed of its main memory."""
    cards, processor = devices[:-1], devices[-1]
    if not cards:
        return processor.host.name
    if cards[0].host.is_unified and len(cards) == 1:
        return cards[0].host.name
    runs = [(name, len(list(run))) for name, run in groupby(c.host.name for c in cards)]
    words = [f"{n}x {name}" if n > 1 else name for name, n in runs]
    memory = f"{processor.host.bytes_per_s / 1e9:.0f} GB/s"
    known = f"{processor.memory_bytes / GIB:g} GiB at " if processor.memory_bytes else ""
    return " + ".join([*words, f"{processor.host.name} ({known}{memory})"])


def devices_table(placement: "Placement", fit: "PlacedFit") -> Table:
    """Return what each device computes and holds."""
    from tokcast.predictor.placement.loads import device_loads

    loads = device_loads(placement)
    rows = []
    for held, load in zip(fit.devices, loads, strict=True):
        layers = len(load.layers) + load.has_output
        there = held.device.memory_bytes
        rows.append(
            (
                held.device.name,
                str(layers),
                size(held.weights_bytes),
                size(held.kv_bytes + held.recurrent_bytes),
                size(held.compute_bytes),
                size(held.total_bytes),
                "?" if there is None else size(there),
                size(load.active_bytes),
            )
        )
    columns = ("device", "layers", "weights", "cache", "compute", "in all", "of", "per token")
    return Table(columns, tuple(rows), frozenset(columns[1:]))


def server_note(decode: Prediction) -> tuple[str, ...]:
    """Return what a server makes of a fast generation, that of llama-bench being the model's alone.

    Nothing for a slow one, of which a server's time is hardly a part.
    """
    if decode.tok_per_s < FAST_TOK_PER_S:
        return ()
    fast, slow = (1 / (1 / decode.tok_per_s + seconds) for seconds in SERVER_SECONDS)
    least, most = (1000 * seconds for seconds in SERVER_SECONDS)
    return (
        f"llama-bench picks no tokens: a server or LM Studio takes {least:g} to {most:g} ms more"
        f" for each, {rate(slow)} to {rate(fast)} tok/s here.",
    )


def placement_flags(placement: "Placement", n_context: int) -> str:
    """Return the words that make llama.cpp's server place a model so, ready to copy."""
    words = ["-c", str(n_context), *placement.flags]
    return " ".join(shlex.quote(word) for word in words)


def bench_flags(placement: "Placement") -> str:
    """Return the same for llama-bench, which separates lists otherwise."""
    words = []
    flag = ""
    for word in placement.flags:
        if flag == "-ot":
            pairs = placement.options.overrides
            word = ";".join(f"{pattern}={name}" for pattern, name in pairs)
        elif flag == "-ts":
            word = word.replace(",", "/")
        elif word == "-nkvo":
            word = "-nkvo 1"
        flag = word
        words.append(word if word == "-nkvo 1" else shlex.quote(word))
    return " ".join(words)


def placement_data(placement: "Placement", fit: "PlacedFit") -> dict[str, Any]:
    """Return a placement as JSON: SI units, nothing rounded."""
    from tokcast.fits.placed_released import released_placed
    from tokcast.predictor.placement.loads import device_loads

    loads = device_loads(placement)
    return {
        "coefficients": released_placed().digest,
        "flags": list(placement.flags),
        "n_gpu_layers": placement.n_gpu_layers,
        "n_cpu_moe": placement.n_cpu_moe,
        "split_mode": placement.split_mode,
        "devices": [
            {
                "name": held.device.name,
                "kind": held.device.kind,
                "host": held.device.host.name,
                "bytes_per_s": held.device.host.bytes_per_s,
                "is_assumed": held.device.is_assumed,
                "n_layers": len(load.layers) + load.has_output,
                "weights_bytes": held.weights_bytes,
                "expert_bytes": load.expert_bytes,
                "active_bytes": load.active_bytes,
                "kv_bytes": held.kv_bytes,
                "recurrent_bytes": held.recurrent_bytes,
                "compute_bytes": held.compute_bytes,
                "total_bytes": held.total_bytes,
                "memory_bytes": held.device.memory_bytes,
            }
            for held, load in zip(fit.devices, loads, strict=True)
        ],
    }
