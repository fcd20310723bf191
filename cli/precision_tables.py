"""`tokcast precision formats` and `product`."""

from dataclasses import dataclass
from typing import Any

from tokcast.cli.options import host_of, one_count
from tokcast.cli.render import Report, Table, render
from tokcast.hosts.rates import rates_of
from tokcast.predictor.precision.formats import FORMATS, format_of
from tokcast.predictor.precision.kept import published
from tokcast.predictor.precision.products import Product, time_of
from tokcast.predictor.precision.rates import Rates


def formats(output: str) -> int:
    """Print every format with its bits, and what was published of the answers it keeps."""
    rows, records = [], list[dict[str, Any]]()
    for f in FORMATS.values():
        kept = published().get(f.name)
        block = f"{f.scale_bits:g} of {f.block}" if f.block else ""
        share = "" if kept is None else f"{100 * kept.share:.1f} % ({kept.n_models})"
        rows.append((f.name, f"{f.bits:.5g}", f"{f.number_bits:g}", block, f.arithmetic, share))
        records.append(
            {
                "format": f.name,
                "bits": f.bits,
                "number_bits": f.number_bits,
                "scale_bits": f.scale_bits,
                "block": f.block or None,
                "arithmetic": f.arithmetic,
                "source": f.source,
                "mmlu_kept": None if kept is None else kept.share,
                "mmlu_kept_n": None if kept is None else kept.n_models,
            }
        )
    columns = ("format", "bits", "number", "scale bits", "multiplied as", "MMLU (models)")
    made = Report(
        verdict=("Bits a number, scales included",),
        tables=(Table(columns, tuple(rows), frozenset({"bits", "number", "MMLU (models)"})),),
        notes=("Types of ggml go by their names, such as Q4_K, wherever a format is asked for.",),
        data={"formats": records},
        records=records,
    )
    print(render(made, output))
    return 0


@dataclass(frozen=True, slots=True)
class ProductRequest:
    """What was typed of a product, as text; several formats with commas between them."""

    m: str
    n: str
    k: str
    weights: str
    activations: str
    host: str | None
    bandwidth: str | None
    tflops: str | None


def product(request: ProductRequest, output: str) -> int:
    """Print a product's bytes, operations and times at the peaks, for each format of weights."""
    host, notes = host_of(request.host, request.bandwidth, request.tflops, None)
    rates, beside = rates_of(host), format_of(request.activations)
    m, n, k = (one_count(getattr(request, name), f"-{name}") for name in ("m", "n", "k"))
    names = [name for name in request.weights.split(",") if name.strip()] or [""]
    products = [Product(m, n, k, format_of(name), beside, format_of("FP16")) for name in names]
    records = [_product_record(p, rates) for p in products]
    columns = ("weights", "multiplied as", "MB", "FLOP/B", "ridge", "us", "bound", "speed")
    first = records[0]
    rows = tuple(
        (
            r["weights"],
            r["arithmetic"],
            f"{r['bytes'] / 1e6:,.2f}",
            f"{r['flops_per_byte']:.3g}",
            f"{r['ridge_flops_per_byte']:.4g}",
            f"{1e6 * r['seconds']:,.1f}",
            r["bound"],
            f"{first['seconds'] / r['seconds']:.2f}x",
        )
        for r in records
    )
    p = products[0]
    made = Report(
        verdict=(
            f"{p.kind} {p.m} x {p.n} x {p.k}: {p.flops / 1e9:,.3g} Gflop on {host.name},"
            f" {rates.bytes_per_s / 1e9:,.4g} GB/s",
        ),
        tables=(Table(columns, rows, frozenset(columns[2:6]) | {"speed"}),),
        notes=(
            f"Activations in {beside.name}, output in FP16; at the data sheet's peaks.",
            *(f"Note: {note.rstrip('.')}." for note in notes),
        ),
        data={"host": host.name, "products": records},
        records=records,
    )
    print(render(made, output))
    return 0


def _product_record(p: Product, rates: Rates) -> dict[str, Any]:
    time = time_of(p, rates)
    return {
        "kind": p.kind,
        "m": p.m,
        "n": p.n,
        "k": p.k,
        "weights": p.weights.name,
        "activations": p.activations.name,
        "arithmetic": rates.native(p.arithmetic),
        "bytes": p.n_bytes,
        "flops": p.flops,
        "flops_per_byte": p.flops / p.n_bytes,
        "ridge_flops_per_byte": rates.ridge(p.arithmetic),
        "memory_seconds": time.memory_s,
        "compute_seconds": time.compute_s,
        "seconds": time.seconds,
        "bound": time.bound,
    }
