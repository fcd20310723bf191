"""What of a chip explains how near its peaks a runtime comes: logs of published facts.

Nothing here is fitted. A fact nobody published takes the value of a middling chip, so that
it says nothing for or against.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from tokcast.predictor.host import Host

# Multiples of the FP32 rate at which each instruction set multiplies 8-bit integers, from the
# width of its dot-product instructions (none, AVX2 pairs, VNNI or SDOT, AMX or Arm's I8MM).
_INT8: Mapping[str, float] = {
    "a72": 0.7,
    "sse": 1.0,
    "avx": 1.0,
    "avx2": 2.0,
    "avx512": 2.0,
    "vnni": 4.0,
    "zen4": 4.0,
    "zen5": 4.0,
    "amx": 8.0,
    "apple": 4.0,
    "neon": 4.0,
    "i8mm": 8.0,
    "scalar": 1.0,
}
# First pattern that an x86 or Arm core's architecture contains, lower case.
_CORES: tuple[tuple[str, str], ...] = (
    ("k10|penryn|yorkfield|westmere|lujiazui", "sse"),
    ("sandybridge|ivybridge|piledriver", "avx"),
    ("zen 5", "zen5"),
    ("zen 4", "zen4"),
    ("zen 3", "zen3"),
    ("zen 2", "zen2"),
    ("zen", "zen1"),
    ("sapphire|granite", "amx"),
    ("haswell|broadwell", "haswell"),
    ("avx512|skylake-(w|sp)|cascade", "skylake-avx512"),
    ("skylake", "skylake"),
    ("icelake|rocket|tiger", "icelake"),
    (r"a72\b", "a72"),
    ("x925|x4|x3|a720|neoverse-v|ampereone|oryon", "i8mm"),
    ("p550", "scalar"),
    ("a7|neoverse", "neon"),
)
_SET_OF: Mapping[str, str] = {
    "zen3": "avx2",
    "zen2": "avx2",
    "zen1": "avx2",
    "haswell": "avx2",
    "skylake": "avx2",
    "skylake-avx512": "avx512",
    "icelake": "vnni",
    "alder": "vnni",
}


# Professional GDDR cards ship with error correction on, which stores its bits in the same memory.
_INLINE_ECC = r"NVIDIA (L4|L40S?|A10G?|A40|A16|A2|Tesla T4|Tesla P40?)$"
_MOBILE_CPU = r"\d(U|H|HX|HS|HK|G\d|P|Y|T)$|Ultra \d \d{3}[UHV]|Ryzen AI|Steam Deck"


@dataclass(frozen=True, slots=True)
class Traits:
    """Covariates of a chip.

    `family` is finer than the marketing architecture where the silicon differs; `generation` is
    told apart only where decode does (cards without matrix units, the P100).
    Rates and bandwidth are in SI units; the `log_` ratios are natural logs relative to
    `fp32_flops_per_s`. `log_tdp` is log watts, `ram_gib` a processor's main memory where stated.
    """

    family: str
    generation: str
    vendor: str
    is_cpu: bool
    is_laptop: bool
    is_hbm: bool
    is_inline_ecc: bool
    is_apu: bool
    is_mobile_cpu: bool
    is_server_cpu: bool
    has_lpddr_option: bool
    bytes_per_s: float
    fp32_flops_per_s: float
    log_matrix: float
    log_matrix_fp16: float
    log_int8: float
    log_tdp: float | None
    log_cache_mib: float
    n_cores: float
    clock_hz: float
    year: float | None
    memory_generation: str
    ram_gib: float | None


def cpu_family(host: Host) -> str:
    """Return a processor's core family, as far as its name tells."""
    if host.vendor == "Apple":
        return "apple"
    name = host.architecture.lower()
    for pattern, family in _CORES:
        if re.search(pattern, name):
            return family
    return "alder" if host.vendor == "Intel" else "neon"


def gpu_family(host: Host) -> str:
    """Return a GPU's generation, told apart where the same name covers different silicon."""
    name, architecture = host.name, host.architecture
    if host.vendor != "NVIDIA":
        return architecture
    if architecture == "Ampere" and re.search("A100|A800|A30\\b", name):
        return "Ampere GA100"
    if architecture == "Pascal" and "P100" in name:
        return "Pascal GP100"
    if architecture == "Turing" and not host.matrix_fp16_flops_per_s:
        return "Turing without matrix units"
    return "Blackwell GB10" if "GB10" in name else architecture


def gpu_generation(host: Host) -> str:
    """Return a GPU's architecture, set apart where decode speed is another."""
    family = gpu_family(host)
    return (
        family if family in ("Pascal GP100", "Turing without matrix units") else host.architecture
    )


# Operations per byte of bandwidth of a middling chip, for a host given by its bandwidth alone.
TYPICAL_FLOPS_PER_BYTE = 40.0


# A multiplication and an addition of four lanes each: SSE's, what every 64-bit processor has.
LEAST_FLOPS_A_CYCLE = 8.0


def _fp32(host: Host) -> float:
    rate = host.fp32_flops_per_s or _unstated_fp32(host)
    dual_issue = host.kind != "cpu" and host.vendor == "AMD" and "RDNA" in host.architecture
    if dual_issue and re.search("RDNA[34]", host.architecture):
        # Published figures count two operations a lane and clock that compilers rarely pair.
        return rate / 2
    return rate


def _unstated_fp32(host: Host) -> float:
    if host.kind == "cpu" and host.n_cores and host.clock_hz:
        return LEAST_FLOPS_A_CYCLE * host.n_cores * host.clock_hz
    return TYPICAL_FLOPS_PER_BYTE * host.bytes_per_s


def _ratio(rate: float | None, fp32: float, otherwise: float) -> float:
    return math.log((rate or otherwise) / fp32)


@cache
def traits_of(host: Host) -> Traits:
    """Return a chip's covariates."""
    is_cpu = host.kind == "cpu"
    fp32 = _fp32(host)
    fp16 = max(host.fp16_flops_per_s or fp32, 0.25 * fp32)
    vector = max(fp16, fp32)
    core = cpu_family(host) if is_cpu else ""
    int8 = _INT8[_SET_OF.get(core, core)] * fp32 if is_cpu else host.int8_ops_per_s
    cache_mib = (host.cache_bytes or 0) / 2**20
    memory = re.search(r"(LP)?DDR\d|HBM|GDDR\d", host.memory_type)
    return Traits(
        family=core if is_cpu else gpu_family(host),
        generation=core if is_cpu else gpu_generation(host),
        vendor=host.vendor,
        is_cpu=is_cpu,
        is_laptop=re.search("Laptop|Mobile|Max-Q|MX", host.name) is not None,
        is_hbm="HBM" in host.memory_type,
        is_inline_ecc=re.search(_INLINE_ECC, host.name) is not None,
        is_apu=host.kind == "apu",
        is_mobile_cpu=is_cpu and re.search(_MOBILE_CPU, host.name) is not None,
        is_server_cpu=is_cpu and re.search("Xeon|EPYC|Threadripper|Opteron", host.name) is not None,
        has_lpddr_option=is_cpu
        and re.search(r"LPDDR.*(?<!LP)DDR|(?<!LP)DDR.*LPDDR", host.memory_type) is not None,
        bytes_per_s=host.bytes_per_s,
        fp32_flops_per_s=fp32,
        log_matrix=_ratio(host.matrix_fp32acc_flops_per_s, fp32, vector),
        log_matrix_fp16=_ratio(host.matrix_fp16_flops_per_s, fp32, vector),
        log_int8=_ratio(int8, fp32, vector),
        log_tdp=math.log(host.tdp_w) if host.tdp_w else None,
        log_cache_mib=math.log(cache_mib) if cache_mib > 0 else 2.0,
        n_cores=float(host.n_cores or 4),
        clock_hz=host.clock_hz or 2e9,
        year=float(host.launch_year) if host.launch_year else None,
        memory_generation=memory[0] if memory else "?",
        ram_gib=host.memory_bytes / 2**30 if is_cpu and host.memory_bytes else None,
    )
