"""What a runtime of its day did where nobody said."""

import pytest

from tokcast.hosts.match import find
from tokcast.predictor.effects import Shape, effects_of
from tokcast.predictor.terms import Run, Term


@pytest.mark.parametrize(
    ("run", "has_flash"),
    [
        (Run(year=2024.4), False),
        (Run(year=2026.0), True),
        (Run(), True),
        (Run(runtime="llamafile", year=2026.0), False),
        (Run(runtime="mlx", backend="MLX", year=2024.0), True),
        (Run(year=2026.0, flash_attention=False), False),
        (Run(runtime="ik_llama.cpp", year=2025.3), True),
        (Run(runtime="ik_llama.cpp", year=2025.3, flash_attention=False), False),
    ],
)
def test_flash_attention_is_as_asked_or_as_of_its_day(run: Run, has_flash: bool) -> None:
    """llama.cpp turns it on by itself since late August 2025; llamafile's fork is older."""
    assert run.has_flash is has_flash


@pytest.mark.parametrize(
    ("run", "one_by_one"),
    [
        (Run(year=2025.2), True),
        (Run(year=2025.4), False),
        (Run(), False),
        (Run(runtime="llamafile", year=2025.5), True),
        (Run(runtime="ik_llama.cpp", year=2025.2), False),
        (Run(backend="CPU", year=2025.2), False),
    ],
)
def test_experts_were_multiplied_one_by_one_until_spring_2025(run: Run, one_by_one: bool) -> None:
    """llama.cpp's pull requests 13199 and 13388 batch them."""
    shape = Shape("qwen3moe-48x2048", "qwen3moe", 2048, n_tokens=512, expert_rows=32.0)
    host = find("RTX 3090")
    experts = effects_of(Term("compute", "experts", "Q4_K", 1.0), "prefill", host, run, shape)
    dense = effects_of(Term("compute", "ffn", "Q4_K", 1.0), "prefill", host, run, shape)
    assert any("expertloop" in name for name, _ in experts) is one_by_one
    assert not any("expertloop" in name for name, _ in dense)
