"""Which measurements a fit may use: rules as data, each with its reason.

A rule sees the row and, where the chip and the model are known, what they imply. Nothing is
dropped silently: `check` names the first rule that hits a row.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from tokcast.measurements.localscore import machine_of
from tokcast.measurements.schema import Measurement
from tokcast.predictor.host import Host
from tokcast.predictor.ledger import Workload
from tokcast.predictor.spec import ModelSpec


@dataclass(frozen=True, slots=True)
class Facts:
    """What a row's chip and model imply; None where they are unknown.

    `roof` is measured throughput over the nameplate ceiling; `need_bytes` the weights, K/V and
    half a GiB of buffers at the longest context run.
    """

    host: Host | None
    spec: ModelSpec | None
    workloads: tuple[Workload, ...]
    roof: float | None = None
    need_bytes: float | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """A named reason not to fit a row."""

    name: str
    reason: str
    hits: Callable[[Measurement, Facts], bool]


def _flagged(*names: str) -> Callable[[Measurement, Facts], bool]:
    wanted = frozenset(names)
    return lambda m, _: bool(m.flags & wanted)


def _few_layers(m: Measurement, f: Facts) -> bool:
    if m.backend == "CPU" or f.spec is None or not re.fullmatch(r"\d+(\.0)?", m.ngl):
        return False
    return float(m.ngl) < len(f.spec.layers)


def _placed(m: Measurement, _: Facts) -> bool:
    return m.backend != "CPU" and re.search(r"ot|cpu|split", m.placement) is not None


def _memory_bytes(m: Measurement, host: Host) -> float | None:
    sold = host.memory_bytes or max(host.memory_options_bytes, default=0) or None
    stated = m.memory_gb * 1024**3 if m.memory_gb else None
    if stated and (sold is None or stated > 0.8 * sold):
        return stated
    return sold


def _spills(m: Measurement, f: Facts) -> bool:
    if f.host is None or f.host.kind != "discrete_gpu" or f.need_bytes is None:
        return False
    memory = _memory_bytes(m, f.host)
    return memory is not None and f.need_bytes > 0.985 * memory


def _above_roof(_: Measurement, f: Facts) -> bool:
    return f.roof is not None and f.roof > 1.0


def _far_below(m: Measurement, f: Facts) -> bool:
    if f.roof is None or f.spec is None or m.phase != "decode":
        return False
    least = 0.02 if m.backend == "CPU" else 0.04
    return f.roof < least and f.spec.n_bytes > 0.5e9


# Printed sizes of clean packaged rows are 0.72 to 1.46 of their tensors'; the slowest clean speed
# is 2.1 thousandths of the roof.
SIZE_SLIP = 2.0
SPEED_SLIP = 0.0015


def _unit_slip(m: Measurement, f: Facts) -> bool:
    if f.spec is not None and m.size_gib:
        ratio = m.size_gib * 1024**3 / f.spec.n_bytes
        if not 1 / SIZE_SLIP < ratio < SIZE_SLIP:
            return True
    return f.roof is not None and f.roof < SPEED_SLIP


def _host_stalled(m: Measurement, _: Facts) -> bool:
    machine = machine_of(m)
    return m.backend == "CUDA" and machine is not None and machine.stalls


RULES: tuple[Rule, ...] = (
    Rule("unknown-chip", "the chip is not in the registry", lambda _, f: f.host is None),
    Rule("unknown-model", "no tensor table for this model and type", lambda _, f: f.spec is None),
    Rule(
        "several-devices",
        "a split over devices needs the placement model",
        lambda m, _: m.n_devices != 1 or bool(m.flags & {"multi-device", "rpc"}),
    ),
    Rule(
        "cpu-offload", "partly run on the CPU: needs the placement model", _flagged("cpu-offload")
    ),
    Rule("placed", "tensors were placed by hand: needs the placement model", _placed),
    Rule("few-layers", "fewer layers on the GPU than the model has", _few_layers),
    Rule(
        "over-memory",
        "the source says larger than the device's memory",
        _flagged("larger-than-vram", "uvm-experiment"),
    ),
    Rule(
        "suspect",
        "marked by the curators: throttled, capped, patched or under-specified",
        _flagged("suspect-slow", "under-specified", "power-capped", "odd-batch", "patched-build"),
    ),
    Rule("truncated", "the prompt was cut to the context", _flagged("prompt-truncated")),
    Rule("no-length", "lengths are not stated", lambda _, f: not f.workloads),
    Rule(
        "mislabelled-pi",
        "a llm-bench row labelled Raspberry Pi 4 reads up to 2.5 times that board's bandwidth",
        lambda m, _: m.source.startswith("sensura-san") and m.chip.startswith("Raspberry"),
    ),
    Rule(
        "host-stalled",
        "llamafile waits for the processor on Zen 4, Zen 5 and Sapphire Rapids hosts",
        _host_stalled,
    ),
    Rule(
        "vm-slice",
        "a cloud machine's share of a server chip: its cores and channels are not the chip's",
        lambda m, _: m.chip in ("Intel Xeon Platinum 8259CL", "AMD EPYC 9634"),
    ),
    Rule(
        "first-port",
        "ik_llama.cpp's Vulkan backend on the day it was merged, 2.8 times slower than CUDA",
        lambda m, _: m.runtime == "ik_llama.cpp" and m.backend == "Vulkan",
    ),
    Rule(
        "other-engine",
        "BLAS, RPC or an NPU under the same backend's name",
        lambda m, _: re.search("BLAS|RPC|XDNA", m.backend_raw) is not None,
    ),
    Rule(
        "work-in-progress",
        "the processor's figures of a build for an NPU: reading no faster than generating",
        lambda m, _: m.backend == "CPU" and m.source.endswith("strixhalo-homelab/issues/11"),
    ),
    Rule(
        "offload-by-title",
        "the thread is about offloading to the CPU",
        lambda m, _: "ffload" in m.source and m.backend != "CPU",
    ),
    Rule(
        "warm-up",
        "the first call is in the figure: long prompts run 1.2 to 2 times faster than short ones",
        lambda m, _: (
            m.phase == "prefill"
            and "XiongjieDai" in m.source
            and m.file_type == "F16"
            and m.chip in ("NVIDIA A100 SXM4 80GB", "NVIDIA L40S")
        ),
    ),
    Rule(
        "client-prefill",
        "time to first token of a client: overhead and approximate token counts",
        lambda m, _: m.phase == "prefill" and bool(m.flags & {"client-timing", "approx-tokens"}),
    ),
    Rule(
        "unit-slip",
        "a size twice or half the tensors', or a speed in thousands: another unit, or another file",
        _unit_slip,
    ),
    Rule("spills", "weights and cache exceed the card: the driver pages to the host", _spills),
    Rule(
        "above-roof", "faster than the nameplate peaks allow: row, chip or bytes wrong", _above_roof
    ),
    Rule(
        "far-below-roof",
        "under 4 % of the roof, a processor 2 %: not run on this device, or swapped",
        _far_below,
    ),
    Rule(
        "single-lane",
        "the card hung on a Raspberry Pi's one PCIe lane: a tenth of its speed",
        lambda m, _: m.source.endswith("geerlingguy/ai-benchmarks/issues/23"),
    ),
    Rule(
        "two-sockets",
        "a board of two processors under one's name: faster than one's memory and arithmetic allow",
        lambda m, _: m.chip == "Intel Xeon E5-2697 v2",
    ),
)


def check(m: Measurement, facts: Facts) -> Rule | None:
    """Return the first rule that keeps a row out of the fit, or None."""
    return next((rule for rule in RULES if rule.hits(m, facts)), None)
