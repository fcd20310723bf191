"""`tokcast inspect`: what is really in a model file."""

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from tokcast.cli.names import short_name
from tokcast.cli.render import Report, Table, count, params, render, size
from tokcast.predictor.cache import cache_bytes, k_row, v_row
from tokcast.predictor.header import Header
from tokcast.predictor.spec import Layer, ModelSpec, WeightGroup

_ATTENTION = {"full": "full", "sliding": "sliding", "mla": "latent", "none": ""}
_MIXER = {"none": "", "ssm": "state-space", "linear": "linear", "conv": "convolution"}


def _grouped(spec: ModelSpec, key: Callable[[WeightGroup], str], title: str) -> Table:
    sums: dict[str, list[float]] = defaultdict(lambda: [0, 0, 0, 0.0])
    for g in spec.groups:
        row = sums[key(g)]
        row[0] += g.n_tensors
        row[1] += g.n_params
        row[2] += g.n_bytes
        row[3] += g.n_bytes * g.read_fraction
    rows = sorted(sums.items(), key=lambda item: -item[1][2])
    columns = (title, "tensors", "params", "size", "share", "read a token")
    return Table(
        columns,
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
        frozenset(columns[1:]),
    )


def kv_bytes_a_token(spec: ModelSpec) -> float:
    """Return what a position takes in an F16 cache, as long as it is within every window."""
    rows = (k_row(x) + v_row(x) for x in spec.layers if x.has_kv and x.attention != "none")
    return sum(rows) * cache_bytes("F16")


def _verdict(spec: ModelSpec, header: Header) -> tuple[str, ...]:
    title = f"{short_name(spec.name)}: {spec.architecture}"
    if not spec.n_params:
        return (f"{title}, holds no weights",)
    active = f" ({params(spec.active_params)} active)"
    bits = 8 * spec.n_bytes / spec.n_params
    parts = f" in {header.n_parts} files" if header.n_parts > 1 else ""
    label = f"labelled {spec.file_type}" if spec.file_type else "not labelled"
    return (
        f"{title}, {params(spec.n_params)} parameters{active}",
        f"  {size(spec.n_bytes)} of weights{parts}, {label}, {bits:.2f} bits a weight",
        f"  {_shape(spec)}",
    )


def _shape(spec: ModelSpec) -> str:
    kinds = Counter(_kind(x) for x in spec.layers)
    if len(kinds) == 1:
        listed = f"all {next(iter(kinds))}"
    else:
        listed = ", ".join(f"{n} {kind}" for kind, n in kinds.items())
    context = f", context {count(spec.context_length)}" if spec.context_length else ""
    kv = size(kv_bytes_a_token(spec))
    return f"{len(spec.layers)} layers ({listed}), {kv} of F16 K/V a token{context}"


def _kind(layer: Layer) -> str:
    words = (_ATTENTION[layer.attention], _MIXER.get(layer.mixer, layer.mixer))
    return " + ".join(w for w in words if w) or "no"


def inspect_data(spec: ModelSpec, header: Header) -> dict[str, Any]:
    """Return what is in a model as JSON data."""
    return {
        "model": {
            "name": spec.name,
            "architecture": spec.architecture,
            "format": spec.format,
            "file_type": spec.file_type,
            "n_params": spec.n_params,
            "active_params": spec.active_params,
            "n_bytes": spec.n_bytes,
            "kv_bytes_per_token": kv_bytes_a_token(spec),
            "context_length": spec.context_length,
            "n_layers": len(spec.layers),
            "n_files": header.n_parts,
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
        "warnings": list(spec.warnings),
    }


def _tensor_table(header: Header) -> Table:
    rows = tuple(
        (t.name, "x".join(map(str, t.shape)), t.type, f"{t.n_bytes:,}") for t in header.tensors
    )
    return Table(("tensor", "shape", "type", "bytes"), rows, frozenset({"shape", "bytes"}))


def run(model: str, tensors: bool, offline: bool, output: str) -> int:
    """Print a model's contents; exit code 1 when it holds no weights."""
    from tokcast.predictor.model import model_spec
    from tokcast.predictor.sources import open_model

    header = open_model(model, offline=offline or None)
    spec = model_spec(header)
    data = inspect_data(spec, header)
    tables = []
    if spec.groups:
        tables.append(_grouped(spec, lambda g: g.type, "type"))
        tables.append(_grouped(spec, lambda g: g.component, "component"))
    if tensors:
        tables.append(_tensor_table(header))
        data["tensors"] = [
            {"name": t.name, "shape": list(t.shape), "type": t.type, "n_bytes": t.n_bytes}
            for t in header.tensors
        ]
    notes = (*(f"Note: {w.rstrip('.')}." for w in spec.warnings), f"Read from {spec.source}.")
    records = data["tensors"] if tensors else data["groups"]
    report = Report(_verdict(spec, header), tuple(tables), notes, data, records)
    print(render(report, output))
    return 0 if spec.n_params else 1
