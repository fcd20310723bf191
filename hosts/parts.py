"""The parts of a machine's name, joined by `+`."""

import re

_JOINT = re.compile(r"\s+\+\s+")


def has_parts(text: str) -> bool:
    """Return whether a name joins several parts; the plus of `AI Max+ 395` joins nothing."""
    return _JOINT.search(text) is not None


def parts(text: str) -> list[str]:
    """Return the parts of a name, as typed."""
    return _JOINT.split(text.strip())
