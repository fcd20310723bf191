"""Typical memory of CPU families that the registry does not list one by one.

Channels and speeds are those the vendors allow for the family (general knowledge of the data
sheets); a build may have fewer channels or slower modules, so all of it is low confidence.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Platform:
    """A family's channels, transfers a second and FP32 operations a cycle and core.

    `thread_bytes_per_s` is what one thread can read, for virtual machines.
    """

    channels: int
    transfers_per_s: float
    flops_per_cycle: int
    description: str
    thread_bytes_per_s: float = 25e9

    @property
    def bytes_per_s(self) -> float:
        """Return channels x 8 bytes x transfers a second."""
        return self.channels * 8 * self.transfers_per_s

    @property
    def memory_type(self) -> str:
        """Return the generation of memory, `DDR4`."""
        kind = re.search(r"(?:LP)?DDR\d", self.description)
        return kind[0] if kind else ""


# (CPUID family, first and last model): server chips, whose virtual machines hide the name.
_BY_FAMILY = (
    (23, 0x00, 0x0F, Platform(8, 2666e6, 16, "EPYC 7001 with DDR4-2666")),
    (23, 0x30, 0x3F, Platform(8, 3200e6, 32, "EPYC 7002 with DDR4-3200")),
    (25, 0x00, 0x0F, Platform(8, 3200e6, 32, "EPYC 7003 with DDR4-3200")),
    (25, 0x10, 0x1F, Platform(12, 4800e6, 32, "EPYC 9004 with DDR5-4800", 35e9)),
    (25, 0xA0, 0xAF, Platform(12, 4800e6, 32, "EPYC 97x4 with DDR5-4800", 35e9)),
    (26, 0x00, 0x1F, Platform(12, 6000e6, 64, "EPYC 9005 with DDR5-6000", 35e9)),
    (6, 63, 63, Platform(4, 2133e6, 32, "Xeon E5 v3 with DDR4-2133")),
    (6, 79, 79, Platform(4, 2400e6, 32, "Xeon E5 v4 with DDR4-2400")),
    (6, 85, 85, Platform(6, 2666e6, 64, "Xeon Scalable with DDR4-2666")),
    (6, 106, 106, Platform(8, 3200e6, 64, "Xeon Scalable (3rd) with DDR4-3200")),
    (6, 143, 143, Platform(8, 4800e6, 64, "Xeon Scalable (4th) with DDR5-4800")),
    (6, 207, 207, Platform(8, 5600e6, 64, "Xeon Scalable (5th) with DDR5-5600")),
    (6, 173, 173, Platform(8, 6400e6, 64, "Xeon 6 with DDR5-6400")),
)
_SERVERS = re.compile(r"epyc|xeon|virtual|kvm|qemu", re.IGNORECASE)

_BY_NAME = (
    (r"Threadripper.* 7\d{3}", Platform(4, 5200e6, 32, "Threadripper with DDR5-5200")),
    (r"Threadripper", Platform(4, 3200e6, 32, "Threadripper with DDR4-3200")),
    (r"Ryzen.* AI |Ryzen.* [789]\d{3}", Platform(2, 5200e6, 32, "Ryzen with DDR5-5200")),
    (r"Ryzen", Platform(2, 3200e6, 32, "Ryzen with DDR4-3200")),
    (r"Core.* Ultra", Platform(2, 5600e6, 32, "Core Ultra with DDR5-5600")),
    (r"\bi[3579]-1[234]\d{3}", Platform(2, 4800e6, 32, "Core with DDR5-4800")),
    (r"\bi[3579]-(?:[6-9]\d{3}|1[01]\d{2})", Platform(2, 2666e6, 32, "Core with DDR4-2666")),
    (r"\bi[3579]-\d{3,4}", Platform(2, 1600e6, 16, "Core with DDR3-1600")),
    (r"\bN\d{2,3}\b", Platform(1, 4800e6, 16, "one channel of DDR5-4800")),
    (r"EPYC|Xeon", Platform(6, 2666e6, 32, "a server with six channels of DDR4-2666")),
    (r"Neoverse|Graviton|Ampere", Platform(8, 3200e6, 16, "an Arm server with DDR4-3200")),
    (r"Snapdragon|Oryon", Platform(2, 8448e6, 32, "Snapdragon X with LPDDR5X-8448")),
    (r"Cortex-X925", Platform(4, 8533e6, 32, "a GB10 with LPDDR5X-8533")),
    (r"Cortex-A(?:5|7[0-3])", Platform(1, 1600e6, 8, "an Arm board with LPDDR4")),
)
_ANY = Platform(2, 2666e6, 32, "two channels of DDR4-2666")


def platform_of(name: str, family: int | None, model: int | None) -> Platform:
    """Return what is typical for a CPU, by CPUID for servers and by name for the rest."""
    if _SERVERS.search(name) and family is not None and model is not None:
        for known_family, first, last, platform in _BY_FAMILY:
            if family == known_family and first <= model <= last:
                return platform
    for pattern, platform in _BY_NAME:
        if re.search(pattern, name, re.IGNORECASE):
            return platform
    return _ANY
