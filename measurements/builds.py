"""Which build of llama.cpp ran rows whose table leaves it out.

lhl/strix-halo-testing (commit 5ee14b5b0e, `llm-bench/*/results.jsonl`) states beside each result
the build that ran it and whether hipBLASLt was on: four builds for ROCm, up to 4 times apart in
prefill, that our rows hold as one backend. Joined by folder and time: between `first` and `last`
one build ran.
"""

import csv
from bisect import bisect_right
from functools import cache
from pathlib import Path

PATH = Path(__file__).parent / "data" / "strix_halo_builds.csv"
_REPOSITORY = "lhl/strix-halo-testing@"


@cache
def _blocks() -> dict[str, list[tuple[str, str, str]]]:
    """Return (first, last, build) by folder, in the order of time."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    with PATH.open(newline="", encoding="utf-8") as text:
        for r in csv.DictReader(text):
            found.setdefault(r["folder"], []).append((r["first"], r["last"], r["build"]))
    return found


def build_of(source: str, date: str) -> str | None:
    """Return the build that ran a row of a source at a time as ISO text, None where unknown."""
    if not source.startswith(_REPOSITORY):
        return None
    folder = source.split("/")[-2]
    blocks = _blocks().get(folder, [])
    place = bisect_right([first for first, _, _ in blocks], date) - 1
    if place < 0 or date > blocks[place][1]:
        return None
    return blocks[place][2]


def installation_of(source: str, date: str) -> str:
    """Return a name for what ran a row: its repository, the build where known, and the month.

    What is installed changes with time: rocWMMA's kernels got 4 times faster between two months.
    """
    build = build_of(source, date)
    repository = source.split("@")[0].split("#")[0]
    return f"{repository} {build} {date[:7]}" if build else repository
