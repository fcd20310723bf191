"""Progress on stderr, on a terminal only."""

import sys
from types import TracebackType

from tokcast.cli.render import cut, plain, width


class Progress:
    """One line that is overwritten, and wiped at the end; silent when stderr is no terminal."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()

    def __call__(self, text: str) -> None:
        """Show the text in place of what was shown."""
        if self._shown:
            # A line that wraps could not be overwritten.
            shown = cut(plain(text), width() - 1)
            print(f"\r\x1b[K{shown}", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self("")


def say(text: str) -> None:
    """Print a line that a user should see whatever happens to stdout."""
    print(f"tokcast: {text}", file=sys.stderr, flush=True)


def clock_text(seconds: float) -> str:
    """Return a duration as people say it: 45 s, 3 min, 1 h 20 min."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def bar(done: int, total: int, width: int = 20) -> str:
    """Return a bar of how much is done."""
    filled = width * done // max(total, 1)
    return "[" + "#" * filled + "." * (width - filled) + f"] {done}/{total}"
