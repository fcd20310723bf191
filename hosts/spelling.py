"""What a name of a chip says, taken apart: words, memory size, number of devices."""

import re
from dataclasses import dataclass

from tokcast.predictor.errors import InputError

MAX_DEVICES = 64

# `m4` (Apple) and `sxm4` (NVIDIA) stay whole: their digit says nothing by itself.
_WORD = re.compile(r"sxm\d|m\d(?!\d)|[a-z]+|\d+")
_COUNT = re.compile(r"^\s*(\d{1,3})\s*[x×*]\s*(?=\S)|\s[(]?[x×](\d{1,3})[)]?\s*$")
_MEMORY = re.compile(r"(?<![a-z\d.])(\d{1,3}(?:\.\d+)?)\s*g(?:i?[bo])?(?![a-z\d])")
_MEMORY_TYPE = re.compile(r"\b(lpddr|gddr|ddr|hbm)\s*(\d)\s*([ex]?)\b")
# What a CPU's own name string carries besides its name, and counts of CPU cores.
_CLUTTER = re.compile(
    r"\((?:r|tm|c)\)|[®™]|@.*$|\bw/.*$|\bwith radeon.*$|\b\d+(?:st|nd|rd|th) gen(?:eration)?\b"
    # The processor's memory beside the GPU's own, as the driver names a GH200.
    r"|(?<=gh200) 480gb\b"
    # A Threadripper says `7985WX 64-Cores`.
    r"|(?<=\dx )\d+-cores\b|(?<=\dwx )\d+-cores\b"
    r"|\b(?:\d+|dual|quad|six|eight)-core (?:processor|cpu)\b|\bcpu cores\b"
)
# The computer around an Apple chip, with its size and year: MacBook Pro 14-inch (2024).
_MACINTOSH = re.compile(
    r"\b(?:mac ?book(?: (?:air|pro))?|imac(?: pro)?|mac(?: (?:mini|studio|pro))?)\b"
    r"(?: ?1[3-6]\b)?"
)
_SIZE_OR_YEAR = re.compile(r"\b(?:1[3-6]|24)(?:[ -]?inch|[\"″”])|\b20[12]\d\b")
_NOISE = frozenset(
    {"gpu", "gpus", "igpu", "apu", "soc", "card", "graphics", "processor", "core", "cores"}
    | {
        "unified",
        "with",
        "design",
        "the",
        "desktop",
        "edition",
        "generation",
        "gen",
        "vram",
        "ram",
        "memory",
    }
)
_SYNONYMS = {"mobile": "laptop", "notebook": "laptop", "rpi": "pi"}


@dataclass(frozen=True, slots=True)
class Spelling:
    """The parts of a typed name; `memory_gb` and `memory_type` only where the text has them."""

    words: frozenset[str]
    n_devices: int = 1
    memory_gb: float | None = None
    memory_type: str = ""


def read(text: str) -> Spelling:
    """Return the parts of a name as someone typed it, or as a driver reports it.

    Raises InputError where the number of devices is not between 1 and 64, or the memory is none.
    """
    rest = _without_computer(_CLUTTER.sub(" ", text.casefold()))
    count = _COUNT.search(rest)
    n_devices = int(count[1] or count[2]) if count else 1
    if not 1 <= n_devices <= MAX_DEVICES:
        raise InputError(
            f"host {text!r}: {n_devices} devices, expected 1 to {MAX_DEVICES}, as in '2x RTX 3090'"
        )
    rest = _COUNT.sub(" ", rest)
    memory = _MEMORY.search(rest)
    if memory and not float(memory[1]):
        raise InputError(
            f"host {text!r}: no memory, expected a size above 0, as in 'RTX 3060 12GB'"
        )
    rest = _MEMORY.sub(" ", rest)
    memory_type = _MEMORY_TYPE.search(rest)
    return Spelling(
        words=words(_MEMORY_TYPE.sub(" ", rest)),
        n_devices=n_devices,
        memory_gb=float(memory[1]) if memory else None,
        memory_type="".join(memory_type.groups()) if memory_type else "",
    )


def _without_computer(text: str) -> str:
    """Return `m3 max` of `macbook pro 14-inch m3 max (2023)`: the box does not set the speed."""
    rest = _MACINTOSH.sub(" ", _SIZE_OR_YEAR.sub(" ", text))
    return rest if _MACINTOSH.search(text) else text


def words(text: str) -> frozenset[str]:
    """Return a name's words: runs of letters and runs of digits, in any order, without noise."""
    found = (_SYNONYMS.get(word, word) for word in _WORD.findall(text.casefold()))
    return frozenset(word for word in found if word not in _NOISE)
