"""`tokcast hosts`: the chips that are known, and this machine's."""

from collections.abc import Iterable
from typing import Any

from tokcast.cli.render import Report, Table, render, size
from tokcast.predictor.host import Host

_FACTS = (
    ("bytes_per_s", "memory bandwidth", 1e9, "GB/s"),
    ("matrix_fp16_flops_per_s", "FP16 matrix, FP16 accumulate", 1e12, "TFLOPS"),
    ("matrix_fp32acc_flops_per_s", "FP16 matrix, FP32 accumulate", 1e12, "TFLOPS"),
    ("fp16_flops_per_s", "FP16 vector", 1e12, "TFLOPS"),
    ("fp32_flops_per_s", "FP32 vector", 1e12, "TFLOPS"),
    ("int8_ops_per_s", "INT8", 1e12, "TOPS"),
    ("cache_bytes", "last-level cache", 1024.0**2, "MiB"),
    ("clock_hz", "boost clock", 1e6, "MHz"),
    ("tdp_w", "power", 1, "W"),
)
_KINDS = {"discrete_gpu": "graphics card", "apple_soc": "Apple SoC", "apu": "APU", "cpu": "CPU"}


def describe(host: Host) -> dict[str, Any]:
    """Return a host as JSON data, in SI units."""
    return {
        name: (dict(value) if name == "source" else value)
        for name in host.__slots__
        if (value := getattr(host, name)) not in (None, (), "", {})
    }


def memory_text(host: Host) -> str:
    """Return the memory sizes the chip was sold with."""
    if host.memory_bytes is not None:
        return size(host.memory_bytes).replace(".00", "")
    options = [f"{option / 1024**3:g}" for option in host.memory_options_bytes]
    return "/".join(options) + " GiB" if options else "-"


def _memory_range(host: Host) -> str:
    """Return `8-96 GiB` for more than two sizes: in a list the name needs the room."""
    options = host.memory_options_bytes
    if host.memory_bytes is not None or len(options) < 3:
        return memory_text(host)
    return f"{min(options) / 1024**3:g}-{max(options) / 1024**3:g} GiB"


def _row(host: Host) -> tuple[str, ...]:
    peak = host.matrix_fp16_flops_per_s or host.fp16_flops_per_s or host.fp32_flops_per_s
    return (
        host.name,
        f"{host.bytes_per_s / 1e9:.0f}",
        f"{peak / 1e12:.3g}" if peak else "-",
        _memory_range(host),
        host.confidence,
    )


def _listing(hosts: Iterable[Host]) -> Table:
    return Table(
        ("chip", "GB/s", "TFLOPS", "memory", "confidence"),
        tuple(_row(h) for h in hosts),
        frozenset({"GB/s", "TFLOPS"}),
    )


def run_list(text: str | None, output: str) -> int:
    """Print the known chips, or those whose name holds every word of `text`, else that it means."""
    from tokcast.hosts.match import candidates
    from tokcast.hosts.registry import chips

    words = (text or "").lower().split()
    named = [h for h in chips() if all(w in h.name.lower() for w in words)]
    # `DGX Spark` and `rtx4090` are in no name, and mean a chip all the same.
    found = named or list(candidates(text or ""))
    data = [describe(h) for h in found]
    verdict = f"{len(found)} chip{'s' * (len(found) != 1)}"
    if text:
        verdict += f" with {text!r} in the name" if named or not found else f" for {text!r}"
    report = Report((verdict,), (_listing(found),) if found else (), (), {"hosts": data}, data)
    print(render(report, output))
    return 0 if found else 1


def _facts(host: Host) -> Table:
    rows = [
        (label, f"{value / unit:,.4g}", shown)
        for name, label, unit, shown in _FACTS
        if (value := getattr(host, name)) is not None
    ]
    rows.append(("memory", memory_text(host), ""))
    return Table(("fact", "value", "unit"), tuple(rows), frozenset({"value"}))


def _sources(host: Host) -> tuple[str, ...]:
    listed = (part.strip() for text in host.source.values() for part in text.split(" ; "))
    return tuple(f"Source: {text}" for text in dict.fromkeys(listed) if text)


def run_show(name: str, output: str) -> int:
    """Print one chip's figures with their sources."""
    from tokcast.hosts.match import find

    host = find(name)
    data = describe(host)
    several = f"{host.n_devices}x " if host.n_devices > 1 else ""
    what = ", ".join(word for word in (_KINDS[host.kind], host.architecture) if word)
    verdict = f"{several}{host.name}: {what}{'; figures of one' if several else ''}"
    notes = (
        f"Confidence in these figures: {host.confidence}.",
        *(f"Note: {note.rstrip('.')}." for note in host.notes),
        *_sources(host),
    )
    print(render(Report((verdict,), (_facts(host),), notes, data, [data]), output))
    return 0


def run_detect(output: str) -> int:
    """Print what this machine has; exit code 1 when nothing usable was found."""
    from tokcast.hosts.detect import detect

    found = detect()
    hosts = [describe(h) for h in found.hosts]
    data = {"hosts": hosts, "memory_bytes": found.memory_bytes, "notes": list(found.notes)}
    if found.hosts:
        verdict = f"{found.hosts[0].name} would run the model"
        if found.memory_bytes:
            verdict += f"; the machine has {size(found.memory_bytes)} of memory"
    else:
        verdict = "No chip was recognised; give --bandwidth, --tflops and --memory"
    tables = (_listing(found.hosts),) if found.hosts else ()
    notes = tuple(f"Note: {note.rstrip('.')}." for note in found.notes)
    print(render(Report((verdict,), tables, notes, data, hosts), output))
    return 0 if found.hosts else 1
