"""From what was typed to values, with errors that say what to do."""

from tokcast.hosts.quantity import parse_bandwidth, parse_bytes, parse_count, parse_tflops
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.quants import TYPES_BY_NAME
from tokcast.predictor.terms import BACKENDS

RUNTIMES = ("llama.cpp", "mlx")
MAX_SWEEP = 64


def counts(text: str, flag: str) -> tuple[int, ...]:
    """Return a comma list of token counts; suffix k is 1024."""
    values = tuple(parse_count(part) for part in text.split(",") if part.strip())
    if not values or len(values) > MAX_SWEEP:
        raise InputError(f"{flag} {text!r}: expected 1 to {MAX_SWEEP} numbers, as in 0,4k,16k")
    return values


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
    """Return the backend asked for, or the one people use on such a host."""
    if text is not None:
        for name in BACKENDS:
            if name.lower() == text.lower():
                return name
        raise InputError(f"--backend {text!r}: expected one of {', '.join(BACKENDS)}")
    if runtime == "mlx":
        return "MLX"
    if host.kind == "cpu":
        return "CPU"
    by_vendor = {"NVIDIA": "CUDA", "Apple": "Metal"}
    if host.vendor == "AMD":
        return "ROCm" if host.kind == "discrete_gpu" else "Vulkan"
    return by_vendor.get(host.vendor, "Vulkan")


def runtime_of(text: str | None, model_format: str) -> str:
    """Return the runtime asked for, or the one that reads the model's format."""
    if text is None:
        return "mlx" if model_format == "mlx" else "llama.cpp"
    name = {"mlx-lm": "mlx", "llamacpp": "llama.cpp"}.get(text.lower(), text.lower())
    if name not in RUNTIMES:
        raise InputError(f"--runtime {text!r}: expected llama.cpp or mlx")
    return name


def host_of(
    name: str | None, bandwidth: str | None, tflops: str | None, memory: str | None
) -> tuple[Host, tuple[str, ...]]:
    """Return the host named, given by numbers, or detected, with notes on what is uncertain."""
    from tokcast.hosts.custom import from_numbers, from_toml, override

    bytes_per_s = None if bandwidth is None else parse_bandwidth(bandwidth)
    flops_per_s = None if tflops is None else parse_tflops(tflops)
    memory_bytes = None if memory is None else parse_bytes(memory)
    if name is None and bytes_per_s is not None:
        return from_numbers(bytes_per_s, flops_per_s, memory_bytes), ()
    notes: tuple[str, ...] = ()
    if name is None:
        from tokcast.hosts.detect import detect

        found = detect()
        if not found.hosts:
            raise InputError(
                "this machine was not recognised; give --host NAME or --bandwidth GB/s"
            )
        host, notes = found.hosts[0], found.notes
    elif name.endswith(".toml"):
        host = from_toml(name)
    else:
        from tokcast.hosts.match import find

        host = find(name)
    return override(host, bytes_per_s, flops_per_s, memory_bytes), notes
