"""The machines behind LocalScore's figures: what its own table says and ours does not.

Operating system and processor of each submission, from d893a/localscore-insights (results.tsv,
commit a4f81747b3), joined to our rows by date, chip and model.
"""

import csv
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tokcast.measurements.schema import Measurement

PATH = Path(__file__).parent / "data" / "localscore_machines.csv"
_STALLING = re.compile(
    r"znver4|znver5|sapphirerapids|Ryzen AI|9[0-9]00X|9800X3D|9950X", re.IGNORECASE
)
_NOT_STALLING = re.compile(r"znver2|znver3")


@dataclass(frozen=True, slots=True)
class Machine:
    """A submission's operating system and processor, blank where unknown."""

    system: str
    processor: str

    @property
    def stalls(self) -> bool:
        """Return whether llamafile's decode on an NVIDIA card waits for this processor.

        On Zen 4, Zen 5 and Sapphire Rapids hosts it generates 2 to 10 times slower than the same
        card elsewhere: an RTX 4090 with Llama 3.2 1B at 32 tok/s against 250.
        """
        found = _STALLING.search(self.processor)
        return found is not None and _NOT_STALLING.search(self.processor) is None


@cache
def _machines() -> dict[tuple[str, str, str], Machine]:
    with PATH.open(newline="", encoding="utf-8") as text:
        return {
            (r["date"], r["chip"], r["model"]): Machine(r["system_os"], r["system_cpu"])
            for r in csv.DictReader(text)
        }


def machine_of(m: Measurement) -> Machine | None:
    """Return the machine of a LocalScore row, None for other rows."""
    return _machines().get((m.date, m.chip, m.model)) if m.is_suite else None
