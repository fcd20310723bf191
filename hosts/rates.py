"""A host's peaks by arithmetic, the 8- and 4-bit floats' included, as data sheets have them."""

from tokcast.hosts.registry import facts, names
from tokcast.predictor.host import Host
from tokcast.predictor.precision.rates import Rates

# Dense rates with sums in FP32 where both are published, as products of weights are summed.
_FIELDS = (
    ("fp16", ("matrix_fp32acc_flops_per_s", "matrix_fp16_flops_per_s", "fp16_flops_per_s")),
    ("fp32", ("fp32_flops_per_s",)),
    ("int8", ("int8_ops_per_s",)),
)
_COLUMNS = (("fp8", "fp8_tflops_dense"), ("fp4", "fp4_tflops_dense"))


def rates_of(host: Host) -> Rates:
    """Return the peaks of one device; raises InputError where no rate of arithmetic is known."""
    found: dict[str, float] = {}
    for arithmetic, fields in _FIELDS:
        value = next((v for f in fields if (v := getattr(host, f)) is not None), None)
        if value:
            found[arithmetic] = value
    row = facts(host.name) if host.name in names() else {}
    found |= {a: float(row[c]) * 1e12 for a, c in _COLUMNS if row.get(c)}
    return Rates(host.name, host.bytes_per_s, found)


def capability_of(host: Host) -> str:
    """Return an NVIDIA chip's compute capability such as 9.0, "" for other chips."""
    known = host.vendor == "NVIDIA" and host.name in names()
    return facts(host.name)["compute_capability_or_gfx"] if known else ""
