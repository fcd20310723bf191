"""What two cards of a machine send each other: NVLink where a part has it, else PCIe."""

import re

from tokcast.hosts.registry import facts
from tokcast.predictor.errors import InputError

# Bytes/s in one direction, all links of a card together; half of what NVIDIA's data sheets print
# as NVLink bandwidth (V100 300, A100 600, H100 and H200 900, B200 1,800 GB/s).
_NVLINK = (
    ("V100 SXM2", 150e9),
    ("A100 SXM4", 300e9),
    ("H100 SXM5", 450e9),
    ("H200 SXM", 450e9),
    ("B200 SXM", 900e9),
)
_PCIE = re.compile(r"\(([\d.]+) GB/s per direction\)")


def link_bytes_per_s(name: str) -> float:
    """Return the bytes/s between two cards of a chip of the registry, in one direction.

    Raises InputError where neither NVLink nor PCIe is known of it.
    """
    for part, rate in _NVLINK:
        if part in name:
            return rate
    found = _PCIE.search(facts(name)["pcie_gen_lanes_gb_s"])
    if found is None:
        raise InputError(f"{name}: no link between cards is known; expected --link GB/s")
    return float(found[1]) * 1e9
