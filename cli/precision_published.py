"""`tokcast precision published`: a published toolkit's times held against the ledger's."""

from typing import Any

from tokcast.cli.render import Report, Table, render
from tokcast.hosts.match import find
from tokcast.hosts.rates import rates_of
from tokcast.predictor import catalogue
from tokcast.predictor.precision import toolkit
from tokcast.predictor.precision.cost import Step, cost
from tokcast.predictor.precision.plans import plan_of
from tokcast.predictor.precision.rates import Rates

_REMARKS = (
    "NVFP4 at 1,000 TFLOP/s is the sparse figure, 500 are dense; beside 16-bit activations 4-bit"
    " weights run at 16 bits' rate, {fp16:.0f} TFLOP/s here, 62 there.",
    "FlashAttention 2 and 3 divided by 1.15 and 1.10 read {fast:.0f} and {fast3:.0f} GB/s from a"
    " memory of 287 GB/s, of {bandwidth:.0f} GB/s by the data sheet.",
    "The rows of NVFP4 hold K/V in 16 bits at 4k and in 8 bits at 32k; in NVFP4 it is 1,152 MiB at"
    " 32k, 1,175 there.",
    "4 bits are 0.5 bytes in its table of formats; with scales 0.5625 (NVFP4), 0.53125 (MXFP4),"
    " 0.5195 (INT4 of 128).",
)


def run(output: str) -> int:
    """Print published times, reproduced, and step by step what makes ours another."""
    rates, header = rates_of(find("GB10")), catalogue.header("llama-3-8b", "F16")
    records = []
    for row in toolkit.STEPS:
        made = cost(header, plan_of(row.plan), Step("decode", row.n_context), rates)
        ledger_ms = 1e3 * made.seconds
        records.append(
            {
                "what": row.what,
                "n_context": row.n_context,
                "published_ms": row.ms,
                "reproduced_ms": row.reproduced_ms,
                "plan": row.plan,
                "ledger_ms": ledger_ms,
                "bridge": toolkit.bridge(row, rates.bytes_per_s, ledger_ms),
            }
        )
    print(render(_report(records, rates), output))
    return 0


def _report(records: list[dict[str, Any]], rates: Rates) -> Report:
    columns = ("Llama 3 8B on GB10", "context", "published", "reproduced", "off", "ledger", "ratio")
    rows = tuple(
        (
            f"{n} {r['what']}",
            f"{r['n_context'] // 1024}k",
            f"{r['published_ms']:.1f} ms",
            f"{r['reproduced_ms']:.1f} ms",
            f"{100 * (r['reproduced_ms'] / r['published_ms'] - 1):+.1f} %",
            f"{r['ledger_ms']:.1f} ms",
            f"{r['ledger_ms'] / r['published_ms']:.2f}",
        )
        for n, r in enumerate(records, 1)
    )
    facts = {
        "fast": toolkit.faster_than_memory("fa2") / 1e9,
        "fast3": toolkit.faster_than_memory("fa3") / 1e9,
        "bandwidth": rates.bytes_per_s / 1e9,
        "fp16": rates.flops_of("fp16") / 1e12,
    }
    n_near = sum(abs(r["reproduced_ms"] / r["published_ms"] - 1) <= 0.03 for r in records)
    flat = [{**{k: v for k, v in r.items() if k != "bridge"}, **r["bridge"]} for r in records]
    return Report(
        verdict=(f"{n_near} of {len(records)} published times come out within 3 %",),
        tables=(Table(columns, rows, frozenset(columns[1:])), _bridge_table(records)),
        notes=(
            "Published and reproduced, with its own assumptions: Alanma23/roofline-hack (MIT)."
            " Ledger: tokcast recommend, at the data sheet's peaks.",
            *(text.format(**facts) for text in _REMARKS),
        ),
        data={"rows": records},
        records=flat,
    )


def _bridge_table(records: list[dict[str, Any]]) -> Table:
    columns = ("from theirs to ours, ms", *(f"{i}" for i in range(1, len(records) + 1)))
    rows = tuple(
        (name, *(f"{r['bridge'][name]:+.1f}" for r in records)) for name in records[0]["bridge"]
    )
    return Table(columns, rows, frozenset(columns[1:]))
