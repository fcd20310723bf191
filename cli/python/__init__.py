"""tokcast: how fast a language model will run on a machine, how sure that is, and why.

`predict` asks about models by name, `select` chooses among many, `frame` makes a pandas table
of what they return. They take what the commands of the same names take and have their defaults.
Nothing is imported until one of them is used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokcast.cli.api import frame, predict, select
    from tokcast.cli.predict_answer import Answer
    from tokcast.cli.select import Selection
    from tokcast.predictor.errors import InputError

__all__ = ["Answer", "InputError", "Selection", "frame", "predict", "select"]

_HOMES = {
    "Answer": "tokcast.cli.predict_answer",
    "InputError": "tokcast.predictor.errors",
    "Selection": "tokcast.cli.select",
    "frame": "tokcast.cli.api",
    "predict": "tokcast.cli.api",
    "select": "tokcast.cli.api",
}


def __getattr__(name: str) -> Any:
    """Return what `__all__` names, imported when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tokcast' has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted(__all__)
