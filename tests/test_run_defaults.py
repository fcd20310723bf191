"""What a runtime of its day did where nobody said."""

import pytest

from tokcast.predictor.terms import Run


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
