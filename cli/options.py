"""From what was typed to values, with errors that say what to do."""

import re
from collections.abc import Iterator

from tokcast.cli.render import cut
from tokcast.hosts.quantity import (
    about_comma,
    parse_bandwidth,
    parse_bytes,
    parse_count,
    parse_tflops,
)
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.quants import TYPES_BY_NAME
from tokcast.predictor.terms import BACKENDS

RUNTIMES = ("llama.cpp", "mlx")
MAX_SWEEP = 64
MAX_COUNT = 2**31
# llama-bench's first-last, first-last+step and first-last*factor.
_RANGE = re.compile(r"\s*([^-+*\s]+)-([^-+*\s]+)(?:([+*])([^-+*\s]+))?\s*")
_VENDOR_OF = {"CUDA": "NVIDIA", "ROCm": "AMD", "Metal": "Apple"}


def counts(text: str, flag: str) -> tuple[int, ...]:
    """Return a comma list of token counts; suffix k is 1024.

    A part may be a range as in llama-bench: `0-16k+4k` adds, `512-8k*2` multiplies.
    """
    parts = text.split(",")
    values: tuple[int, ...] = ()
    if text.strip() and len(parts) <= MAX_SWEEP:
        values = tuple(value for part in parts for value in _range(part, flag))
    if not 0 < len(values) <= MAX_SWEEP:
        raise InputError(f"{flag} {cut(text, 40)!r}: expected 1 to {MAX_SWEEP} numbers: 0,4k,16k")
    return values


def _range(text: str, flag: str) -> Iterator[int]:
    """Yield one count, or those of a range, at most one more than are allowed."""
    match = _RANGE.fullmatch(text)
    if match is None:
        yield _count(text, flag)
        return
    value, last = _count(match[1], flag), _count(match[2], flag)
    step = _count(match[4] or "1", flag)
    factor = match[3] == "*"
    if value > last or step < 1 + factor or (factor and not value):
        raise InputError(
            f"{flag} {cut(text, 40)!r}: expected a range that rises and ends, "
            "as 0-16k+4k or 512-8k*2"
        )
    for _ in range(MAX_SWEEP + 1):
        if value > last:
            return
        yield value
        value = value * step if factor else value + step


def _count(text: str, flag: str) -> int:
    try:
        value = parse_count(text)
    except InputError:
        value = MAX_COUNT
    if value >= MAX_COUNT:
        raise InputError(
            f"{flag} {text!r}: expected whole numbers from 0 up and below 2^31, such as 512 or 64k"
        )
    return value


def one_count(text: str, flag: str, at_least: int = 1) -> int:
    """Return one token count."""
    values = counts(text, flag)
    if len(values) != 1 or values[0] < at_least:
        raise InputError(f"{flag} {text!r}: expected one number of at least {at_least}")
    return values[0]


def cache_type(text: str, flag: str) -> str:
    """Return a K or V cache type as ggml names it."""
    name = text.upper()
    allowed = ("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "IQ4_NL", "Q5_0", "Q5_1")
    if name not in allowed or name not in TYPES_BY_NAME:
        raise InputError(f"{flag} {text!r}: expected one of {', '.join(allowed).lower()}")
    return name


def flash_attention(text: str) -> bool:
    """Return whether flash attention is on; auto is on, as the runtimes decide today."""
    choices = {"on": True, "1": True, "auto": True, "off": False, "0": False}
    if text.lower() not in choices:
        raise InputError(f"-fa {text!r}: expected on, off or auto")
    return choices[text.lower()]


def backend_of(text: str | None, runtime: str, host: Host) -> str:
    """Return the backend asked for, or the one people use on such a host.

    Raises InputError for one that doesn't exist or doesn't run there.
    """
    backend = _usual_backend(runtime, host) if text is None else _named_backend(text)
    if (backend == "MLX") != (runtime == "mlx"):
        raise InputError(
            f"--backend {backend}: not one of the runtime {runtime}; expected "
            + ("MLX" if runtime == "mlx" else "--runtime mlx with it, and an MLX model")
        )
    vendor = _VENDOR_OF.get(backend)
    if vendor and host.vendor and host.vendor != vendor:
        raise InputError(
            f"--backend {backend}: runs on chips of {vendor}, not on {host.name};"
            f" expected {_usual_backend('llama.cpp', host)} or Vulkan there"
        )
    return backend


def _named_backend(text: str) -> str:
    for name in BACKENDS:
        if name.lower() == text.lower():
            return name
    raise InputError(f"--backend {text!r}: expected one of {', '.join(BACKENDS)}")


def _usual_backend(runtime: str, host: Host) -> str:
    if runtime == "mlx":
        return "MLX"
    if host.kind == "cpu":
        return "CPU"
    if host.vendor == "AMD":
        return "ROCm" if host.kind == "discrete_gpu" else "Vulkan"
    return {"NVIDIA": "CUDA", "Apple": "Metal"}.get(host.vendor, "Vulkan")


def runtime_of(text: str | None, model_format: str) -> str:
    """Return the runtime asked for, or the one that reads the model's format.

    Raises InputError for one that doesn't exist or can't read the model.
    """
    usual = "mlx" if model_format == "mlx" else "llama.cpp"
    if text is None:
        return usual
    name = {"mlx-lm": "mlx", "llamacpp": "llama.cpp"}.get(text.lower(), text.lower())
    if name not in RUNTIMES:
        raise InputError(f"--runtime {text!r}: expected llama.cpp or mlx")
    if name != usual:
        raise InputError(
            f"--runtime {name}: does not read {model_format.upper()} models; expected "
            + ("a GGUF file, or name@Q4_K_M" if name == "llama.cpp" else "an MLX folder, or")
            + (" of the catalogue" if name == "llama.cpp" else " name@mlx-4bit of the catalogue")
        )
    return name


def host_of(
    name: str | None, bandwidth: str | None, tflops: str | None, memory: str | None
) -> tuple[Host, tuple[str, ...]]:
    """Return the host named, given by numbers, or detected, with notes on what is uncertain."""
    from tokcast.hosts.custom import from_numbers, override

    bytes_per_s = None if bandwidth is None else parse_bandwidth(bandwidth)
    flops_per_s = None if tflops is None else parse_tflops(tflops)
    memory_bytes = None if memory is None else parse_bytes(memory)
    if name is None and bytes_per_s is not None:
        host = from_numbers(bytes_per_s, flops_per_s, memory_bytes)
        return host, host.notes
    host, notes = detected() if name is None else named(name)
    return override(host, bytes_per_s, flops_per_s, memory_bytes), notes


def detected() -> tuple[Host, tuple[str, ...]]:
    """Return what this machine would run a model on, with notes; raises InputError without."""
    from tokcast.hosts.detect import detect

    found = detect()
    if not found.hosts:
        raise InputError("this machine was not recognised; give --host NAME or --bandwidth GB/s")
    return found.hosts[0], found.notes


def named(name: str) -> tuple[Host, tuple[str, ...]]:
    """Return a host by its name or TOML file, with notes on what the spelling leaves open."""
    if name.lower().endswith(".toml"):
        from tokcast.hosts.custom import from_toml

        host = from_toml(name)
        return host, host.notes
    from tokcast.hosts.registry import chip

    host = _found(name)
    # What the registry says of a chip is for `hosts show`; what the spelling leaves open is not.
    known = chip(host.name).notes
    return host, tuple(note for note in host.notes if note not in known)


def _found(name: str) -> Host:
    from tokcast.hosts.machine import main_memory
    from tokcast.hosts.match import find

    try:
        return find(name)
    except InputError:
        if main_memory(name) is None:
            raise
    raise InputError(
        f"host {name!r}: only a main memory; expected a chip too, "
        "as 'Ryzen 9 7950X + 64G DDR5-6000'"
    )


def number(text: str, flag: str, expected: str) -> float:
    """Return a positive number; raises InputError naming the flag."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < MAX_COUNT:
        raise InputError(
            f"{flag} {cut(text, 40)!r}: expected {expected}, a number above 0{about_comma(text)}"
        )
    return value
