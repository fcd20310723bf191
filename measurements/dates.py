"""When a measurement was made, from what its row says: its date, its build, or its source.

Speed moved a lot between 2023 and 2026, so that a row without a date is placed by the build
number it prints or by the thread it was published in. The tables hold (number, decimal year) of
dated rows and releases, read off the packaged measurements and llama.cpp's tags; between them
time is interpolated.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence

from tokcast.measurements.schema import Measurement

Table = Sequence[tuple[int, float]]

_BUILDS: Table = (
    (1000, 2023.61),
    (1300, 2023.75),
    (1750, 2024.0),
    (2300, 2024.17),
    (2800, 2024.35),
    (3300, 2024.5),
    (3900, 2024.76),
    (4384, 2024.97),
    (4900, 2025.2),
    (5400, 2025.37),
    (5863, 2025.53),
    (6413, 2025.71),
    (7095, 2025.87),
    (7423, 2025.96),
    (8000, 2026.12),
    (8460, 2026.22),
    (9193, 2026.40),
    (10000, 2026.6),
    (10273, 2026.68),
)
_LLAMA_THREADS: Table = (
    (3000, 2023.67),
    (4000, 2023.82),
    (4766, 2024.01),
    (7000, 2024.33),
    (8800, 2024.6),
    (10000, 2024.8),
    (11583, 2025.1),
    (13000, 2025.3),
    (15525, 2025.64),
    (17505, 2025.9),
    (19000, 2026.1),
    (21000, 2026.25),
    (25000, 2026.5),
    (28102, 2026.7),
)
_IK_THREADS: Table = (
    (1, 2024.55),
    (27, 2024.62),
    (164, 2024.85),
    (235, 2025.15),
    (344, 2025.3),
    (410, 2025.36),
    (525, 2025.46),
    (600, 2025.55),
    (900, 2025.85),
    (1500, 2026.3),
)
# Collections whose rows were made within weeks of each other.
_COLLECTIONS = (
    ("LLaMA 3/", 2024.37),
    ("XiongjieDai", 2023.9),
    ("kyuz0", 2025.96),
    ("benches/", 2025.8),
)


def interpolated(table: Table, number: int) -> float:
    """Return the year at a number, held at the table's ends."""
    numbers = [n for n, _ in table]
    i = bisect_left(numbers, number)
    if i == 0:
        return table[0][1]
    if i == len(table):
        return table[-1][1]
    (a, start), (b, end) = table[i - 1], table[i]
    return start + (end - start) * (number - a) / (b - a)


def _stated(date: str) -> float | None:
    match = re.match(r"(20[2-9]\d)-(\d\d)", date)
    if match is None or not 1 <= int(match[2]) <= 12:
        return None
    return int(match[1]) + (int(match[2]) - 0.5) / 12


def _by_build(m: Measurement) -> float | None:
    if m.runtime == "ik_llama.cpp":
        return None
    match = re.search(r"\((\d{4,5})\)|^b(\d{4,5})$", m.build)
    return interpolated(_BUILDS, int(match[1] or match[2])) if match else None


def _by_source(source: str) -> float | None:
    for mark, year in _COLLECTIONS:
        if mark in source:
            return year
    for pattern, table in (
        (r"ggml-org/llama\.cpp/(?:pull|issues|discussions)/(\d+)", _LLAMA_THREADS),
        (r"ik_llama\.cpp\S*(?:pull|pull_requests|issues|discussions)/(\d+)", _IK_THREADS),
    ):
        match = re.search(pattern, source)
        if match:
            return interpolated(table, int(match[1]))
    return None


def year_of(m: Measurement) -> float | None:
    """Return the decimal year of a measurement, None when nothing tells."""
    return _stated(m.date) or _by_build(m) or _by_source(m.source)
