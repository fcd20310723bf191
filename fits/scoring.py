"""Scoring released coefficients on rows of the interchange schema."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokcast.fits.baselines import BASELINES
from tokcast.fits.design import design
from tokcast.fits.estimate import predict_log_rate
from tokcast.fits.observations import Observation, observe
from tokcast.fits.scores import Score, score
from tokcast.measurements.schema import BadRow, Measurement
from tokcast.predictor.coefficients import Coefficients, interval_class
from tokcast.predictor.roofline import Question, evidence_of, is_new_model

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PhaseScore:
    """One phase's score on rows: ours, split by evidence and host, and the baselines'."""

    score: Score
    coverage80: float
    coverage95: float
    by_evidence: dict[str, Score]
    by_host: dict[str, Score]
    by_backend: dict[str, Score]
    baselines: dict[str, Score]


@dataclass(frozen=True, slots=True)
class Scoring:
    """Scores of a file: rows read and skipped with reasons, what is new, each phase."""

    n_rows: int
    skipped: dict[str, int]
    new_chips: tuple[str, ...]
    new_models: tuple[str, ...]
    phases: dict[str, PhaseScore]


def predicted_log_rate(observations: Sequence[Observation], c: Coefficients) -> Floats:
    """Return log tokens/s that the coefficients predict, (n_observations,)."""
    d = design(observations)
    theta = np.array([c.effects.get(name, 0.0) for name in d.names])
    return predict_log_rate(d, theta)


def _kind(o: Observation, c: Coefficients) -> str:
    q = Question(o.workloads[0], o.host, o.run)
    return interval_class(evidence_of(c, q), is_new_model(o.spec, q, c))


def _coverage(
    test: Sequence[Observation], residual: Floats, c: Coefficients, level: float
) -> float:
    """Return the share of residuals inside the stated intervals."""
    ends = np.array(
        [c.interval(o.workloads[0].phase, _kind(o, c), o.run.backend, level) for o in test]
    )
    return float(np.mean((residual >= ends[:, 0]) & (residual <= ends[:, 1])))


def _grouped(residual: Floats, hosts: Sequence[str], keys: Sequence[str]) -> dict[str, Score]:
    names, labels = np.asarray(hosts), np.asarray(keys)
    return {
        str(key): score(residual[labels == key], list(names[labels == key]))
        for key in np.unique(labels)
    }


def score_phase(
    test: Sequence[Observation], c: Coefficients, train: Sequence[Observation]
) -> PhaseScore:
    """Return the score of released coefficients on observations of one phase.

    `train` are the packaged observations of the phase, for the baselines that need them.
    """
    measured = np.log([o.tok_per_s for o in test])
    residual = measured - predicted_log_rate(test, c)
    hosts = [o.host.name for o in test]
    kinds = [_kind(o, c) for o in test]
    beside = {}
    for name, baseline in BASELINES.items():
        rates = baseline(train, test)
        known = np.isfinite(rates)
        if known.any():
            theirs = measured[known] - np.log(rates[known])
            beside[name] = score(theirs, list(np.asarray(hosts)[known]))
    return PhaseScore(
        score=score(residual, hosts),
        coverage80=_coverage(test, residual, c, 0.8),
        coverage95=_coverage(test, residual, c, 0.95),
        by_evidence=_grouped(residual, hosts, kinds),
        by_host=_grouped(residual, hosts, hosts),
        by_backend=_grouped(residual, hosts, [o.run.backend for o in test]),
        baselines=beside,
    )


def score_rows(
    rows: Iterable[Measurement | BadRow], c: Coefficients, packaged: Sequence[Observation]
) -> Scoring:
    """Return the score of released coefficients on any rows, each skipped one with its reason."""
    listed = list(rows)
    bad = Counter(f"unreadable: {r.reason}" for r in listed if isinstance(r, BadRow))
    observations, rejected = observe(r for r in listed if isinstance(r, Measurement))
    skipped = Counter(f"{r.rule.name}: {r.rule.reason}" for r in rejected)
    known_chips = {o.host.name for o in packaged}
    known_models = {o.model_id for o in packaged}
    phases = {}
    for phase in ("prefill", "decode"):
        test = [o for o in observations if o.phase == phase]
        if test:
            phases[phase] = score_phase(test, c, [o for o in packaged if o.phase == phase])
    return Scoring(
        n_rows=len(listed),
        skipped=dict((bad + skipped).most_common()),
        new_chips=tuple(sorted({o.host.name for o in observations} - known_chips)),
        new_models=tuple(sorted({o.model_id for o in observations} - known_models)),
        phases=phases,
    )
