"""Numbers from a model's metadata, believed only when they can be true.

A header comes from anyone: a key can be missing, of the wrong type, negative, absurd or too
short. Every reader here answers None then, and keeps a sentence for the user.
"""

from collections.abc import Mapping

from tokcast.predictor.header import SkippedArray, Value
from tokcast.predictor.text import printable

# No real length, head, expert or vocabulary count comes near it; a product of two is harmless.
LARGEST = 2**31 - 1


def shown(value: object) -> str:
    """Return a value as it can be printed: escaped and short."""
    return printable(repr(value), 40)


class Keys:
    """Metadata of one architecture, with the complaints met while reading it."""

    def __init__(self, metadata: Mapping[str, Value], prefix: str) -> None:
        self._metadata = metadata
        self._prefix = prefix
        self._shown = printable(prefix, 40)
        self._warnings: dict[str, None] = {}

    @property
    def warnings(self) -> tuple[str, ...]:
        """Return the complaints in the order met, each once."""
        return tuple(self._warnings)

    def warn(self, sentence: str) -> None:
        """Keep a sentence for the user."""
        self._warnings[sentence] = None

    def raw(self, name: str) -> Value | None:
        """Return the value of a key below the architecture's prefix."""
        return self._metadata.get(f"{self._prefix}.{name}")

    def count(self, name: str) -> int | None:
        """Return a whole number >= 0, or None (with a warning unless the key is absent)."""
        value = self.raw(name)
        if value is None or (isinstance(value, tuple) and value):
            return None
        return self._checked(name, value)

    def at(self, name: str, block: int) -> int | None:
        """Return a block's number from a key that is one number or an array of one a block."""
        value = self.raw(name)
        if isinstance(value, tuple):
            if block >= len(value):
                self.warn(
                    f"{self._shown}.{name} has {len(value)} entries, fewer than the blocks; "
                    "the rest is taken from the tensors' shapes"
                )
                return None
            value = value[block]
        return None if value is None else self._checked(name, value)

    def flags(self, name: str) -> tuple[bool, ...] | None:
        """Return an array of booleans or 0/1 numbers; None for anything else."""
        value = self.raw(name)
        if not isinstance(value, tuple) or not all(isinstance(v, int) for v in value):
            return None
        return tuple(bool(v) for v in value)

    def _checked(self, name: str, value: object) -> int | None:
        number = value if isinstance(value, int) and not isinstance(value, bool) else None
        if number is not None and 0 <= number <= LARGEST:
            return number
        self.warn(
            f"{self._shown}.{name} is {shown(value)}, expected a whole number "
            f"from 0 to {LARGEST}; ignored"
        )
        return None


def length(value: Value | None) -> int | None:
    """Return how many entries an array has, kept or skipped."""
    if isinstance(value, SkippedArray):
        return value.length if 0 <= value.length <= LARGEST else None
    return len(value) if isinstance(value, tuple) else None
