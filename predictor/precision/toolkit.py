"""A published toolkit's arithmetic for Llama 3 8B on GB10, to say in numbers where ours differs.

Alanma23/roofline-hack, README and docs/QUANTIZATION.md (MIT). Its assumptions, which reproduce
its tables: a layer is three feed-forward products and attention, without the projections of
attention and without the head; keys and values are read once for each of 32 query heads, not 8;
FlashAttention 2 and 3 divide memory's time by 1.15 and 1.10, which no memory does; queries are
read once a tile of 128 keys and keys once a tile of 32 queries.
"""

import math
from dataclasses import dataclass

from tokcast.predictor import catalogue
from tokcast.predictor.model import model_spec
from tokcast.predictor.precision.cost import Step, cost, retyped
from tokcast.predictor.precision.formats import format_of
from tokcast.predictor.precision.plans import plan_of
from tokcast.predictor.precision.products import Product, time_of
from tokcast.predictor.precision.rates import Rates

N_LAYER, N_HEAD, N_HEAD_KV, HEAD_SIZE, WIDTH, WIDE = 32, 32, 8, 128, 4096, 14336
VOCABULARY = 128256
TILE_QUERY, TILE_KEY = 32, 128
# Its peaks; GB10's published ones are 273 GB/s, 125, 250 and 500 dense TFLOP/s.
GB10 = Rates(
    "GB10 of the toolkit",
    287e9,
    {"fp16": 62e12, "fp8": 124e12, "int8": 124e12, "int4": 248e12, "fp4": 1000e12},
)
# What it divides memory's time by.
FASTER = {"fa1": 1.0, "fa2": 1.15, "fa3": 1.10, "fa4": 1.10}


def attention_ms(kernel: str, n_query: int, n_key: int, queries: str, cache: str) -> float:
    """Return the milliseconds that the toolkit gives a layer's attention on GB10."""
    q, kv = format_of(queries), format_of(cache)
    row = float(N_HEAD * HEAD_SIZE)
    read = row * n_query * q.bytes * math.ceil(n_key / TILE_KEY)
    read += 2 * row * n_key * kv.bytes * math.ceil(n_query / TILE_QUERY)
    n_bytes = read + row * n_query * q.bytes + 2 * N_HEAD * n_query * 4
    flops = (4 * HEAD_SIZE + 5.0) * N_HEAD * n_query * n_key
    seconds = max(n_bytes / GB10.bytes_per_s, flops / GB10.flops_of(q.arithmetic))
    return 1e3 * seconds / FASTER[kernel]


def step_ms(kernel: str, feed_forward: str, queries: str, cache: str, n_context: int) -> float:
    """Return the milliseconds that it gives a decoded token."""
    f = format_of(feed_forward)
    product = Product(1, WIDE, WIDTH, f, f, format_of("FP16"))
    products_ms = 3e3 * time_of(product, GB10).seconds
    return N_LAYER * (attention_ms(kernel, 1, n_context, queries, cache) + products_ms)


def cache_mib(cache: str, n_context: int) -> float:
    """Return the MiB of the K/V cache of 8 key heads."""
    numbers = 2.0 * N_LAYER * N_HEAD_KV * HEAD_SIZE * n_context
    return numbers * format_of(cache).bytes / 2**20


def saved_percent(name: str) -> float:
    """Return the percent of bytes that a format saves beside 16 bits, scales included."""
    return 100 * (1 - format_of(name).bits / 16)


@dataclass(frozen=True, slots=True)
class Published:
    """A row of its tables and the call that reproduces it; `plan` is ours beside it, if any."""

    what: str
    ms: float
    n_context: int
    kernel: str
    feed_forward: str
    queries: str
    cache: str
    plan: str

    @property
    def reproduced_ms(self) -> float:
        """Return its figure by its own assumptions."""
        found = (self.kernel, self.feed_forward, self.queries, self.cache)
        return step_ms(*found, self.n_context)


# The rows of NVFP4 hold attention in other formats than they say: 16 bits at 4k, 8 bits at 32k.
STEPS: tuple[Published, ...] = (
    Published("FP16 baseline", 45.8, 4096, "fa2", "FP16", "FP16", "FP16", "fp16_baseline"),
    Published("FP8 balanced", 23.7, 4096, "fa3", *("FP8_E4M3",) * 3, "fp8_balanced"),
    Published("NVFP4 Blackwell", 17.7, 4096, "fa2", "NVFP4", "FP16", "FP16", "nvfp4_blackwell"),
    Published("FP16", 91.6, 32768, "fa2", "FP16", "FP16", "FP16", "fp16_baseline"),
    Published("NVFP4 K/V", 37.4, 32768, "fa2", "NVFP4", "FP16", "FP8_E4M3", "nvfp4_blackwell"),
)


def bridge(row: Published, bytes_per_s: float, ledger_ms: float) -> dict[str, float]:
    """Return, in ms, what each assumption that is not the model's or the chip's makes of a row.

    The parts add up to ours less the reproduced time; `bytes_per_s` and `ledger_ms` are ours.
    """
    plan, n = plan_of(row.plan), row.n_context
    theirs = N_LAYER * attention_ms(row.kernel, 1, n, row.queries, row.cache)
    unhurried = theirs * FASTER[row.kernel]
    ms_a_byte = 1e3 / GB10.bytes_per_s
    cache = 2.0 * N_LAYER * N_HEAD_KV * HEAD_SIZE * n * plan.kv.bytes * ms_a_byte
    weights = 2.0 * N_LAYER * WIDTH * (WIDTH + N_HEAD_KV * HEAD_SIZE) * ms_a_byte
    found = {
        "memory no faster than itself": unhurried - theirs,
        "K/V of 8 heads, in its format": cache - unhurried,
        "projections of attention": weights * plan.format_of("q_proj").bytes,
        "the head": VOCABULARY * WIDTH * plan.format_of("embeddings").bytes * ms_a_byte,
    }
    here = row.reproduced_ms + sum(found.values())
    found["bandwidth of the data sheet"] = here * (GB10.bytes_per_s / bytes_per_s - 1)
    found["norms, activations, scales"] = ledger_ms - row.reproduced_ms - sum(found.values())
    return found


def ledger_ms(plan: str, n_context: int, bytes_per_s: float, flops_per_s: float) -> float:
    """Return the milliseconds that the ledger gives a decoded token under a plan.

    `flops_per_s` is the peak of 16 bits, taken as half of that of 8.
    """
    rates = Rates("GB10", bytes_per_s, {"fp16": flops_per_s, "fp8": 2 * flops_per_s})
    header = catalogue.header("llama-3-8b", "F16")
    return 1e3 * cost(header, plan_of(plan), Step("decode", n_context), rates).seconds


def speedup(name: str) -> float:
    """Return how many times fewer bytes a format takes than 16 bits, scales included."""
    return 16 / format_of(name).bits


def ridge(arithmetic: str) -> float:
    """Return the toolkit's critical intensity of GB10, FLOP/byte."""
    return GB10.ridge(arithmetic)


def faster_than_memory(kernel: str) -> float:
    """Return the bytes/s at which the toolkit has a kernel read a memory of 287 GB/s."""
    return GB10.bytes_per_s * FASTER[kernel]


def even_context(weights: str, cache: str) -> float:
    """Return the context at which reading K/V takes as long as reading the weights."""
    spec = model_spec(retyped(catalogue.header("llama-3-8b", "F16"), plan_of(weights)))
    a_token = 2.0 * N_LAYER * N_HEAD_KV * HEAD_SIZE * format_of(cache).bytes
    read = sum(g.n_bytes * g.read_fraction for g in spec.groups)
    return read / a_token
