"""Bytes moved and operations done by each component, for prefill and decode.

`docs/ledger.md` derives every formula. One token of decode is a prefill of one token, so both
phases run through the same code.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tokcast.predictor.cache import Span, cache_bytes, capped_sum, k_row, spans, v_row
from tokcast.predictor.errors import InputError
from tokcast.predictor.spec import ModelSpec, WeightGroup
from tokcast.predictor.work import Phase, Work, Workload, per_type, total

__all__ = [
    "DecodeLedger",
    "LedgerPlan",
    "Phase",
    "Work",
    "Workload",
    "compile_decode",
    "compile_ledger",
    "ledger",
    "total",
]

F32_BYTES = 4
# The product of queries and keys is written and read by the softmax, twice.
SCORE_PASSES = 4
# Two additions a block, each reading two vectors and writing one.
RESIDUAL_VECTORS = 6
# Operations on every number of the state for one token: decay, update, read-out.
STATE_FLOPS = {"none": 0, "conv": 0, "ssm": 5, "linear": 7, "rwkv": 9}


def ledger(spec: ModelSpec, workload: Workload) -> tuple[Work, ...]:
    """Return the work of one decoded token or of a whole prompt, by component and type.

    Raises InputError for lengths that make no sense or an unknown cache type.
    """
    for name, value, least in (
        ("n_prompt", workload.n_prompt, 1),
        ("n_depth", workload.n_depth, 0),
        ("n_ubatch", workload.n_ubatch, 1),
    ):
        if value < least:
            raise InputError(f"{name} is {value}, expected {least} or more")
    plan = compile_ledger(spec, workload.type_k, workload.type_v, workload.flash_attention)
    if workload.phase == "decode":
        return plan.decode().at(workload.n_depth)
    n_prompt, n_ubatch = workload.n_prompt, workload.n_ubatch
    return plan.fixed(n_prompt, n_ubatch) + plan.at_depth(n_prompt, workload.n_depth, n_ubatch)


def compile_decode(
    spec: ModelSpec, type_k: str = "F16", type_v: str = "F16", flash_attention: bool = True
) -> "DecodeLedger":
    """Return the decode ledger with everything but the depth worked out."""
    return compile_ledger(spec, type_k, type_v, flash_attention).decode()


@dataclass(frozen=True, slots=True)
class LedgerPlan:
    """A model's ledger with types settled and layers added up; made by `compile_ledger`.

    `token_spans` stand for `spans` where one token is run alone.
    """

    groups: tuple[WeightGroup, ...]
    spans: tuple[Span, ...]
    token_spans: tuple[Span, ...]
    type_k: str
    type_v: str
    flash_attention: bool
    k_written: float
    v_written: float
    n_attention: int
    n_caching: int
    state_bytes: float
    state_flops: float
    n_recurrent: int
    n_routing: int
    n_layer: int
    residual_bytes: float

    def decode(self) -> "DecodeLedger":
        """Return the ledger of one token at any depth."""
        return DecodeLedger(self, self.fixed(1, 1))

    def fixed(self, n_token: int, n_ubatch: int) -> tuple[Work, ...]:
        """Return the work that does not depend on the depth."""
        n_full, n_rest = divmod(n_token, n_ubatch)
        n_batch = n_full + (n_rest > 0)
        works = [_weight_work(g, n_token, n_ubatch) for g in self.groups if g.read_fraction]
        works += _lookups(self.groups, n_token, n_batch)
        n_kernel = self.n_caching * n_batch
        works += per_type(
            "kv_write",
            (self.type_k, self.k_written * n_token, 0.0, n_kernel),
            (self.type_v, self.v_written * n_token, 0.0, n_kernel if self.v_written else 0),
        )
        if self.n_recurrent:
            moved, flops = self.state_bytes * n_batch, self.state_flops * n_token
            works.append(
                Work("recurrent_state", "F32", moved, flops, 2 * self.n_recurrent * n_batch)
            )
        works.append(self._activations(n_token, n_batch))
        return tuple(works)

    def _activations(self, n_token: int, n_batch: int) -> Work:
        moved = self.residual_bytes * n_token
        for group in self.groups:
            n_run = 1 if group.component == "head" else n_token
            moved += F32_BYTES * group.n_activations * n_run
        # Two additions and a gate a block; top-k and the weighted sum of experts.
        n_launches = (3 * self.n_layer + 2 * self.n_routing) * n_batch
        return Work("activations", "F32", moved, 0.0, n_launches)

    def at_depth(self, n_token: int, n_depth: int, n_ubatch: int) -> tuple[Work, ...]:
        """Return the work of attention: what grows with the depth."""
        n_full, n_rest = divmod(n_token, n_ubatch)
        k_bytes = v_bytes = k_flops = v_flops = scores = 0.0
        for span in self.spans if n_token > 1 else self.token_spans:
            # Query t of the prompt sees the positions before it and itself, up to the window.
            pairs = capped_sum(n_depth + 1, 1, n_token, span.window)
            # A micro-batch of u reads the positions of all its queries once.
            rows = n_rows = 0.0
            if n_full:
                cap = span.window + n_ubatch - 1
                rows = capped_sum(n_depth + n_ubatch, n_ubatch, n_full, cap)
                n_rows = rows * n_ubatch
            if n_rest:
                last = min(n_depth + n_token, span.window + n_rest - 1)
                rows += last
                n_rows += last * n_rest
            k_bytes += span.k_bytes * rows
            v_bytes += span.v_bytes * rows
            k_flops += span.k_flops * pairs
            v_flops += span.v_flops * pairs
            scores += span.n_head * n_rows
        return self._attention_works(
            (k_bytes, v_bytes, k_flops, v_flops, scores), n_full + (n_rest > 0)
        )

    def _attention_works(
        self, sums: tuple[float, float, float, float, float], n_batch: int
    ) -> tuple[Work, ...]:
        if not self.spans:
            return ()
        k_bytes, v_bytes, k_flops, v_flops, scores = sums
        n_kernel = self.n_attention * n_batch
        works = per_type(
            "kv_read", (self.type_k, k_bytes, 0.0, 0.0), (self.type_v, v_bytes, 0.0, 0.0)
        )
        # Two rotations and the fused kernel; without it the second product is one more.
        works += per_type(
            "attention_op",
            (self.type_k, 0.0, k_flops, 3 * n_kernel),
            (self.type_v, 0.0, v_flops, 0.0 if self.flash_attention else n_kernel),
        )
        if not self.flash_attention:
            works.append(Work("scores", "F32", SCORE_PASSES * F32_BYTES * scores, 0.0, n_kernel))
        return tuple(works)


@dataclass(frozen=True, slots=True)
class DecodeLedger:
    """The work of one decoded token: `fixed` at every depth, the rest by `at_depth`."""

    plan: LedgerPlan
    fixed: tuple[Work, ...]

    def at_depth(self, n_depth: int) -> tuple[Work, ...]:
        """Return the work of attention over `n_depth` cached positions and the token's own."""
        return self.plan.at_depth(1, n_depth, 1)

    def at(self, n_depth: int) -> tuple[Work, ...]:
        """Return all work of one token."""
        return self.fixed + self.at_depth(n_depth)


def compile_ledger(
    spec: ModelSpec, type_k: str = "F16", type_v: str = "F16", flash_attention: bool = True
) -> LedgerPlan:
    """Return the model's ledger with cache types settled and layers added up.

    Raises InputError for an unknown cache type.
    """
    k_size, v_size = cache_bytes(type_k), cache_bytes(type_v)
    attending = [x for x in spec.layers if x.attention != "none"]
    caching = [x for x in attending if x.has_kv]
    return LedgerPlan(
        groups=spec.groups,
        spans=spans(attending, k_size, v_size),
        # llama.cpp gathers the picked rows for single tokens, and masks the others in batches.
        token_spans=spans(
            attending, k_size, v_size, is_picking=flash_attention and spec.format == "gguf"
        ),
        type_k=type_k,
        type_v=type_v,
        flash_attention=flash_attention,
        k_written=sum(k_row(x) for x in caching) * k_size,
        v_written=sum(v_row(x) for x in caching) * v_size,
        n_attention=len(attending),
        n_caching=len(caching),
        state_bytes=2.0 * F32_BYTES * sum(x.state_elements for x in spec.layers),
        state_flops=float(sum(STATE_FLOPS[x.mixer] * x.state_elements for x in spec.layers)),
        n_recurrent=sum(x.state_elements > 0 for x in spec.layers),
        n_routing=sum(x.n_expert > 0 for x in spec.layers),
        n_layer=len(spec.layers),
        residual_bytes=float(
            F32_BYTES * RESIDUAL_VECTORS * spec.embedding_length * len(spec.layers)
        ),
    )


def _weight_work(group: WeightGroup, n_token: int, n_ubatch: int) -> Work:
    fraction = group.read_fraction
    if group.component == "head":
        flops = 2.0 * group.n_matmul_params
        return Work("head", group.type, float(group.n_bytes), flops, float(group.n_tensors))
    n_full, n_rest = divmod(n_token, n_ubatch)
    # The share of experts that at least one of u tokens picks, tokens choosing independently.
    passes = n_full * _touched(fraction, n_ubatch) + (_touched(fraction, n_rest) if n_rest else 0)
    return Work(
        group.component,
        group.type,
        group.n_bytes * passes,
        2.0 * group.n_matmul_params * fraction * n_token,
        float(group.n_tensors * (n_full + (n_rest > 0))),
    )


def _touched(fraction: float, n_token: int) -> float:
    return 1.0 - (1.0 - fraction) ** n_token


def _lookups(groups: Sequence[WeightGroup], n_token: int, n_batch: int) -> list[Work]:
    by_type: dict[str, int] = {}
    for group in groups:
        if group.n_lookup_bytes:
            by_type[group.type] = by_type.get(group.type, 0) + group.n_lookup_bytes
    return [
        Work("embedding", type_name, float(size * n_token), 0.0, float(n_batch))
        for type_name, size in by_type.items()
    ]
