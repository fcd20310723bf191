"""Speeds of many models equal the predictions of each."""

import pytest

from tokcast.fits.released import released
from tokcast.hosts.match import find
from tokcast.predictor.ledger import Workload
from tokcast.predictor.memory import memory
from tokcast.predictor.roofline import Question, predict
from tokcast.predictor.select.candidates import of_catalogue
from tokcast.predictor.select.rows import Judge, Setup
from tokcast.predictor.select.speeds import Plans, Speeds
from tokcast.predictor.select.wishes import Wishes
from tokcast.predictor.spec import ModelSpec
from tokcast.predictor.terms import Run

MODELS = ("llama-3.1-8b", "qwen3-30b-a3b", "gemma-3n-e2b", "deepseek-v2-lite", "mixtral-8x7b")
RUNS = (
    ("RTX 4090", Run("llama.cpp", "CUDA")),
    ("RX 7900 XTX", Run("llama.cpp", "Vulkan")),
    ("Ryzen 9 7950X", Run("llama.cpp", "CPU")),
    ("M2 Ultra 76-core", Run("mlx", "MLX")),
)
LOADS = (
    Workload("decode", 1, 0),
    Workload("decode", 1, 16_000, type_k="Q8_0", type_v="Q4_0"),
    Workload("prefill", 512, 0),
    Workload("prefill", 700, 9000, n_ubatch=256, flash_attention=False),
)


def _specs(mlx: bool) -> list[ModelSpec]:
    formats = ("mlx",) if mlx else ("gguf",)
    return [c.spec for name in MODELS for c in of_catalogue(name, None, formats)]


@pytest.mark.parametrize(("name", "run"), RUNS, ids=[run.backend for _, run in RUNS])
@pytest.mark.parametrize("load", LOADS, ids=["tg", "tg-deep", "pp", "pp-deep"])
def test_a_speed_is_the_prediction(name: str, run: Run, load: Workload) -> None:
    question = Question(load, find(name), run)
    plans = Plans(load.type_k, load.type_v, load.flash_attention)
    speeds = Speeds(question, released(), plans)
    for spec in _specs(run.runtime == "mlx"):
        speed, p = speeds.of(spec), predict(spec, question, released())
        found = (speed.tok_per_s, speed.low, speed.high, speed.seconds)
        assert found == pytest.approx((p.tok_per_s, p.low, p.high, p.seconds), rel=1e-9)
    assert speeds.evidence == p.evidence


@pytest.mark.parametrize("name", ["RTX 4090", "M2 Ultra 76-core"])
def test_memory_is_that_of_each_file(name: str) -> None:
    host = find(name)
    wishes = Wishes(n_context=8192)
    judge = Judge(host, None, lambda _: Setup(host, RUNS[0][1], released()), wishes)
    for spec in _specs(mlx=False):
        use = memory(spec, 8192)
        need = use.unified_bytes if host.is_unified else use.device_bytes
        assert judge.need_bytes(spec) == pytest.approx(need, rel=1e-6)
