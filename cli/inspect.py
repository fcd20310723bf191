"""`tokcast inspect`: what is really in a model file."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

from tokcast.cli.render import Report, Table, params, plain, render, size
from tokcast.predictor.header import Header
from tokcast.predictor.spec import ModelSpec, WeightGroup


def _grouped(spec: ModelSpec, key: Callable[[WeightGroup], str], title: str) -> Table:
    sums: dict[str, list[float]] = defaultdict(lambda: [0, 0, 0, 0.0])
    for g in spec.groups:
        row = sums[key(g)]
        row[0] += g.n_tensors
        row[1] += g.n_params
        row[2] += g.n_bytes
        row[3] += g.n_bytes * g.read_fraction
    rows = sorted(sums.items(), key=lambda item: -item[1][2])
    return Table(
        (title, "tensors", "params", "size", "share", "read a token"),
        tuple(
            (
                name,
                f"{r[0]:.0f}",
                params(r[1]),
                size(r[2]),
                f"{100 * r[2] / max(spec.n_bytes, 1):.1f} %",
                size(r[3]),
            )
            for name, r in rows
        ),
        frozenset({"tensors", "params", "size", "share", "read a token"}),
    )


def _verdict(spec: ModelSpec, header: Header) -> tuple[str, ...]:
    first = (
        f"{plain(spec.name)}: {spec.architecture}, {params(spec.n_params)} parameters"
        f" ({params(spec.active_params)} active), {size(spec.n_bytes)} of weights"
    )
    bits = 8 * spec.n_bytes / spec.n_params if spec.n_params else 0.0
    parts = f" in {header.n_parts} files" if header.n_parts > 1 else ""
    second = f"Labelled {spec.file_type or 'nothing'}; really {bits:.2f} bits per weight{parts}"
    return first, second


def _data(spec: ModelSpec, header: Header) -> dict[str, Any]:
    return {
        "model": {
            "name": spec.name,
            "architecture": spec.architecture,
            "format": spec.format,
            "file_type": spec.file_type,
            "n_params": spec.n_params,
            "active_params": spec.active_params,
            "n_bytes": spec.n_bytes,
            "context_length": spec.context_length,
            "n_layers": len(spec.layers),
            "confidence": spec.confidence,
            "source": spec.source,
        },
        "groups": [
            {
                "component": g.component,
                "type": g.type,
                "n_tensors": g.n_tensors,
                "n_params": g.n_params,
                "n_bytes": g.n_bytes,
                "read_fraction": g.read_fraction,
            }
            for g in spec.groups
        ],
        "n_header_bytes": header.n_header_bytes,
        "warnings": [*header.warnings, *spec.warnings],
    }


def _tensor_table(header: Header) -> Table:
    rows = tuple(
        (plain(t.name), "x".join(map(str, t.shape)), t.type, str(t.n_bytes)) for t in header.tensors
    )
    return Table(("tensor", "shape", "type", "bytes"), rows, frozenset({"bytes"}))


def run(model: str, tensors: bool, offline: bool, output: str) -> int:
    """Print a model's contents; exit code 1 when it holds no weights."""
    from tokcast.predictor.model import model_spec
    from tokcast.predictor.sources import open_model

    header = open_model(model, offline=offline or None)
    spec = model_spec(header)
    data = _data(spec, header)
    tables = [
        _grouped(spec, lambda g: g.type, "type"),
        _grouped(spec, lambda g: g.component, "component"),
    ]
    if tensors:
        tables.append(_tensor_table(header))
        data["tensors"] = [
            {"name": t.name, "shape": list(t.shape), "type": t.type, "n_bytes": t.n_bytes}
            for t in header.tensors
        ]
    notes = tuple(plain(w) for w in (*header.warnings, *spec.warnings))
    records = data["tensors"] if tensors else data["groups"]
    report = Report(_verdict(spec, header), tuple(tables), notes, data, records)
    print(render(report, output))
    return 0 if spec.n_params else 1
