"""MLX through mlx-lm's models, with its own step timing.

mlx-lm's `generation_tps` counts N tokens over the N - 1 intervals between them; here every
token's interval is timed.
"""

import importlib
import random
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tokcast.measurements.record import Setup, Task
from tokcast.measurements.runners.job import Job
from tokcast.predictor.errors import InputError

INSTALL = "pip install mlx mlx-lm   (on Linux: pip install 'mlx[cpu]' mlx-lm)"
# Tokens of a prompt that mlx-lm evaluates at once.
STEP = 2048


def library() -> Any:
    """Return mlx.core; raises InputError where MLX is missing."""
    try:
        importlib.import_module("mlx_lm")
        return importlib.import_module("mlx.core")
    except (ImportError, OSError) as error:
        raise InputError(f"MLX is not installed ({error}); run: {INSTALL}") from error


def device_name(mx: Any) -> str:
    """Return what MLX runs on, "cpu" or "gpu"."""
    return str(mx.default_device()).removeprefix("Device(").split(",")[0].strip()


def describe() -> Setup:
    """Return the versions and the device that MLX would use."""
    mx = library()
    info: dict[str, Any] = getattr(mx, "device_info", dict)()
    return Setup(
        runtime="mlx",
        version=f"mlx {version('mlx')}, mlx-lm {version('mlx-lm')}",
        build=device_name(mx),
        backend="MLX",
        device=str(info.get("device_name") or info.get("architecture") or ""),
        n_batch=STEP,
        n_ubatch=STEP,
        load_mode="safetensors",
    )


class Mlx:
    """A model folder loaded by mlx-lm."""

    def __init__(self, job: Job) -> None:
        self._mx = library()
        utils = importlib.import_module("mlx_lm.utils")
        self._caches = importlib.import_module("mlx_lm.models.cache")
        try:
            self._model, config = utils.load_model(Path(job.path))
        except Exception as error:
            raise InputError(f"{job.path}: mlx-lm can't load it: {error}") from error
        self._n_vocab = int(config.get("vocab_size") or config["text_config"]["vocab_size"])
        self._random = random.Random(job.settings.seed)
        self._cache = self._caches.make_prompt_cache(self._model)
        self._n = 0
        found = describe()
        self._setup = replace(
            found, n_threads=job.settings.n_threads if found.build == "cpu" else None
        )

    @property
    def setup(self) -> Setup:
        """Return what runs and how."""
        return self._setup

    def _tokens(self, n: int) -> Any:
        return self._mx.array([self._random.randrange(self._n_vocab) for _ in range(n)])

    def _wait(self) -> None:
        self._mx.eval([c.state for c in self._cache])

    def _read(self, n: int) -> None:
        logits = None
        while n > 0:
            k = min(n, STEP)
            logits = self._model(self._tokens(k)[None], cache=self._cache)
            self._wait()
            n -= k
            self._n += k
        if logits is not None:
            self._mx.eval(logits[:, -1, :])

    def prepare(self, test: Task) -> None:
        """Bring the cache to the test's depth: trimmed where it can be, else filled anew."""
        depth = test.n_depth
        if self._n > depth:
            over = self._n - depth
            can_trim = depth > 0 and self._caches.can_trim_prompt_cache(self._cache)
            if can_trim and self._caches.trim_prompt_cache(self._cache, over) == over:
                self._n = depth
            else:
                self._cache = self._caches.make_prompt_cache(self._model)
                self._n = 0
        if self._n < depth:
            self._read(depth - self._n)

    def step(self, test: Task) -> None:
        """Read the prompt, or generate greedily token by token."""
        if test.phase == "prefill":
            self._read(test.n)
            return
        mx = self._mx
        token = self._tokens(1)
        for _ in range(test.n):
            logits = self._model(token[None], cache=self._cache)
            token = mx.argmax(logits[:, -1, :], axis=-1)
            mx.eval(token)
        self._n += test.n

    def close(self) -> None:
        """Let go of the model."""
        self._model = self._cache = None


def is_slow_device(setup: Setup) -> bool:
    """Return whether MLX ran on a processor, where quantised kernels are not meant for speed."""
    return setup.runtime == "mlx" and setup.build == "cpu"
