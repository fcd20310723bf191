"""Which layers attend to a sliding window of positions only.

A newer file says so; for an older one the rule is the architecture's, as in llama.cpp (MIT,
commit 0c1e570, `src/models/*.cpp`).
"""

from dataclasses import dataclass

from tokcast.predictor.families import KNOWN
from tokcast.predictor.keys import Keys


@dataclass(frozen=True, slots=True)
class WindowRule:
    """Which layers slide when the file names none.

    Every `every`-th layer is full, the last of each run or, with `full_first`, the first;
    0 means that all layers slide, None that only a pattern in the file decides. `window`
    stands in for a missing key, and for any key where the runtime fixes it (`is_fixed`).
    """

    every: int | None = None
    full_first: bool = False
    window: int | None = None
    is_fixed: bool = False

    def is_sliding(self, block: int) -> bool:
        """Return whether a block slides by the rule alone."""
        if self.every is None:
            return False
        if self.every == 0:
            return True
        place = block % self.every
        return place != 0 if self.full_first else place != self.every - 1


_BY_PATTERN = WindowRule()
WINDOW_RULES = {
    "afmoe": WindowRule(4),
    "cohere2": WindowRule(4),
    "cohere2moe": WindowRule(4, full_first=True),
    "deepseek4": WindowRule(0),
    "dots3note": _BY_PATTERN,
    "exaone-moe": WindowRule(4, window=128),
    "exaone4": WindowRule(4, window=4096),
    "gemma-embedding": WindowRule(6),
    "gemma2": WindowRule(2, window=4096),
    "gemma3": WindowRule(6),
    "gemma3n": WindowRule(5),
    "gemma4": _BY_PATTERN,
    "gpt-oss": WindowRule(2),
    "granite_swa": _BY_PATTERN,
    "laguna": WindowRule(4, full_first=True),
    "lfm2": WindowRule(0),
    "lfm2moe": WindowRule(0),
    # Chunks of 8192 positions whatever the key says, unless it is 0.
    "llama4": WindowRule(4, window=8192, is_fixed=True),
    "maple": _BY_PATTERN,
    "mellum": WindowRule(4),
    "mimo2": _BY_PATTERN,
    "modern-bert": WindowRule(3, full_first=True),
    "muse-glimmer": WindowRule(4),
    "olmo2": WindowRule(4),
    "plamo3": WindowRule(8),
    "smallthinker": WindowRule(4, full_first=True, window=4096, is_fixed=True),
    "spark2_5": _BY_PATTERN,
    "step35": _BY_PATTERN,
}
# Of the sizes of EXAONE 4 only the 32B slides; the file of the 1.2B is told by its depth.
EXAONE4_SLIDING_BLOCKS = 64


class Windows:
    """The sliding windows of one model."""

    def __init__(self, architecture: str, keys: Keys, n_block: int) -> None:
        self._keys = keys
        self._flags = keys.flags("attention.sliding_window_pattern")
        self._rule = _rule(architecture, keys, n_block, self._flags is not None)
        self._window = _window(architecture, keys, self._rule)
        if self._window and self._flags is None and self._rule.every is None:
            keys.warn(
                f"a sliding window of {self._window} without a pattern this version knows for "
                f"{architecture!r}; every layer is taken to see all positions"
            )

    def at(self, block: int) -> int | None:
        """Return how many positions a block sees, or None for all of them."""
        if not self._window:
            return None
        if self._flags is None:
            return self._window if self._rule.is_sliding(block) else None
        if block < len(self._flags):
            return self._window if self._flags[block] else None
        self._keys.warn(
            f"attention.sliding_window_pattern has {len(self._flags)} entries, fewer than the "
            "blocks; the rest are taken to see all positions"
        )
        return None


def _rule(architecture: str, keys: Keys, n_block: int, has_flags: bool) -> WindowRule:
    rule = WINDOW_RULES.get(architecture, _BY_PATTERN)
    if architecture == "exaone4" and n_block != EXAONE4_SLIDING_BLOCKS and not has_flags:
        return _BY_PATTERN
    every = None if has_flags else keys.count("attention.sliding_window_pattern")
    if every is None:
        return rule
    return WindowRule(every, rule.full_first, rule.window, rule.is_fixed)


def _window(architecture: str, keys: Keys, rule: WindowRule) -> int | None:
    # A known decoder that is not in the table ignores the keys: Phi-3, Mistral 7B v0.1.
    if architecture in KNOWN and architecture not in WINDOW_RULES:
        return None
    written = keys.count("attention.sliding_window")
    if written == 0:
        return None
    if rule.is_fixed or written is None:
        return rule.window if rule.every is not None else None
    return written
