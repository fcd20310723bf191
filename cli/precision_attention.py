"""`tokcast precision attention`: what the generations of a fused kernel move."""

from dataclasses import dataclass
from typing import Any

from tokcast.cli.options import host_of, number, one_count
from tokcast.cli.render import Report, Table, render
from tokcast.hosts.rates import rates_of
from tokcast.predictor.precision.attention import (
    KERNELS,
    Attention,
    Kernel,
    traffic,
    unfused_bytes,
    usable,
)
from tokcast.predictor.precision.formats import Format, format_of
from tokcast.predictor.precision.products import timing
from tokcast.predictor.precision.rates import Rates


@dataclass(frozen=True, slots=True)
class AttentionRequest:
    """What was typed of an attention, as text."""

    heads: str
    kv_heads: str
    head_size: str
    queries: str
    keys: str
    format: str
    kv: str | None
    kept: str
    host: str | None
    bandwidth: str | None
    tflops: str | None


def attention(request: AttentionRequest, output: str) -> int:
    """Print what each kernel moves for one layer, and its times at the peaks."""
    host, notes = host_of(request.host, request.bandwidth, request.tflops, None)
    rates, asked = rates_of(host), format_of(request.format)
    a = Attention(
        one_count(request.heads, "--heads"),
        one_count(request.kv_heads, "--kv-heads"),
        one_count(request.queries, "--queries"),
        one_count(request.keys, "--keys"),
        one_count(request.head_size, "--head-size"),
        kept=number(request.kept, "--kept", "a share up to 1"),
    )
    records = [_kernel_record(kernel, a, asked, request.kv, rates) for kernel in KERNELS]
    print(render(_report(a, records, host.name, notes), output))
    return 0


def _report(
    a: Attention, records: list[dict[str, Any]], host: str, notes: tuple[str, ...]
) -> Report:
    columns = ("kernel", "format", "MB", "least MB", "FLOP/B", "us", "bound", "published share")
    rows = tuple(
        (
            r["kernel"],
            r["format"],
            f"{r['bytes'] / 1e6:,.2f}",
            f"{r['least_bytes'] / 1e6:,.2f}",
            f"{r['flops_per_byte']:.3g}",
            f"{1e6 * r['seconds']:,.1f}",
            r["bound"],
            f"{100 * r['published_share']:.0f} %",
        )
        for r in records
    )
    plain_bytes = unfused_bytes(a, format_of("FP16"))
    return Report(
        verdict=(
            f"Attention of {a.n_head} heads on {a.n_head_kv}, {a.n_query} queries, {a.n_key} keys:"
            f" {a.flops / 1e9:,.3g} Gflop on {host}",
        ),
        tables=(Table(columns, rows, frozenset(columns[2:6]) | {"published share"}),),
        notes=(
            f"Scores written and read, without any of them: {plain_bytes / 1e6:,.2f} MB.",
            "MB: tiles read again are counted as if no cache held them; least MB: everything once."
            " A kernel without the format runs in 16 bits.",
            "Published share: the best published part of a chip's peak: "
            + "; ".join(f"{k.name} {k.share_of}" for k in KERNELS)
            + ".",
            *(f"Note: {note.rstrip('.')}." for note in notes),
        ),
        data={"host": host, "unfused_bytes": plain_bytes, "kernels": records},
        records=records,
    )


def _kernel_record(
    kernel: Kernel, a: Attention, asked: Format, kv: str | None, rates: Rates
) -> dict[str, Any]:
    f = usable(kernel, asked)
    cache = f if kv is None else format_of(kv)
    moved = traffic(kernel, a, f, cache)
    time = timing(moved.n_bytes, a.flops, f.arithmetic, rates)
    return {
        "kernel": kernel.name,
        "format": f.name,
        "kv_format": cache.name,
        "bytes": moved.n_bytes,
        "least_bytes": moved.least_bytes,
        "query_bytes": moved.query_bytes,
        "cache_bytes": moved.cache_bytes,
        "flops": a.flops,
        "exponentials": a.exponentials,
        "flops_per_byte": a.flops / moved.n_bytes,
        "memory_seconds": time.memory_s,
        "compute_seconds": time.compute_s,
        "seconds": time.seconds,
        "bound": time.bound,
        "published_share": kernel.share,
        "source": kernel.source,
    }
