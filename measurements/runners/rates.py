"""What a runtime's own kernels sustain on its own device: matrix reads and matrix products.

For llama.cpp through ggml's backend interface, on the best device it has; for MLX through its
arrays. A product with one column reads the whole matrix (bandwidth); one with many is bound by
arithmetic. Types whose kernels work on 8-bit integers, such as Q8_0, give the integer rate.
"""

import ctypes
import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from tokcast.measurements.runners import llama_cpp, mlx
from tokcast.predictor.errors import InputError
from tokcast.predictor.quants import TYPES_BY_NAME

ROWS, COLUMNS = 8192, 4096
BATCH = 512
N_REPEATS = 5
GGML_TYPES = ("F32", "F16", "Q8_0")
_CONTEXT_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Rate:
    """One kernel's best rate and its spread, the share by which the median lies below the best."""

    type: str
    bytes_per_s: float
    flops_per_s: float
    spread: float


def _best(work: Callable[[], object], n: int = N_REPEATS) -> tuple[float, float]:
    """Return the shortest time and its spread; the first call is a warm-up."""
    work()
    seconds = []
    for _ in range(n):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds), 1 - min(seconds) / median(seconds)


class _InitParams(ctypes.Structure):
    _fields_ = (
        ("mem_size", ctypes.c_size_t),
        ("mem_buffer", ctypes.c_void_p),
        ("no_alloc", ctypes.c_bool),
    )


_P, _I, _I64, _Z = ctypes.c_void_p, ctypes.c_int, ctypes.c_int64, ctypes.c_size_t
_SIGNATURES: Mapping[str, tuple[Any, tuple[Any, ...]]] = {
    "ggml_backend_load_all": (None, ()),
    "ggml_backend_init_best": (_P, ()),
    "ggml_backend_name": (ctypes.c_char_p, (_P,)),
    "ggml_backend_free": (None, (_P,)),
    "ggml_init": (_P, (_InitParams,)),
    "ggml_free": (None, (_P,)),
    "ggml_new_tensor_2d": (_P, (_P, _I, _I64, _I64)),
    "ggml_mul_mat": (_P, (_P, _P, _P)),
    "ggml_new_graph": (_P, (_P,)),
    "ggml_build_forward_expand": (None, (_P, _P)),
    "ggml_backend_alloc_ctx_tensors": (_P, (_P, _P)),
    "ggml_backend_buffer_clear": (None, (_P, ctypes.c_uint8)),
    "ggml_backend_buffer_free": (None, (_P,)),
    "ggml_backend_graph_compute": (_I, (_P, _P)),
    "ggml_backend_synchronize": (None, (_P,)),
}


def _ggml_path(module_file: str) -> Path:
    """Return ggml's library beside the one of llama.cpp that is loaded."""
    given = os.environ.get("LLAMA_CPP_LIB_PATH")
    folder = Path(given) if given else Path(module_file).parent / "lib"
    for name in ("libggml.so", "libggml.dylib", "ggml.dll"):
        if (folder / name).exists():
            return folder / name
    raise InputError(f"{folder}: no ggml library to measure with; {llama_cpp.INSTALL}")


def _ggml() -> Any:
    path = _ggml_path(str(llama_cpp.library().__file__))
    try:
        found = ctypes.CDLL(str(path))
        for name, (result, arguments) in _SIGNATURES.items():
            function = getattr(found, name)
            function.restype, function.argtypes = result, arguments
    except (OSError, AttributeError) as error:
        raise InputError(f"this llama.cpp has no backend interface to measure: {error}") from error
    return found


def _product_seconds(g: Any, backend: Any, type_name: str, n: int) -> tuple[float, float]:
    context = g.ggml_init(_InitParams(_CONTEXT_BYTES, None, True))
    try:
        a = g.ggml_new_tensor_2d(context, TYPES_BY_NAME[type_name].id, COLUMNS, ROWS)
        b = g.ggml_new_tensor_2d(context, TYPES_BY_NAME["F32"].id, COLUMNS, n)
        graph = g.ggml_new_graph(context)
        g.ggml_build_forward_expand(graph, g.ggml_mul_mat(context, a, b))
        buffer = g.ggml_backend_alloc_ctx_tensors(context, backend)
        if not buffer:
            raise InputError("no room on the device to measure its rates")
        # Zeros: finite in every type, and as fast as other numbers.
        g.ggml_backend_buffer_clear(buffer, 0)

        def work() -> None:
            g.ggml_backend_graph_compute(backend, graph)
            g.ggml_backend_synchronize(backend)

        try:
            return _best(work)
        finally:
            g.ggml_backend_buffer_free(buffer)
    finally:
        g.ggml_free(context)


def ggml_rates(n_threads: int) -> tuple[str, tuple[Rate, ...]]:
    """Return the device llama.cpp would use and its rates by type; raises InputError."""
    g = _ggml()
    g.ggml_backend_load_all()
    backend = g.ggml_backend_init_best()
    if not backend:
        raise InputError("llama.cpp has no device to compute on")
    name = g.ggml_backend_name(backend).decode()
    if name == "CPU" and hasattr(g, "ggml_backend_cpu_set_n_threads"):
        g.ggml_backend_cpu_set_n_threads.argtypes = (_P, _I)
        g.ggml_backend_cpu_set_n_threads(backend, n_threads)
    try:
        return name, tuple(_ggml_rate(g, backend, t) for t in GGML_TYPES)
    finally:
        g.ggml_backend_free(backend)


def _ggml_rate(g: Any, backend: Any, type_name: str) -> Rate:
    n_bytes = TYPES_BY_NAME[type_name].size((COLUMNS, ROWS))
    read, read_spread = _product_seconds(g, backend, type_name, 1)
    product, spread = _product_seconds(g, backend, type_name, BATCH)
    flops = 2.0 * ROWS * COLUMNS * BATCH
    return Rate(type_name, n_bytes / read, flops / product, max(read_spread, spread))


def mlx_rates() -> tuple[str, tuple[Rate, ...]]:
    """Return MLX's device and its rates in float32 and float16."""
    mx = mlx.library()
    return mlx.device_name(mx), tuple(_mlx_rates(mx))


def _mlx_rates(mx: Any) -> Iterator[Rate]:
    # On a processor it is for tests of function only.
    rows, batch = (ROWS, BATCH) if mlx.device_name(mx) == "gpu" else (512, 64)
    for name, kind in (("F32", mx.float32), ("F16", mx.float16)):
        a = mx.zeros((rows, COLUMNS), dtype=kind)
        one, many = mx.zeros((COLUMNS, 1), dtype=kind), mx.zeros((COLUMNS, batch), dtype=kind)
        mx.eval(a, one, many)
        read, read_spread = _best(lambda a=a, one=one: mx.eval(a @ one))  # type: ignore[misc]
        product, spread = _best(lambda a=a, b=many: mx.eval(a @ b))  # type: ignore[misc]
        yield Rate(
            name,
            a.nbytes / read,
            2.0 * rows * COLUMNS * batch / product,
            max(read_spread, spread),
        )
