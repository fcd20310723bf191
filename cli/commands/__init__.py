"""The commands, one module a group; each reads its own work only when it runs.

Making the parameters of all commands takes as long as a prediction does, so that a command
line gets those of the command that it names. One that names none gets all: the help, and
what to say of a word that is no command.
"""

# The first words that each module answers to, in the order of the help. A word may be in
# several: one makes the group, the others add to it.
WORDS: dict[str, tuple[str, ...]] = {
    "predict": ("predict",),
    "select": ("select",),
    "inspect": ("inspect",),
    "plan": ("plan",),
    "measure": ("calibrate", "measure"),
    "batching": ("measure", "attribute"),
    "fitting": ("fit", "evaluate"),
    "energy": ("energy",),
    "training": ("energy",),
    "scaling": ("scaling",),
    "hosts": ("hosts",),
    "precision": ("recommend", "adapt", "precision"),
    "triage": ("triage",),
    "roofline": ("roofline",),
    "plot": ("plot",),
    "pages": ("doctor", "serve", "verify"),
}


def modules_of(word: str | None) -> tuple[str, ...]:
    """Return the modules that answer to a command line's first word; all for another."""
    found = tuple(name for name, words in WORDS.items() if word in words)
    return found or tuple(WORDS)
