"""Held-out evaluation: chips, models, both and time left out, with baselines and noise floor."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from joblib import Parallel, delayed

from tokcast.fits.baselines import BASELINES
from tokcast.fits.design import design
from tokcast.fits.estimate import Design, Estimate, Rows, fit, predict_log_rate
from tokcast.fits.observations import Observation
from tokcast.fits.priors import BELIEFS, prior_of
from tokcast.fits.scores import Score, score
from tokcast.fits.splits import folds

Floats = npt.NDArray[np.float64]
Progress = Callable[[str], None]
N_FOLDS = 10
MIN_PROMPT = 128
FULL_HOST = 4


@dataclass(frozen=True, slots=True)
class SplitScore:
    """One split's score and the baselines' on the same rows, predicted from the same others."""

    name: str
    rows: str
    ours: Score
    baselines: dict[str, Score]


@dataclass(frozen=True, slots=True)
class Floor:
    """How far measurements that share all a user can state lie from each other, in percent."""

    n_pairs: int
    median: float
    mean: float


def _fit_without(d: Design, train: Rows, start: Estimate) -> Estimate:
    return fit(d.take(train), start.prior, start)


def left_out(
    d: Design,
    start: Estimate,
    splits: Sequence[tuple[Rows, Rows]],
    progress: Progress,
) -> Floats:
    """Return log(measured / predicted) of each row while it was in a test part, else NaN."""
    residual = np.full(d.log_rate.size, np.nan)
    fitted = Parallel(n_jobs=-1, return_as="generator")(
        delayed(_fit_without)(d, train, start) for train, _ in splits
    )
    for k, ((_, test), estimate) in enumerate(zip(splits, fitted, strict=True)):
        progress(f"{k + 1}/{len(splits)}")
        part = d.take(test)
        residual[test] = part.log_rate - predict_log_rate(part, estimate.theta)
    return residual


def both_out(chips: Sequence[str], models: Sequence[str], n: int) -> list[tuple[Rows, Rows]]:
    """Return splits whose test rows share neither chip nor model with the training rows."""
    chip_folds = list(folds(chips, n))
    model_folds = list(folds(models, n, seed=1))
    made = []
    for _, chip_test in chip_folds:
        for _, model_test in model_folds:
            test = np.intersect1d(chip_test, model_test)
            if test.size:
                everything = np.arange(len(chips))
                train = np.setdiff1d(everything, np.union1d(chip_test, model_test))
                made.append((train, test))
    return made


def by_time(years: Sequence[float | None], before: float) -> list[tuple[Rows, Rows]]:
    """Return one split: rows dated before a year against those from it on; undated ones neither."""
    dated = np.array([math.nan if y is None else y for y in years])
    return [(np.flatnonzero(dated < before), np.flatnonzero(dated >= before))]


def noise_floor(observations: Sequence[Observation]) -> Floor | None:
    """Return the spread of configurations that differ only in source, driver stack, build or date.

    What no predictor can know from chip, model, type, phase, runtime and lengths.
    """
    groups: dict[tuple[object, ...], list[float]] = defaultdict(list)
    for o in observations:
        run = replace(o.run, stack="", year=None, is_client_timed=False, flash_attention=None)
        groups[o.host.name, run, o.model_id, o.file_type, o.workloads].append(o.tok_per_s)
    ratios = [
        abs(a / b - 1) * 100
        for rates in groups.values()
        for i, a in enumerate(rates)
        for b in rates[i + 1 :]
    ]
    if not ratios:
        return None
    return Floor(len(ratios), float(np.median(ratios)), float(np.mean(ratios)))


def _rows_of(observations: Sequence[Observation]) -> dict[str, npt.NDArray[np.bool_]]:
    """Return the sets of rows that are reported apart."""
    suite = np.array([o.is_suite for o in observations])
    names = np.array([o.host.name for o in observations])
    counts = {name: int((names == name).sum()) for name in np.unique(names)}
    full = np.array([counts[name] >= FULL_HOST for name in names])
    long = np.array(
        [o.phase == "decode" or o.workloads[0].n_prompt >= MIN_PROMPT for o in observations]
    )
    gpu = np.array([o.run.backend != "CPU" for o in observations])
    return {
        "all": np.ones(len(names), dtype=bool),
        "LocalScore": suite,
        "LocalScore, GPU": suite & gpu,
        f"chips with >= {FULL_HOST} configurations": full & (suite | long),
        f"the same, no LocalScore, prompt >= {MIN_PROMPT}": full & ~suite & long,
    }


def _split_scores(
    name: str,
    observations: Sequence[Observation],
    residual: Floats,
    baseline_rates: dict[str, Floats],
) -> list[SplitScore]:
    hosts = np.array([o.host.name for o in observations])
    measured = np.log([o.tok_per_s for o in observations])
    made = []
    for label, mask in _rows_of(observations).items():
        use = mask & np.isfinite(residual)
        if not use.any():
            continue
        beside = {}
        for baseline, rates in baseline_rates.items():
            known = use & np.isfinite(rates)
            if known.any():
                beside[baseline] = score(measured[known] - np.log(rates[known]), list(hosts[known]))
        ours = score(residual[use], list(hosts[use]))
        made.append(SplitScore(name, label, ours, beside))
    return made


def _baseline_rates(
    observations: Sequence[Observation], splits: Sequence[tuple[Rows, Rows]]
) -> dict[str, Floats]:
    found = {name: np.full(len(observations), np.nan) for name in BASELINES}
    for train, test in splits:
        seen = [observations[i] for i in train]
        asked = [observations[i] for i in test]
        for name, baseline in BASELINES.items():
            found[name][test] = baseline(seen, asked)
    return found


def splits_of(
    observations: Sequence[Observation], n_folds: int, before: float
) -> dict[str, list[tuple[Rows, Rows]]]:
    """Return the named splits of a phase."""
    chips = [o.host.name for o in observations]
    models = [o.model_id for o in observations]
    return {
        "chip left out": list(folds(chips, n_folds)),
        "model left out": list(folds(models, n_folds)),
        "chip and model left out": both_out(chips, models, 4),
        f"rows from {before:g} on left out": by_time([o.run.year for o in observations], before),
    }


def evaluate_phase(
    observations: Sequence[Observation],
    progress: Progress,
    n_folds: int = N_FOLDS,
    before: float = 2026.0,
) -> list[SplitScore]:
    """Return the scores of every split of one phase, ours and the baselines'."""
    phase = observations[0].phase
    d = design(observations)
    progress(f"{phase}: all rows")
    start = fit(d, prior_of(d.names, BELIEFS[phase]))
    made = []
    for name, splits in splits_of(observations, n_folds, before).items():

        def say(text: str, name: str = name) -> None:
            progress(f"{phase}, {name}: {text}")

        residual = left_out(d, start, splits, say)
        made += _split_scores(name, observations, residual, _baseline_rates(observations, splits))
    return made
