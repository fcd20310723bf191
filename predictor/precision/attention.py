"""Traffic of fused attention kernels, FlashAttention 1 to 4, at one memory level.

All of them keep scores on the chip; they differ in which loop is the outer one, how many rows of
queries a tile has, and whether query heads that share keys sit in one tile. Re-reads are counted
as if no cache held them: an upper bound on memory's bytes, beside the least there can be.
"""

import math
from dataclasses import dataclass

from tokcast.predictor.errors import InputError
from tokcast.predictor.precision.formats import Format, format_of

# A running maximum and a running sum in FP32 for each row of queries.
_STATISTICS_BYTES = 8.0


@dataclass(frozen=True, slots=True)
class Attention:
    """One layer's attention: heads, queries, keys, and how large a head is.

    `kept` is the share of key blocks that a sparse kernel visits. Raises InputError for lengths
    below 1, query heads that key heads do not divide, and shares outside (0, 1].
    """

    n_head: int
    n_head_kv: int
    n_query: int
    n_key: int
    head_size: int
    n_batch: int = 1
    is_causal: bool = True
    kept: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what is no attention."""
        sizes = (self.n_head, self.n_head_kv, self.n_query, self.n_key, self.head_size)
        if min(*sizes, self.n_batch) < 1:
            raise InputError(f"attention of {sizes}, batch {self.n_batch}: expected at least 1")
        if self.n_head % self.n_head_kv:
            raise InputError(
                f"{self.n_head} query heads beside {self.n_head_kv} key heads: expected a multiple"
            )
        if not 0 < self.kept <= 1:
            raise InputError(f"kept share {self.kept}: expected above 0 and at most 1")

    @property
    def pairs(self) -> float:
        """Return (query, key) pairs of all heads: about half of them where later keys are masked.

        Queries are the last ones of the keys.
        """
        all_pairs = float(self.n_query * self.n_key)
        if self.is_causal:
            all_pairs -= self.n_query * (self.n_query - 1) / 2
        return self.n_batch * self.n_head * all_pairs * self.kept

    @property
    def flops(self) -> float:
        """Return operations of both products: 4 a pair and number of a head."""
        return 4.0 * self.head_size * self.pairs

    @property
    def exponentials(self) -> float:
        """Return exponentials of the softmax, one a pair."""
        return self.pairs

    def query_bytes(self, f: Format) -> float:
        """Return the bytes of all queries, as large as the output's."""
        return self.n_batch * self.n_head * self.n_query * self.head_size * f.bytes

    def cache_bytes(self, f: Format) -> float:
        """Return the bytes of all keys and values that are visited."""
        return (
            2.0 * self.n_batch * self.n_head_kv * self.n_key * self.head_size * f.bytes * self.kept
        )


@dataclass(frozen=True, slots=True)
class Kernel:
    """A generation of the kernel.

    `queries_inside` where keys are the outer loop, so that queries and output cross memory once a
    tile of keys. `packs` says when query heads that share keys sit in one tile: never, for one
    query only, or always. `share` is the best published share of a chip's dense peak.
    """

    name: str
    year: int
    tile_query: int
    tile_key: int
    queries_inside: bool
    packs: str
    arithmetic: tuple[str, ...]
    share: float
    share_of: str
    source: str


KERNELS: tuple[Kernel, ...] = (
    Kernel(
        "fa1",
        2022,
        128,
        128,
        True,
        "never",
        ("fp16",),
        0.40,
        "25-40 % on A100",
        "arXiv 2205.14135; share: abstract of arXiv 2307.08691",
    ),
    Kernel(
        "fa2",
        2023,
        128,
        128,
        False,
        "one query",
        ("fp16",),
        0.73,
        "50-73 % on A100",
        "arXiv 2307.08691",
    ),
    Kernel(
        "fa3",
        2024,
        128,
        128,
        False,
        "always",
        ("fp16", "fp8"),
        0.75,
        "740 TFLOP/s on H100 in FP16",
        "arXiv 2407.08608",
    ),
    Kernel(
        "fa4",
        2026,
        256,
        128,
        False,
        "always",
        ("fp16", "fp8"),
        0.71,
        "1,613 TFLOP/s on B200 in BF16",
        "arXiv 2603.05451",
    ),
)


def kernel_of(name: str) -> Kernel:
    """Return a kernel by its name; raises InputError for another."""
    for kernel in KERNELS:
        if kernel.name == name.strip().lower():
            return kernel
    raise InputError(f"kernel {name!r}: expected one of {', '.join(k.name for k in KERNELS)}")


def newest_for(capability: str) -> Kernel:
    """Return the newest kernel written for an NVIDIA compute capability such as 9.0.

    FlashAttention 3 is for Hopper (9.0), 4 for Hopper's and Blackwell's data-centre chips (10.x);
    12.x, GB10's and GeForce's Blackwell, lacks their instructions and runs 2, as 8.x does.
    """
    major = capability.partition(".")[0]
    return kernel_of({"9": "fa3", "10": "fa4", "11": "fa4", "7": "fa1"}.get(major, "fa2"))


@dataclass(frozen=True, slots=True)
class Traffic:
    """Bytes that cross memory: queries and output, keys and values, statistics of the softmax."""

    query_bytes: float
    cache_bytes: float
    statistics_bytes: float
    least_bytes: float

    @property
    def n_bytes(self) -> float:
        """Return all bytes."""
        return self.query_bytes + self.cache_bytes + self.statistics_bytes


def traffic(kernel: Kernel, a: Attention, queries: Format, cache: Format) -> Traffic:
    """Return a kernel's bytes.

    Keys outside (1): K/V once a query head; for each tile of keys the queries in, the output and
    two statistics in and out. Queries outside (2 to 4): queries in and output out once, K/V once a
    tile of queries. Masked tiles are skipped, so half of the re-reads where masked.
    """
    half = a.pairs / (a.n_batch * a.n_head * a.n_query * a.n_key * a.kept)
    q, kv = a.query_bytes(queries), a.cache_bytes(cache)
    rows, group = float(a.n_batch * a.n_head * a.n_query), a.n_head // a.n_head_kv
    least = 2 * q + kv
    if kernel.queries_inside:
        tiles = _tiles(a.n_key, kernel.tile_key) * a.kept * half
        moved = max(tiles, 1.0)
        statistics = 2 * _STATISTICS_BYTES * rows * moved
        return Traffic(3 * q * moved, kv * group, statistics, least)
    packs = kernel.packs == "always" or (kernel.packs == "one query" and a.n_query == 1)
    per_tile, times = (a.n_query * group, 1) if packs else (a.n_query, group)
    reads = max(_tiles(per_tile, kernel.tile_query) * half, 1.0)
    return Traffic(2 * q, kv * times * reads, _STATISTICS_BYTES / 2 * rows, least)


def _tiles(n: int, tile: int) -> int:
    return math.ceil(n / tile)


def unfused_bytes(a: Attention, f: Format) -> float:
    """Return the bytes without fusing: scores and probabilities written and read, in a format."""
    scores = 4.0 * a.n_batch * a.n_head * a.n_query * a.n_key * f.bytes
    return 2 * a.query_bytes(f) + a.cache_bytes(f) + scores


def usable(kernel: Kernel, f: Format) -> Format:
    """Return a format as far as a kernel multiplies it, 16 bits where it does not."""
    return f if f.arithmetic in kernel.arithmetic else format_of("FP16")
