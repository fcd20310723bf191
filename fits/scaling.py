"""Estimating the scaling laws: least squares in logs, errors robust to what clusters share.

Rows of one chip share its errors, so that standard errors are cluster-robust by chip (Cameron
and Miller, Journal of Human Resources 50, 2015), with t quantiles of one degree of freedom less
than there are clusters; where there is one chip only, by model. The bend is a continuous
piecewise-linear fit in the log of the memory roof's time, its knot chosen by least squares.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import statsmodels.api as sm

from tokcast.fits.energy_observations import EnergyObservation
from tokcast.fits.observations import Observation, spec_of
from tokcast.fits.splits import folds
from tokcast.predictor.power import meter_of
from tokcast.predictor.scaling import Bend, Exponent, Law, depth_covariate
from tokcast.predictor.spec import ModelSpec

Floats = npt.NDArray[np.float64]
# What a memory roof alone has as exponents.
ROOFLINE = {
    "tok/s": {"active parameters": -1.0, "bits a weight": -1.0, "bandwidth": 1.0},
    "J/token": {"active parameters": 1.0, "bits a weight": 1.0},
}
NAMES = ("active parameters", "bits a weight", "bandwidth", "depth")
MIN_ROWS, MIN_CLUSTERS = 40, 5
# Below so many chips nothing can be said of how a response follows the chip's bandwidth.
MIN_CHIPS = 5
N_FOLDS = 10
KNOTS = np.linspace(0.05, 0.95, 37)


@dataclass(frozen=True, slots=True)
class LawRows:
    """Rows of one law: log response and log covariates (n, n_names), chips, models, log roof s."""

    response: str
    group: str
    log_y: Floats
    log_x: Floats
    chips: tuple[str, ...]
    models: tuple[str, ...]
    log_roof_s: Floats


def _covariates(spec: ModelSpec, bytes_per_s: float, n_depth: float) -> tuple[float, ...]:
    bits = 8.0 * spec.n_bytes / spec.n_params
    return (spec.active_params, bits, bytes_per_s, depth_covariate(n_depth))


def _rows(
    response: str,
    group: str,
    found: Sequence[tuple[float, ModelSpec, float, float, str, str]],
) -> LawRows:
    x = np.array([_covariates(spec, bandwidth, depth) for _, spec, bandwidth, depth, _, _ in found])
    return LawRows(
        response=response,
        group=group,
        log_y=np.log([y for y, *_ in found]),
        log_x=np.log(x),
        chips=tuple(row[4] for row in found),
        models=tuple(row[5] for row in found),
        log_roof_s=np.log(x[:, 0] * x[:, 1] / 8.0 / x[:, 2]),
    )


def speed_rows(observations: Sequence[Observation], backend: str) -> LawRows:
    """Return the generation speeds of a backend; a mean over depths stands at their mean."""
    return _rows(
        "tok/s",
        backend,
        [
            (
                o.tok_per_s,
                o.spec,
                o.host.bytes_per_s,
                float(np.mean([w.n_depth for w in o.workloads])),
                o.host.name,
                o.model_id,
            )
            for o in observations
            if o.phase == "decode" and o.run.backend == backend
        ],
    )


def energy_rows_of(observations: Sequence[EnergyObservation], meter: str) -> LawRows:
    """Return the joules a generated token read by one kind of meter."""
    found = []
    for o in observations:
        spec = spec_of(o.model_id, o.file_type)
        if meter_of(o.host) != meter or o.phase == "prefill" or spec is None:
            continue
        depth = float(o.loads[-1][0].n_depth)
        found.append((o.joules_per_token, spec, o.host.bytes_per_s, depth, o.host.name, o.model_id))
    return _rows("J/token", meter, found)


def _clusters(rows: LawRows) -> tuple[str, tuple[str, ...]]:
    return ("chip", rows.chips) if len(set(rows.chips)) >= MIN_CLUSTERS else ("model", rows.models)


def _used(rows: LawRows) -> list[int]:
    """Return the covariates that vary enough to have an exponent."""
    enough = len(set(rows.chips)) >= MIN_CHIPS
    return [
        i
        for i, name in enumerate(NAMES)
        if np.ptp(rows.log_x[:, i]) > 0.1 and (name != "bandwidth" or enough)
    ]


def _fitted(y: Floats, x: Floats, groups: npt.NDArray[np.intp]) -> Any:
    return sm.OLS(y, sm.add_constant(x, has_constant="add")).fit(
        cov_type="cluster", cov_kwds={"groups": groups}, use_t=True
    )


def _left_out(
    rows: LawRows, clusters: Sequence[str], predicted: Callable[[Any, Any], Floats]
) -> Floats:
    """Return log residuals of clusters left out in folds; `predicted` maps (train, test) rows."""
    residual = np.full(rows.log_y.size, np.nan)
    for train, test in folds(clusters, min(N_FOLDS, len(set(clusters)))):
        residual[test] = rows.log_y[test] - predicted(train, test)
    return residual


def _mape(residual: Floats) -> float:
    return float(100 * np.mean(np.abs(np.expm1(-residual))))


def fit_law(rows: LawRows) -> Law | None:
    """Return the law of rows, None where there are too few to say anything."""
    cluster, names = _clusters(rows)
    if rows.log_y.size < MIN_ROWS or len(set(names)) < MIN_CLUSTERS:
        return None
    used = _used(rows)
    x = rows.log_x[:, used]
    _, groups = np.unique(names, return_inverse=True)
    result = _fitted(rows.log_y, x, groups)
    design = sm.add_constant(x, has_constant="add")
    inverse = np.linalg.inv(design.T @ design)

    def ours(train: Any, test: Any) -> Floats:
        beta = np.linalg.lstsq(design[train], rows.log_y[train], rcond=None)[0]
        return np.asarray(design[test] @ beta)

    residual = _left_out(rows, names, ours)
    is_speed = rows.response == "tok/s"
    low, high = np.quantile(residual, [0.1, 0.9])
    return Law(
        response=rows.response,
        group=rows.group,
        n=rows.log_y.size,
        n_clusters=len(set(names)),
        cluster=cluster,
        intercept=float(result.params[0]),
        exponents=_exponents(result, rows.response, [NAMES[i] for i in used]),
        hull={NAMES[i]: _ends(rows.log_x[:, i]) for i in used},
        inverse=[[float(v) for v in line] for line in inverse],
        most_leverage=float(np.einsum("ij,jk,ik->i", design, inverse, design).max()),
        error=(float(low), float(high)),
        held_out_mape=_mape(residual),
        baseline_mape=_mape(_left_out(rows, names, _roof(rows))) if is_speed else None,
        bend=_bend(rows, groups) if is_speed else None,
    )


def _ends(logs: Floats) -> tuple[float, float]:
    return float(np.exp(logs.min())), float(np.exp(logs.max()))


def _roof(rows: LawRows) -> Callable[[Any, Any], Floats]:
    """Return the baseline: the memory roof at the training rows' median efficiency."""

    def predicted(train: Any, test: Any) -> Floats:
        efficiency = np.median(rows.log_y[train] + rows.log_roof_s[train])
        return np.asarray(efficiency - rows.log_roof_s[test])

    return predicted


def _exponents(result: Any, response: str, names: Sequence[str]) -> dict[str, Exponent]:
    ends = np.asarray(result.conf_int(alpha=0.05))
    found = {}
    for i, name in enumerate(names, 1):
        roof = ROOFLINE[response].get(name)
        contrast = np.zeros(len(names) + 1)
        contrast[i] = 1.0
        p = None if roof is None else float(result.t_test((contrast, roof)).pvalue)
        found[name] = Exponent(
            float(result.params[i]), float(ends[i, 0]), float(ends[i, 1]), roof, p
        )
    return found


def _bend(rows: LawRows, groups: npt.NDArray[np.intp]) -> Bend:
    """Return where speed over the roof's time bends, with the depth as a covariate."""
    x, depth = rows.log_roof_s, rows.log_x[:, NAMES.index("depth")]

    def columns(knot: float) -> Floats:
        return np.column_stack([np.minimum(x - knot, 0.0), np.maximum(x - knot, 0.0), depth])

    knots = np.quantile(x, KNOTS)
    losses = [
        np.linalg.lstsq(sm.add_constant(columns(k), has_constant="add"), rows.log_y, rcond=None)[1]
        for k in knots
    ]
    knot = float(knots[int(np.argmin([float(e[0]) if e.size else np.inf for e in losses]))])
    result = _fitted(rows.log_y, columns(knot), groups)
    ends = np.asarray(result.conf_int(alpha=0.05))
    below, above = ((float(result.params[i]), float(ends[i, 0]), float(ends[i, 1])) for i in (1, 2))
    return Bend(float(np.exp(knot)), below, above)


def scaling_laws(
    observations: Sequence[Observation], energies: Sequence[EnergyObservation]
) -> list[Law]:
    """Return the laws of speed by backend and of energy by meter, largest first."""
    backends = sorted({o.run.backend for o in observations})
    meters = sorted({meter_of(o.host) for o in energies})
    made = [speed_rows(observations, b) for b in backends]
    made += [energy_rows_of(energies, m) for m in meters]
    laws = [law for rows in made if rows.log_y.size and (law := fit_law(rows)) is not None]
    return sorted(laws, key=lambda law: (law.response != "tok/s", -law.n))
