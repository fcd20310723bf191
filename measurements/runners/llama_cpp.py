"""llama.cpp through llama-cpp-python's low-level API, timed as llama-bench times it.

Structures change between versions, so fields are set only where they exist.
"""

import contextlib
import ctypes
import importlib
import os
import random
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from tokcast.measurements.record import Setup, Task
from tokcast.measurements.runners.job import Job, longest
from tokcast.predictor.errors import InputError
from tokcast.predictor.quants import TYPES_BY_NAME

INSTALL = "pip install llama-cpp-python"
_FLASH = {"auto": -1, "off": 0, "on": 1}
_LOG_ERROR = 4
_GPU_BACKENDS = ("CUDA", "ROCm", "HIP", "Vulkan", "Metal", "MTL", "SYCL")


def library() -> Any:
    """Return the module; raises InputError where it is missing or can't load its libraries."""
    try:
        return importlib.import_module("llama_cpp.llama_cpp")
    except ImportError as error:
        raise InputError(f"llama-cpp-python is not installed; run: {INSTALL}") from error
    except (OSError, RuntimeError, AttributeError) as error:
        where = os.environ.get("LLAMA_CPP_LIB_PATH")
        hint = f"LLAMA_CPP_LIB_PATH={where} is of another version" if where else INSTALL
        raise InputError(f"llama-cpp-python does not load ({error}); {hint}") from error


def backend_of(system_info: str, offloads: bool) -> str:
    """Return the backend's name from llama.cpp's own list of what it was built with."""
    if offloads:
        for name in _GPU_BACKENDS:
            if name in system_info:
                return {"HIP": "ROCm", "MTL": "Metal"}.get(name, name)
    return "CPU"


def describe(wants_gpu: bool = True) -> Setup:
    """Return the version, what it was built with and the backend it would use."""
    lib = library()
    info = lib.llama_print_system_info().decode("utf-8", "replace")
    try:
        release = version("llama-cpp-python")
    except PackageNotFoundError:
        release = getattr(importlib.import_module("llama_cpp"), "__version__", "")
    return Setup(
        runtime="llama.cpp",
        version=f"llama-cpp-python {release}",
        build=" ".join(info.split()),
        backend=backend_of(info, wants_gpu and bool(lib.llama_supports_gpu_offload())),
    )


class LlamaCpp:
    """A model and its context."""

    def __init__(self, job: Job) -> None:
        self._l = lib = library()
        self._log = lib.llama_log_callback(self._keep_error)
        self.last_error = ""
        lib.llama_log_set(self._log, None)
        lib.llama_backend_init()
        self._model = self._load(job)
        self._context = self._open(job)
        self._memory = lib.llama_get_memory(self._context)
        vocab = lib.llama_model_get_vocab(self._model)
        self._n_vocab = max(int(lib.llama_vocab_n_tokens(vocab)), 1)
        self._n_batch = job.settings.n_batch
        self._random = random.Random(job.settings.seed)
        self._one = (lib.llama_token * 1)()
        self._one_batch = lib.llama_batch_get_one(self._one, 1)
        self._can_cut = True
        self._kept: dict[int, Any] = {}
        self._setup = self._describe(job)

    def _keep_error(self, level: int, text: bytes, _data: object) -> None:
        if level == _LOG_ERROR:
            self.last_error = text.decode("utf-8", "replace").strip() or self.last_error

    def _load(self, job: Job) -> Any:
        lib, s = self._l, job.settings
        params = lib.llama_model_default_params()
        if s.n_gpu_layers is not None:
            params.n_gpu_layers = s.n_gpu_layers
        if hasattr(params, "use_mmap"):
            params.use_mmap = s.load_mode == "mmap"
        elif s.load_mode == "none":
            params.load_mode = lib.LLAMA_LOAD_MODE_NONE
        model = lib.llama_model_load_from_file(os.fsencode(job.path), params)
        if not model:
            raise InputError(f"{job.path}: llama.cpp can't load it: {self.last_error}")
        return model

    def _open(self, job: Job) -> Any:
        params = self._parameters(job)
        context = self._l.llama_init_from_model(self._model, params)
        if not context:
            raise InputError(
                f"{job.path}: no room for a context of {params.n_ctx}: {self.last_error}"
            )
        return context

    def _parameters(self, job: Job) -> Any:
        """Return the context's parameters: one sequence, as long as the deepest test needs."""
        s = job.settings
        params = self._l.llama_context_default_params()
        params.n_ctx = longest(job) + 256
        params.n_batch, params.n_ubatch = s.n_batch, min(s.n_ubatch, s.n_batch)
        params.n_threads = params.n_threads_batch = s.n_threads
        params.type_k = TYPES_BY_NAME[s.type_k].id
        params.type_v = TYPES_BY_NAME[s.type_v].id
        if hasattr(params, "flash_attn_type"):
            params.flash_attn_type = _FLASH[s.flash_attention]
        elif hasattr(params, "flash_attn"):
            params.flash_attn = s.flash_attention == "on"
        if hasattr(params, "swa_full"):
            # As llama-bench: sliding layers keep their window only.
            params.swa_full = False
        return params

    def _describe(self, job: Job) -> Setup:
        s = job.settings
        found = describe(s.n_gpu_layers != 0)
        return replace(
            found,
            n_threads=s.n_threads,
            n_batch=s.n_batch,
            n_ubatch=s.n_ubatch,
            flash_attention=s.flash_attention,
            type_k=s.type_k,
            type_v=s.type_v,
            n_gpu_layers=s.n_gpu_layers,
            load_mode=s.load_mode,
        )

    @property
    def setup(self) -> Setup:
        """Return what runs and how."""
        return self._setup

    def _decode(self, batch: Any) -> None:
        code = self._l.llama_decode(self._context, batch)
        if code != 0:
            raise InputError(f"llama.cpp stopped with code {code}: {self.last_error}")

    def _read(self, n: int) -> None:
        """Run n random tokens through, in batches; positions go on from the cache."""
        lib = self._l
        while n > 0:
            k = min(n, self._n_batch)
            tokens = (lib.llama_token * k)(
                *(self._random.randrange(self._n_vocab) for _ in range(k))
            )
            self._decode(lib.llama_batch_get_one(tokens, k))
            n -= k
        lib.llama_synchronize(self._context)

    def _held(self) -> int:
        return int(self._l.llama_memory_seq_pos_max(self._memory, 0)) + 1

    def prepare(self, test: Task) -> None:
        """Bring the cache to the test's depth: cut back, restored, or filled further."""
        depth, held = test.n_depth, self._held()
        if held == depth:
            return
        if depth == 0:
            self._l.llama_memory_clear(self._memory, False)
        elif held > depth and self._cut(depth):
            return
        elif depth in self._kept:
            self._restore(depth)
        else:
            self._fill(depth)

    def _cut(self, depth: int) -> bool:
        """Drop what is beyond a depth; False where this cache can't (sliding, recurrent)."""
        if not self._can_cut:
            return False
        self._can_cut = bool(self._l.llama_memory_seq_rm(self._memory, 0, depth, -1))
        return self._can_cut

    def _fill(self, depth: int) -> None:
        if self._held() > depth or not self._can_cut:
            # A cut that was refused may have left part of it undone.
            self._l.llama_memory_clear(self._memory, False)
        self._read(depth - self._held())
        if not self._can_cut:
            self._keep(depth)

    def _keep(self, depth: int) -> None:
        lib = self._l
        size = lib.llama_state_seq_get_size(self._context, 0)
        buffer = (ctypes.c_uint8 * size)()
        if lib.llama_state_seq_get_data(self._context, buffer, size, 0):
            self._kept = {depth: buffer}

    def _restore(self, depth: int) -> None:
        lib = self._l
        lib.llama_memory_clear(self._memory, False)
        buffer = self._kept[depth]
        if not lib.llama_state_seq_set_data(self._context, buffer, len(buffer), 0):
            self._kept = {}
            self._fill(depth)

    def step(self, test: Task) -> None:
        """Read or generate the test's tokens."""
        if test.phase == "prefill":
            self._read(test.n)
            return
        lib, context, one, batch = self._l, self._context, self._one, self._one_batch
        for _ in range(test.n):
            one[0] = self._random.randrange(self._n_vocab)
            self._decode(batch)
            lib.llama_synchronize(context)

    def close(self) -> None:
        """Free the context and the model."""
        with contextlib.suppress(AttributeError):
            self._l.llama_free(self._context)
            self._l.llama_model_free(self._model)
