"""What the API takes, with bounds. SI units."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from tokcast.cli.scene import Setting

CacheType = Literal["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "IQ4_NL", "Q5_0", "Q5_1"]
Tokens = Annotated[int, Field(ge=1, le=1 << 20, strict=True)]
Depth = Annotated[int, Field(ge=0, le=1 << 24, strict=True)]
# Far below and above what any machine or model has, and far from where floats end.
Positive = Annotated[float, Field(ge=1e-9, le=1e18, allow_inf_nan=False, strict=True)]
Rate = Annotated[float, Field(ge=1e6, le=1e18, allow_inf_nan=False)]
Memory = Annotated[float, Field(ge=1 << 20, le=1e18, allow_inf_nan=False)]
Address = Annotated[
    str,
    Field(
        min_length=1,
        max_length=500,
        description="name@FILETYPE, owner/repo[:quant], an address, upload:… or file:NAME",
        examples=["llama-3.1-8b@Q4_K_M"],
    ),
]


class Body(BaseModel):
    """Anything the API takes: nothing beyond what is documented."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Pair(Body):
    """A model and a host; without a host, the machine that serves."""

    model: Address
    host: Annotated[str, Field(max_length=200, examples=["RTX 4090"])] | None = None
    runtime: Literal["llama.cpp", "mlx"] | None = None
    backend: Literal["CUDA", "ROCm", "Vulkan", "Metal", "MLX", "SYCL", "CPU"] | None = None
    bytes_per_s: Rate | None = None
    flops_per_s: Rate | None = None
    memory_bytes: Memory | None = None


class Conditions(Body):
    """Lengths and types of a run; `n_context` is the context that memory is to hold."""

    n_prompt: Tokens = 512
    n_gen: Tokens = 128
    n_depth: Depth = 0
    n_ubatch: Annotated[int, Field(ge=1, le=1 << 16, strict=True)] = 512
    type_k: CacheType = "F16"
    type_v: CacheType = "F16"
    flash_attention: StrictBool | None = None
    n_context: Annotated[int, Field(ge=1, le=1 << 24, strict=True)] | None = None

    def setting(self) -> Setting:
        """Return the same without pydantic."""
        return Setting(
            self.n_prompt,
            self.n_gen,
            self.n_depth,
            self.n_ubatch,
            self.type_k,
            self.type_v,
            self.flash_attention,
        )


class Costs(Body):
    """What a kWh costs, in any money, and emits: a grid's code, or grams of CO2 as text."""

    price_per_kwh: Positive | None = None
    grid: Annotated[str, Field(min_length=1, max_length=40, examples=["DE", "381"])] | None = None


class PredictIn(Pair, Costs):
    """One pair at several lengths and depths; with energy where it or what it costs is asked for.

    `power_limit_w` is of a graphics card, and slows it down.
    """

    n_prompt: Annotated[tuple[Tokens, ...], Field(max_length=8)] = (512,)
    n_gen: Annotated[tuple[Tokens, ...], Field(max_length=8)] = (128,)
    n_depth: Annotated[tuple[Depth, ...], Field(min_length=1, max_length=16)] | None = None
    n_ubatch: Annotated[int, Field(ge=1, le=1 << 16, strict=True)] = 512
    type_k: CacheType = "F16"
    type_v: CacheType = "F16"
    flash_attention: StrictBool | None = None
    n_context: Annotated[int, Field(ge=1, le=1 << 24, strict=True)] | None = None
    energy: StrictBool = False
    power_limit_w: Positive | None = None


class Look(Body):
    """How drawings are to look."""

    theme: Literal["light", "dark"] = "light"
    width: Annotated[int, Field(ge=280, le=2000)] = 760


class CompareIn(Conditions, Costs):
    """Up to four pairs under the same conditions; `look` asks for drawings as well."""

    pairs: Annotated[tuple[Pair, ...], Field(min_length=1, max_length=4)]
    look: Look | None = None


class InspectIn(Body):
    """A model by address."""

    model: Address


class RecommendIn(Conditions):
    """A model of the catalogue whose file types are to be compared on a host."""

    model: Address
    host: Annotated[str, Field(max_length=200)] | None = None
    bytes_per_s: Rate | None = None
    flops_per_s: Rate | None = None
    memory_bytes: Memory | None = None
    at_least_tok_per_s: Positive | None = None


class SelectIn(Body):
    """Wishes for a model of the catalogue on a host; `limit` bounds the candidates returned."""

    models: Annotated[tuple[Address, ...], Field(max_length=32)] = ()
    host: Annotated[str, Field(max_length=200)] | None = None
    memory_bytes: Memory | None = None
    n_prompt: Tokens = 512
    n_depth: Depth = 0
    n_context: Annotated[int, Field(ge=1, le=1 << 24, strict=True)] | None = None
    workload: Annotated[str, Field(max_length=40)] | None = None
    min_decode_tok_per_s: Positive | None = None
    max_ttft_s: Positive | None = None
    max_turn_s: Positive | None = None
    sort: Annotated[str, Field(max_length=20)] = "size"
    limit: Annotated[int, Field(ge=1, le=1000, strict=True)] = 50


class FormatsIn(Body):
    """A model of the catalogue whose number formats are to be chosen on a host."""

    model: Address
    host: Annotated[str, Field(max_length=200)] | None = None
    memory_bytes: Memory | None = None
    phase: Literal["decode", "prefill"] = "decode"
    n_context: Tokens = 4096
    objective: Literal["balanced", "speed", "memory", "quality"] = "balanced"
    plan: Annotated[str, Field(max_length=40)] | None = None
    kv_format: Annotated[str, Field(max_length=20)] | None = None


Size = Annotated[int, Field(ge=1, le=1 << 20, strict=True)]


class Shape(Body):
    """A product of an (m x k) by a (k x n) matrix; m is 1 for a matrix-vector product."""

    m: Size = 1
    n: Size = 4096
    k: Size = 4096


class AnalyzeIn(Shape):
    """One product on a host, its weights in a ggml type."""

    type: Annotated[str, Field(max_length=20, examples=["F16", "Q4_K"])] = "F16"
    host: Annotated[str, Field(max_length=200)] | None = None
    measure: StrictBool = False


class SweepIn(Body):
    """Products of several shapes and types on a host."""

    shapes: Annotated[tuple[Shape, ...], Field(min_length=1, max_length=32)]
    types: Annotated[
        tuple[Annotated[str, Field(max_length=20)], ...], Field(min_length=1, max_length=16)
    ]
    host: Annotated[str, Field(max_length=200)] | None = None
