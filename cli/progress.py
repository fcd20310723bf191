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
