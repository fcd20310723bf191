"""Text from files nobody vouches for, made fit for a terminal and for one line."""

from collections.abc import Iterable


def printable(text: str, limit: int = 80) -> str:
    r"""Return `text` with control characters, line ends and the like escaped as Python writes them.

    What would be longer than `limit` characters before escaping ends in an ellipsis.
    """
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    if cut.isprintable():
        return cut
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in cut)


def listing(names: Iterable[str], limit: int = 4) -> str:
    """Return the first `limit` names, printable, and how many more there are."""
    known = list(names)
    shown = ", ".join(printable(name) for name in known[:limit])
    return shown if len(known) <= limit else f"{shown} and {len(known) - limit} more"
