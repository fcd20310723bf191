"""Predictors that others use, on the same rows, so that an error has something beside it."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from tokcast.fits.observations import Observation

Floats = npt.NDArray[np.float64]
Baseline = Callable[[Sequence[Observation], Sequence[Observation]], Floats]

# llmfit's constant for machines it was not calibrated on.
LLMFIT_EFFICIENCY = 0.55


def _roof_seconds(o: Observation, total: bool) -> float:
    """Return seconds a token at the nameplate: all weights read, or the active ledger."""
    if o.phase == "decode":
        n_bytes = o.spec.n_bytes if total else sum(w.bytes for w in o.works[0])
        return n_bytes / o.host.bytes_per_s
    params = o.spec.n_params if total else o.spec.active_params
    peak = o.host.matrix_fp16_flops_per_s or o.host.fp16_flops_per_s or o.host.fp32_flops_per_s
    return 2.0 * params / (peak or 1e12)


def total_roofline(_: Sequence[Observation], test: Sequence[Observation]) -> Floats:
    """Return tokens/s from total parameters at the nameplate, nothing fitted."""
    return np.array([1 / _roof_seconds(o, total=True) for o in test])


def fixed_efficiency(_: Sequence[Observation], test: Sequence[Observation]) -> Floats:
    """Return 0.55 x bandwidth / file size (decode) or the same share of the peak (prefill)."""
    return LLMFIT_EFFICIENCY * total_roofline([], test)


def backend_median(train: Sequence[Observation], test: Sequence[Observation]) -> Floats:
    """Return the active-bytes roofline times the backend's median efficiency in `train`."""
    seen: dict[str, list[float]] = defaultdict(list)
    for o in train:
        seen[o.run.backend].append(o.tok_per_s * _roof_seconds(o, total=False))
    everything = [e for values in seen.values() for e in values]
    factor = {b: float(np.median(values)) for b, values in seen.items()}
    default = float(np.median(everything))
    return np.array(
        [factor.get(o.run.backend, default) / _roof_seconds(o, total=False) for o in test]
    )


def quant_factors(train: Sequence[Observation], test: Sequence[Observation]) -> Floats:
    """Return the active-parameter roofline times the file type's median efficiency in `train`.

    The scale factors of the paper's active decode model and, for prefill, of its P2 baseline.
    """
    seen: dict[str, list[float]] = defaultdict(list)
    for o in train:
        seen[o.file_type].append(o.tok_per_s * _roof_seconds(o, total=False))
    default = float(np.median([e for values in seen.values() for e in values]))
    factor = {t: float(np.median(values)) for t, values in seen.items()}
    return np.array(
        [factor.get(o.file_type, default) / _roof_seconds(o, total=False) for o in test]
    )


def host_line(train: Sequence[Observation], test: Sequence[Observation]) -> Floats:
    """Return 1 / (a + bytes / b) with a and b of the host's own other rows, else NaN.

    A bytes-only line per host: it needs at least three rows of the host in `train`.
    """
    by_host: dict[tuple[str, str], list[Observation]] = defaultdict(list)
    for o in train:
        by_host[o.host.name, o.run.backend].append(o)
    lines: dict[tuple[str, str], Floats] = {}
    for key, rows in by_host.items():
        x = np.array([_roof_seconds(o, total=False) for o in rows])
        if np.unique(x).size < 3:
            continue
        y = np.array([1 / o.tok_per_s for o in rows])
        # Relative least squares: every row counts by its percentage error.
        design = np.column_stack([np.ones_like(x), x]) / y[:, None]
        lines[key] = np.linalg.lstsq(design, np.ones_like(y), rcond=None)[0]

    def rate(o: Observation) -> float:
        line = lines.get((o.host.name, o.run.backend))
        if line is None:
            return float("nan")
        seconds = float(line[0] + line[1] * _roof_seconds(o, total=False))
        return 1 / seconds if seconds > 0 else float("nan")

    return np.array([rate(o) for o in test])


BASELINES: Mapping[str, Baseline] = {
    "total parameters, nameplate": total_roofline,
    "0.55 x bandwidth / size": fixed_efficiency,
    "active, median of the backend": backend_median,
    "active, factor per type": quant_factors,
    "bytes-only line of the host": host_line,
}
