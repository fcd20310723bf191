"""Short names of models, for tables and titles."""

import re

from tokcast.cli.render import cut

LONGEST = 40
_SIZE = re.compile(r"\b\d+(?:\.\d+)?[BMT](?:-A\d+(?:\.\d+)?B)?\b")


def short_name(name: str) -> str:
    """Return a model's name without asides, and only the first of several it goes by.

    "DeepSeek-V3 / R1 / V3.1 671B" becomes "DeepSeek-V3 671B": the size that ends such a list
    belongs to all of them.
    """
    plain = re.split(r" \(|, ", name, maxsplit=1)[0]
    first, *others = plain.split(" / ")
    if others and not _SIZE.search(first):
        sizes = _SIZE.findall(others[-1])
        first = " ".join([first, *sizes[-1:]])
    return cut(first, LONGEST)
