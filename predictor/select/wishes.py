"""What is wanted of a model on a host, and what of it a prediction misses."""

import math
from dataclasses import dataclass

from tokcast.predictor.memory import padded
from tokcast.predictor.presets import Preset

# Tokens generated from a depth on, whose middle one is predicted, as `tokcast predict` does.
N_GEN = 128


@dataclass(frozen=True, slots=True)
class Wishes:
    """Lengths, settings and limits; a limit that is None or empty is not asked for.

    `at_depth` is what lies in the cache before the prompt of `n_prompt` tokens and before what
    is generated. With a preset the lengths are its medians. `largest_loss` is the largest
    perplexity ratio to 16 bits; a file type without a published figure misses it.
    """

    n_prompt: int = 512
    at_depth: int = 0
    n_context: int | None = None
    n_ubatch: int = 512
    type_k: str = "F16"
    type_v: str = "F16"
    flash_attention: bool = True
    preset: Preset | None = None
    min_decode: float | None = None
    max_ttft_s: float | None = None
    max_turn_s: float | None = None
    largest_loss: float | None = None
    licences: tuple[str, ...] = ()
    level: float = 0.8

    @property
    def context(self) -> int:
        """Return the positions that memory must hold."""
        if self.n_context is not None:
            return self.n_context
        if self.preset is not None:
            end = self.preset.first_input + self.preset.output
            return padded(max(self.preset.context_at_end, end))
        return max(4096, self.at_depth + self.n_prompt + N_GEN)


@dataclass(frozen=True, slots=True)
class Miss:
    """A wish that is not met: what was found, the limit, and by how much in words.

    `found` is None where nothing is known. `factor` is how far off, 1 being at the limit.
    """

    wish: str
    found: float | str | None
    limit: float | str
    factor: float
    words: str


def too_little(wish: str, found: float, limit: float, words: str) -> Miss:
    """Return the miss of a lower limit."""
    return Miss(wish, found, limit, limit / found if found else math.inf, words)


def too_much(wish: str, found: float, limit: float, words: str) -> Miss:
    """Return the miss of an upper limit."""
    return Miss(wish, found, limit, found / limit if limit else math.inf, words)
