"""What a measurement ran, as workloads the ledger understands."""

from tokcast.measurements.schema import Measurement
from tokcast.predictor.ledger import Workload
from tokcast.predictor.quants import TYPES_BY_NAME

# LocalScore's nine (prompt, answer) lengths, in tokens. Its published prompt and generation speeds
# are means of tokens/s over them. Source: Mozilla-Ocho/llamafile, localscore/, 2025.
LOCALSCORE = (
    (1024, 16),
    (4096, 256),
    (2048, 256),
    (2048, 768),
    (1024, 1024),
    (1280, 3072),
    (384, 1152),
    (64, 1024),
    (16, 1536),
)
DEFAULT_UBATCH = 512
DEFAULT_BATCH = 2048
# mlx_lm's prefill_step_size.
MLX_UBATCH = 2048
_CACHE_ALIASES = {"FP16": "F16", "BFLOAT16": "BF16"}


def _cache_type(text: str) -> str:
    """Return a cache type by its ggml name; types of forks stand as the nearest size known."""
    name = _CACHE_ALIASES.get(text.upper(), text.upper())
    return name if name in TYPES_BY_NAME else "F16"


def _ubatch(m: Measurement) -> int:
    """Return the micro-batch: as stated, no larger than the batch, else the runtime's default."""
    default = MLX_UBATCH if m.backend == "MLX" else DEFAULT_UBATCH
    return max(int(min(m.n_ubatch or default, m.n_batch or DEFAULT_BATCH)), 1)


def _workload(m: Measurement, n_prompt: float, n_gen: float, n_depth: float) -> Workload:
    """Return one workload; a generated run is stood for by its middle token."""
    depth = n_depth + n_gen / 2 if m.phase == "decode" else n_depth
    return Workload(
        phase="decode" if m.phase == "decode" else "prefill",
        n_prompt=max(int(n_prompt), 1),
        n_depth=int(depth),
        n_ubatch=_ubatch(m),
        type_k=_cache_type(m.type_k or "F16"),
        type_v=_cache_type(m.type_v or m.type_k or "F16"),
        flash_attention=m.flash_attn != 0,
    )


def workloads(m: Measurement) -> tuple[Workload, ...]:
    """Return the workloads whose mean rate a measurement is; empty when lengths are unknown."""
    if m.is_suite:
        if m.phase == "decode":
            return tuple(_workload(m, 1, gen, prompt) for prompt, gen in LOCALSCORE)
        return tuple(_workload(m, prompt, 0, 0) for prompt, _ in LOCALSCORE)
    length = m.n_gen if m.phase == "decode" else m.n_prompt
    if not length or m.n_depth is None:
        return ()
    return (_workload(m, m.n_prompt or 1, m.n_gen or 0, m.n_depth),)
