"""How a recommendation of formats is shown: the pick, every plan, the pick's operators."""

from tokcast.cli.precision import Recommendation, model_name
from tokcast.cli.precision_data import data_of, record
from tokcast.cli.recommend import Option as FileOption
from tokcast.cli.recommend import options_of
from tokcast.cli.recommend import recommend as recommend_file
from tokcast.cli.render import Report, Table, count, rate, size
from tokcast.cli.scene import Setting
from tokcast.hosts.rates import capability_of
from tokcast.predictor import catalogue
from tokcast.predictor.errors import InputError
from tokcast.predictor.model import model_spec
from tokcast.predictor.precision.attention import newest_for
from tokcast.predictor.precision.choose import RULES, Option
from tokcast.predictor.precision.kept import Kept
from tokcast.predictor.precision.plans import Plan
from tokcast.predictor.select.quality import cache_loss
from tokcast.predictor.select.types import RULE, type_loss
from tokcast.predictor.sources import open_model
from tokcast.predictor.sources.open import DEFAULT_FILE_TYPE
from tokcast.predictor.spec import ModelSpec

# ggml's cache types that are published beside 16 bits and nearest to a format in bits.
_LIKE = {"FP8_E4M3": "q8_0", "INT8": "q8_0", "NVFP4": "q4_0", "INT4": "q4_0", "MXFP4": "q4_0"}


def report(r: Recommendation) -> Report:
    """Return the report of a recommendation."""
    file_option = _file_option(r)
    tables = (_plans_table(r), _operators_table(r))
    return Report(
        verdict=_verdict(r),
        tables=tables,
        notes=_notes(r, file_option),
        data=data_of(r, file_option),
        records=[record(r, o) for o in r.options],
    )


def _where(r: Recommendation) -> str:
    lengths = {
        "decode": f"generating at a context of {count(r.step.n_context)}",
        "prefill": f"reading {count(r.step.n_context)} tokens at once",
    }
    n = f"{r.host.n_devices}x " if r.host.n_devices > 1 else ""
    return f"{model_name(r)} on {n}{r.host.name}, {lengths[r.step.phase]}"


def _verdict(r: Recommendation) -> tuple[str, ...]:
    if not r.has_pick:
        first = r.options[0]
        return (
            f"No plan will do for {_where(r)}.",
            f"  Nearest: {first.plan.name}: {first.misses}",
        )
    o = r.shown
    ms, speedup = 1e3 * o.cost.seconds, r.baseline.cost.seconds / o.cost.seconds
    speed = rate(o.cost.n_tokens / o.cost.seconds)
    misses = f"; but {o.misses}" if o.misses else ""
    return (
        f"{o.plan.name} for {_where(r)}",
        f"  {ms:,.3g} ms at the data sheet's peaks, {speed} tok/s at most; {speedup:.2f} x 16 bits",
        f"  Needs {size(o.cost.need_bytes)}, of it K/V {size(o.cost.kv_bytes)}; {_kept(o.kept)}"
        f"{misses}",
    )


def _kept(k: Kept | None) -> str:
    if k is None:
        return "nothing published of what its answers keep"
    if not k.n_models:
        return "16 bits, which others are measured beside"
    spread = f"{100 * k.low:.1f} - {100 * k.high:.1f}"
    return f"{k.format} keeps {100 * k.share:.1f} % of MMLU ({spread}, {k.n_models} models)"


def _weights(plan: Plan) -> str:
    if plan.tiers:
        return "by layer"
    return "/".join(f.name.removesuffix("_E4M3") for f in plan.stored())


def _miss(o: Option) -> str:
    """Return in a word why a plan will not do; the data has it in full."""
    if not o.misses:
        return ""
    return "no room" if o.is_native else o.misses.removesuffix(" rate known")


def _plans_table(r: Recommendation) -> Table:
    columns = ("plan", "weights", "K/V", "ms", "speed", "needs", "MMLU", "")
    rows = tuple(
        (
            o.plan.name,
            _weights(o.plan),
            o.plan.kv.name.removesuffix("_E4M3"),
            f"{1e3 * o.cost.seconds:,.1f}",
            f"{r.baseline.cost.seconds / o.cost.seconds:.2f}x",
            f"{o.cost.need_bytes / 1024**3:.1f}G",
            "" if o.kept is None else f"{100 * o.kept.share:.1f} %",
            _miss(o),
        )
        for o in r.options
    )
    return Table(columns, rows, frozenset(columns[3:7]))


def _operators_table(r: Recommendation) -> Table:
    columns = (r.shown.plan.name, "format", "multiplied as", "MB", "Gflop", "ms", "bound")
    rows = tuple(
        (
            row.operator,
            row.format,
            row.arithmetic,
            f"{row.n_bytes / 1e6:,.1f}",
            f"{row.flops / 1e9:,.2f}",
            f"{1e3 * row.time.seconds:.3f}",
            row.bound,
        )
        for row in r.shown.cost.rows
    )
    return Table(columns, rows, frozenset(columns[3:6]))


def _notes(r: Recommendation, file_option: FileOption | None) -> tuple[str, ...]:
    peaks = ", ".join(
        f"{name.upper()} {value / 1e12:,.4g}" for name, value in r.rates.flops_per_s.items()
    )
    o = r.shown
    notes = [
        f"Objective {r.objective}: {RULES[r.objective]}.",
        f"Peaks: {r.rates.bytes_per_s / 1e9:,.4g} GB/s; TFLOP/s {peaks}. Operators one after"
        " another, so a floor: nothing fitted is in it.",
        f"Inside other kernels, without traffic of their own: {', '.join(o.cost.fused)}, at 16"
        " bits.",
    ]
    if r.host.vendor == "NVIDIA" and (capability := capability_of(r.host)):
        version = newest_for(capability).name[2:]
        notes.append(
            f"Attention: FlashAttention {version} is the newest written for compute capability"
            f" {capability}."
        )
    notes.append(
        "MMLU: what the lossiest format of weights was published to keep of the 16-bit score,"
        " blank where nothing was published; the mix itself was not measured."
    )
    notes += _sources(r)
    notes += [f"Note: {note.rstrip('.')}." for note in r.notes]
    return (*notes, *_file_notes(file_option))


def _sources(r: Recommendation) -> list[str]:
    k, found = r.shown.kept, []
    if k is not None and k.sources:
        found.append(f"{k.format}: {'; '.join(k.sources)}.")
    like = _LIKE.get(r.shown.plan.kv.name, "")
    figure = cache_loss(like, like).ppl_ratio if like else None
    if figure is not None:
        found.append(
            f"K/V: published of llama.cpp's {like}, not of {r.shown.plan.kv.name}: perplexity x"
            f" {figure.value:.3f} ({figure.low:.3f} - {figure.high:.3f}, n = {figure.n})."
        )
    return found


def _file_notes(o: FileOption | None) -> tuple[str, ...]:
    if o is None:
        return ()
    known = type_loss(o.file_type)
    runtime = "MLX" if o.file_type.startswith("mlx-") else "llama.cpp"
    loss = "" if known is None else f", perplexity {100 * (known.ratio - 1):+.1f} % by type"
    return (
        f"As a file for {runtime}: {o.file_type}, {rate(o.decode.tok_per_s)} tok/s predicted"
        f" ({rate(o.decode.low)} - {rate(o.decode.high)}){loss}: {RULE}.",
    )


def _file_option(r: Recommendation) -> FileOption | None:
    """Return the file type that `/api/v1/recommend` takes, for a model of the catalogue."""
    name, _, like = r.request.model.partition("@")
    if name not in catalogue.names():
        return None

    def open_spec(address: str) -> ModelSpec:
        return model_spec(open_model(address, offline=True))

    n = r.step.n_context
    setting = Setting(n_depth=n) if r.step.phase == "decode" else Setting(n_prompt=n)
    here = r.request.host is None and r.request.bandwidth is None
    like = like or DEFAULT_FILE_TYPE
    try:
        options = options_of(name, like, r.host, setting, n, open_spec, is_here=here)
        return recommend_file(tuple(options), None).best
    except InputError:
        return None
