"""The six strategies: a format for each kind of operator, and for layers where that differs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tokcast.predictor.errors import InputError
from tokcast.predictor.precision.formats import Format, format_of
from tokcast.predictor.precision.operators import (
    FEED_FORWARD,
    OPERATORS,
    PROJECTIONS,
    Operator,
)

# Kinds whose format is that of the vectors between operators.
_MULTIPLIED: tuple[Operator, ...] = ("qk_matmul", "sv_matmul")
# Kinds that no runtime stores or computes below 16 bits, whatever the plan.
_SIXTEEN: tuple[Operator, ...] = ("softmax", "silu", "gelu", "rmsnorm", "layernorm", "rope")


@dataclass(frozen=True, slots=True)
class Plan:
    """Formats by name: of each kind of operator, of activations, and of layers by depth.

    `tiers` are (share of the layers, format): a layer's projections and feed-forward part take
    the first tier whose share it lies below.
    """

    name: str
    what: str
    formats: Mapping[Operator, str]
    activations: str = "FP16"
    tiers: tuple[tuple[float, str], ...] = ()

    @property
    def kv(self) -> Format:
        """Return the format of the K/V cache."""
        return format_of(self.formats["kv_cache"])

    def format_of(self, kind: Operator, depth: float | None = None) -> Format:
        """Return a kind's format; `depth` is a layer's place as a share of all layers."""
        if depth is not None and kind in PROJECTIONS + FEED_FORWARD:
            for below, name in self.tiers:
                if depth < below:
                    return format_of(name)
        return format_of(self.formats[kind])

    def stored(self) -> tuple[Format, ...]:
        """Return the formats of weights, the widest first."""
        kinds = PROJECTIONS + FEED_FORWARD
        names = [name for _, name in self.tiers] or [self.formats[kind] for kind in kinds]
        formats = {name: format_of(name) for name in names}
        return tuple(sorted(formats.values(), key=lambda f: -f.bits))

    def with_kv(self, name: str) -> "Plan":
        """Return the same plan with another K/V cache; raises InputError for no format."""
        kv = format_of(name).name
        if kv == self.kv.name:
            return self
        return replace(
            self, name=f"{self.name}+kv_{kv.lower()}", formats={**self.formats, "kv_cache": kv}
        )


def _plan(
    name: str,
    what: str,
    projections: str,
    feed_forward: str,
    kv: str,
    activations: str = "FP16",
    embeddings: str = "FP16",
    tiers: tuple[tuple[float, str], ...] = (),
) -> Plan:
    formats: dict[Operator, str] = dict.fromkeys(OPERATORS, "FP16")
    formats |= dict.fromkeys(PROJECTIONS, projections)
    formats |= dict.fromkeys(FEED_FORWARD, feed_forward)
    formats |= dict.fromkeys(_MULTIPLIED, activations)
    formats |= dict.fromkeys(_SIXTEEN, "FP16")
    formats |= {"kv_cache": kv, "embeddings": embeddings}
    return Plan(name, what, formats, activations, tiers)


_FP8, _FP4 = "FP8_E4M3", "NVFP4"
_THIRDS = ((0.33, "FP16"), (0.67, _FP8), (1.01, _FP4))
# Names and formats are the published toolkit's (docs/precision.md); norms and what is fused into
# other kernels stay at 16 bits here.
PLANS: tuple[Plan, ...] = (
    _plan("fp16_baseline", "16 bits everywhere", "FP16", "FP16", "FP16"),
    _plan("fp8_balanced", "8-bit floats everywhere", _FP8, _FP8, _FP8, _FP8, _FP8),
    _plan(
        "w4a16_aggressive",
        "4-bit integers beside 16-bit activations",
        *("INT4",) * 2,
        "FP16",
        embeddings="INT4",
    ),
    _plan(
        "nvfp4_blackwell",
        "4-bit floats beside 16-bit activations",
        _FP4,
        _FP4,
        _FP4,
        embeddings=_FP4,
    ),
    _plan("hybrid_long_context", "4-bit feed-forward and K/V, 8-bit attention", _FP8, _FP4, _FP4),
    _plan(
        "layerwise_gradient",
        "16, 8 and 4 bits by thirds of the layers",
        *("FP16",) * 2,
        _FP8,
        tiers=_THIRDS,
    ),
)
BASELINE = PLANS[0]


def plan_of(name: str) -> Plan:
    """Return a strategy by its name; raises InputError for another."""
    for plan in PLANS:
        if plan.name == name.strip().lower():
            return plan
    raise InputError(f"plan {name!r}: expected one of {', '.join(p.name for p in PLANS)}")
