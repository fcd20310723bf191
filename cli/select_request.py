"""What `tokcast select` is asked: text, and what it means."""

from dataclasses import dataclass
from pathlib import Path

from tokcast.cli.options import cache_type, flash_attention, number, one_count, runtime_of
from tokcast.hosts.quantity import parse_seconds
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.presets import preset
from tokcast.predictor.select.candidates import Asked
from tokcast.predictor.select.wishes import Wishes

# Below it, reading along is slow going; asked of a model where nothing else is said of speed.
USUAL_MIN_DECODE = 10.0
MAX_LIST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Request:
    """What was typed, as text."""

    addresses: tuple[str, ...] = ()
    search: str | None = None
    author: str | None = None
    limit: str = "20"
    is_local: bool = False
    list_file: str | None = None
    host: str | None = None
    backend: str | None = None
    runtime: str | None = None
    bandwidth: str | None = None
    tflops: str | None = None
    memory: str | None = None
    workload: str | None = None
    n_prompt: str = "512"
    at_depth: str = "0"
    n_context: str | None = None
    n_ubatch: str = "512"
    type_k: str = "f16"
    type_v: str = "f16"
    flash_attn: str = "auto"
    min_decode: str | None = None
    max_ttft: str | None = None
    max_turn: str | None = None
    quality_floor: str | None = None
    licences: tuple[str, ...] = ()
    sort: str = "size"
    offline: bool = False


@dataclass(frozen=True, slots=True)
class Show:
    """How much of the answer to show, as text."""

    top: str = "15"
    quants: bool = False
    why: str | None = None
    what_if: tuple[str, ...] = ()
    hosts: str | None = None
    plot: str | None = None


def wishes_of(request: Request) -> tuple[Wishes, bool]:
    """Return the wishes, and whether the slowest speed is the usual one; raises InputError."""
    named = None if request.workload is None else preset(request.workload)
    limits = (request.min_decode, request.max_ttft, request.max_turn)
    is_usual = limits == (None, None, None) and request.sort in ("size", "quality")
    min_decode = USUAL_MIN_DECODE if is_usual else None
    if request.min_decode is not None:
        min_decode = number(request.min_decode, "--min-decode", "tokens/s")
    if request.max_turn is not None and named is None:
        raise InputError("--max-turn: expected a --workload, whose turns are meant")
    context = request.n_context
    wishes = Wishes(
        n_prompt=one_count(request.n_prompt, "-p") if named is None else named.first_input,
        at_depth=one_count(request.at_depth, "--at-depth", at_least=0),
        n_context=None if context is None else one_count(context, "-c"),
        n_ubatch=one_count(request.n_ubatch, "-ub"),
        type_k=cache_type(request.type_k, "-ctk"),
        type_v=cache_type(request.type_v, "-ctv"),
        flash_attention=flash_attention(request.flash_attn),
        preset=named,
        min_decode=min_decode,
        max_ttft_s=_seconds(request.max_ttft, "--max-ttft"),
        max_turn_s=_seconds(request.max_turn, "--max-turn"),
        largest_loss=_loss(request.quality_floor),
        licences=tuple(name.lower() for name in request.licences),
    )
    return wishes, is_usual


def _seconds(text: str | None, flag: str) -> float | None:
    if text is None:
        return None
    try:
        return parse_seconds(text)
    except InputError as error:
        raise InputError(f"{flag}: {error}") from None


def _loss(text: str | None) -> float | None:
    """Return a perplexity ratio from `2%` or `1.02`."""
    if text is None:
        return None
    is_percent = text.strip().endswith("%")
    value = number(text.strip().removesuffix("%"), "--quality-floor", "a loss such as 2% or 1.02")
    ratio = 1 + value / 100 if is_percent else value
    if not 1 <= ratio <= 100:
        raise InputError(f"--quality-floor {text!r}: expected a loss such as 2% or 1.02")
    return ratio


def formats_of(runtime: str | None, host: Host) -> tuple[str, ...]:
    """Return the formats that come into question: MLX where Apple's chips or the user say so."""
    if runtime is not None:
        name = runtime_of(runtime, "mlx" if runtime.lower().startswith("mlx") else "gguf")
        return ("mlx",) if name == "mlx" else ("gguf",)
    return ("gguf", "mlx") if host.vendor == "Apple" else ("gguf",)


def asked_of(request: Request, formats: tuple[str, ...]) -> Asked:
    """Return what is to be looked at; raises InputError for a list that can't be read."""
    listed = () if request.list_file is None else lines_of(request.list_file)
    return Asked(
        addresses=(*request.addresses, *listed),
        search=request.search or "",
        author=request.author or "",
        limit=one_count(request.limit, "--limit"),
        is_local=request.is_local,
        formats=formats,
    )


def lines_of(path: str) -> tuple[str, ...]:
    """Return the lines of a list that are not empty and no comment."""
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            text = file.read(MAX_LIST_BYTES + 1)
    except OSError as error:
        raise InputError(
            f"{path}: {error.strerror}; expected a file of names, one a line"
        ) from None
    if len(text) > MAX_LIST_BYTES:
        raise InputError(f"{path}: expected a list of at most {MAX_LIST_BYTES} bytes")
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    found = tuple(line for line in lines if line)
    if not found:
        raise InputError(f"{path}: expected names, one a line, found none")
    return found
