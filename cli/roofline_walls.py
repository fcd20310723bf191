"""`tokcast roofline walls`: layouts of one model compared by which wall binds first."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tokcast.cli.fitting import available_bytes
from tokcast.cli.options import cache_type, host_of, one_count
from tokcast.cli.render import Report, Table, count, rate, render, size
from tokcast.hosts.quantity import parse_bandwidth, parse_bytes, parse_seconds
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.model import model_spec
from tokcast.predictor.roofs.deployment import LAYOUTS, Deployment, deployment, stored_as
from tokcast.predictor.roofs.floor import peaks_of, ridge
from tokcast.predictor.roofs.resources import Peaks
from tokcast.predictor.roofs.walls import crossover, rates, walls
from tokcast.predictor.sources import open_model
from tokcast.predictor.spec import ModelSpec

# Concurrencies of the table between 1 and each capacity wall: powers of four.
_STEP = 4


@dataclass(frozen=True, slots=True)
class Request:
    """What was typed, as text."""

    model: str
    host: str | None
    devices: str
    layouts: str | None
    n_depth: str
    weights: str | None
    cache: str
    memory: str | None
    usable: str
    bandwidth: str | None
    tflops: str | None
    network: str
    message: str
    offline: bool


def _share(text: str, flag: str) -> float:
    try:
        value = float(text.rstrip("% ")) / (100.0 if "%" in text else 1.0)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1:
        raise InputError(f"{flag} {text!r}: expected a share of the memory, such as 90% or 0.9")
    return value


def _message_seconds(text: str) -> float:
    """Return seconds; microseconds, in which messages are told, are taken as well."""
    if text.lower().endswith("us"):
        return parse_seconds(text[:-2] + "ms") / 1000
    return parse_seconds(text)


def _spec(request: Request) -> ModelSpec:
    address = request.model
    if request.weights is not None and "@" not in address and "/" not in address:
        address = f"{address}@Q8_0"
    spec = model_spec(open_model(address, offline=request.offline or None))
    return spec if request.weights is None else stored_as(spec, request.weights.upper())


def _layouts(request: Request, spec: ModelSpec) -> tuple[str, ...]:
    """Return the layouts asked for, else those that the model can have."""
    if request.layouts is not None:
        return tuple(request.layouts.split(","))
    return LAYOUTS if any(x.n_expert for x in spec.layers) else ("tp",)


def deployments(request: Request) -> tuple[Host, tuple[Deployment, ...], tuple[str, ...]]:
    """Return the host, a deployment for each layout, and notes; raises InputError naming a flag."""
    host, notes = host_of(request.host, request.bandwidth, request.tflops, None)
    if host.n_devices > 1:
        raise InputError(f"--host {request.host!r}: expected one device; --devices says how many")
    one = peaks_of(host)
    peaks = Peaks(
        one.bytes_per_s,
        one.flops_per_s,
        parse_bandwidth(request.network),
        _message_seconds(request.message),
    )
    memory = available_bytes(host) if request.memory is None else parse_bytes(request.memory)
    if memory is None:
        raise InputError(f"{host.name}: its memory is not known; give --memory, as 96G")
    spec = _spec(request)
    made = tuple(
        deployment(
            spec,
            layout.strip(),
            one_count(request.devices, "--devices"),
            one_count(request.n_depth, "-d"),
            peaks,
            memory * _share(request.usable, "--usable"),
            cache_type(request.cache, "-ctk"),
        )
        for layout in _layouts(request, spec)
    )
    return host, made, notes


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.2f}"


def _wall_words(d: Deployment) -> str:
    found = walls(d)
    if not found:
        return "weights alone do not fit"
    return ", then ".join(f"{w.resource} from {w.n_requests}" for w in found)


def _wall_table(made: Sequence[Deployment]) -> Table:
    columns = ("layout", "weights", "K/V left", "a request", "most requests", "walls")
    rows = tuple(
        (
            d.layout,
            size(d.weights_bytes),
            size(max(d.cache_capacity_bytes, 0.0)),
            size(d.request_bytes),
            f"{math.floor(d.most_requests):,}",
            _wall_words(d),
        )
        for d in made
    )
    return Table(columns, rows, frozenset(columns[1:5]))


def _points(made: Sequence[Deployment]) -> list[int]:
    most = max(math.floor(d.most_requests) for d in made)
    powers = [_STEP**i for i in range(16)]
    edges = [math.floor(d.most_requests) for d in made]
    return sorted({n for n in (*powers, *edges) if 1 <= n <= most})


def _records(made: Sequence[Deployment]) -> list[dict[str, Any]]:
    return [
        {
            "layout": d.layout,
            "n_requests": n,
            "floor_seconds": f.optimistic,
            "serial_seconds": f.pessimistic,
            "binding": f.binding,
            "tok_per_s_most": rates(f, n)["optimistic"],
            "tok_per_s_serial": rates(f, n)["pessimistic"],
            "seconds_by_resource": dict(f.by_resource),
        }
        for d in made
        for n in _points(made)
        if n <= d.most_requests
        for f in (d.floor(n),)
    ]


def _floor_table(records: Sequence[dict[str, Any]]) -> Table:
    columns = ("requests", "layout", "ms a step, max", "sum", "tok/s at most", "bound by")
    rows = tuple(
        (
            f"{r['n_requests']:,}",
            r["layout"],
            _ms(r["floor_seconds"]),
            _ms(r["serial_seconds"]),
            rate(r["tok_per_s_most"]),
            r["binding"],
        )
        for r in sorted(records, key=lambda r: (r["n_requests"], r["layout"]))
    )
    return Table(columns, rows, frozenset((columns[0], *columns[2:5])))


def _verdict(host: Host, made: Sequence[Deployment]) -> tuple[str, ...]:
    first = made[0]
    title = (
        f"{first.spec.name} {first.spec.file_type} on {first.n_devices}x {host.name}, requests of"
        f" {count(first.n_depth)}"
    )
    peaks = first.peaks
    lines = [f"{title}; ridge {ridge(peaks.flops_per_s, peaks.bytes_per_s):.0f} FLOP/byte"]
    lines += [f"  {d.layout}: {_wall_words(d)}" for d in made]
    if len(made) > 1 and all(d.most_requests >= 1 for d in made):
        quick, wide = sorted(made, key=lambda d: d.floor(1).optimistic)[:2]
        times = wide.floor(1).optimistic / quick.floor(1).optimistic
        held = wide.most_requests / quick.most_requests
        lines.append(
            f"  a lone request is {times:.1f} times as fast with {quick.layout};"
            f" {wide.layout} holds {held:.1f} times as many requests"
        )
        at = crossover(quick, wide)
        if at is not None:
            lines.append(f"  from {at} requests on, {wide.layout} is faster or alone can")
    return tuple(lines)


def report(request: Request) -> Report:
    """Return the layouts side by side."""
    host, made, notes = deployments(request)
    records = _records(made)
    data = {
        "model": made[0].spec.name,
        "file_type": made[0].spec.file_type,
        "host": host.name,
        "n_devices": made[0].n_devices,
        "n_depth": made[0].n_depth,
        "layouts": [
            {
                "layout": d.layout,
                "weights_bytes": d.weights_bytes,
                "request_bytes": d.request_bytes,
                "most_requests": d.most_requests,
                "walls": [{"resource": w.resource, "n_requests": w.n_requests} for w in walls(d)],
            }
            for d in made
        ],
        "points": records,
    }
    tables = [_wall_table(made)]
    if records:
        tables.append(_floor_table(records))
    lines = (
        "Floors at the data sheet's peaks; weights, K/V and a request are one device's.",
        *(f"Note: {note}." for note in notes),
    )
    flat = [{k: v for k, v in r.items() if k != "seconds_by_resource"} for r in records]
    return Report(_verdict(host, made), tuple(tables), lines, data, flat)


def run(request: Request, output: str) -> int:
    """Print the comparison; exit code 1 when no layout holds a single request."""
    made = report(request)
    print(render(made, output))
    return 0 if made.records else 1
