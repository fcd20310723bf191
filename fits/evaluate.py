"""Held-out evaluation: chips, models, both and time left out, with baselines and noise floor."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tokcast.fits.baselines import BASELINES
from tokcast.fits.breakdown import Sure, bootstrap, breakdown
from tokcast.fits.coverage import Coverage, coverage
from tokcast.fits.design import design
from tokcast.fits.few_shot import HOSTS, Shot, error_curve
from tokcast.fits.heldout import Fitter, Held, Progress, Split
from tokcast.fits.intervals import left_out_of
from tokcast.fits.kept import Store
from tokcast.fits.observations import Observation
from tokcast.fits.paper import Rung, ladder, paper_scores
from tokcast.fits.priors import BELIEFS, prior_of
from tokcast.fits.release import splits_of
from tokcast.fits.scores import Score, score
from tokcast.fits.splits import CHIP_OUT, by_time

Floats = npt.NDArray[np.float64]
N_FOLDS = 10
MIN_PROMPT = 128
FULL_HOST = 4


@dataclass(frozen=True, slots=True)
class SplitScore:
    """One split's score and the baselines' on the same rows, predicted from the same others.

    `sure` is how far ours moves with the hosts that happen to be in it.
    """

    name: str
    rows: str
    ours: Score
    sure: Sure
    baselines: dict[str, Score]


@dataclass(frozen=True, slots=True)
class Floor:
    """How far measurements that share all a user can state lie from each other, in percent."""

    n_pairs: int
    median: float
    mean: float


@dataclass(frozen=True, slots=True)
class PhaseEvaluation:
    """Everything that is known of a phase's error.

    `breakdown`, `coverage`, `shots` and `paper` are of chips left out; `points` are the
    (measured, predicted) tokens/s of those rows.
    """

    scores: list[SplitScore]
    floor: Floor | None
    breakdown: dict[str, dict[str, Score]]
    coverage: list[Coverage]
    shots: list[Shot]
    paper: dict[str, dict[str, Score]]
    ladder: list[Rung]
    points: Floats


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
        sure = bootstrap(residual[use], list(hosts[use]))
        made.append(SplitScore(name, label, ours, sure, beside))
    return made


def _baseline_rates(
    observations: Sequence[Observation], splits: Sequence[Split]
) -> dict[str, Floats]:
    found = {name: np.full(len(observations), np.nan) for name in BASELINES}
    for train, test in splits:
        seen = [observations[i] for i in train]
        asked = [observations[i] for i in test]
        for name, baseline in BASELINES.items():
            found[name][test] = baseline(seen, asked)
    return found


def _shots(observations: Sequence[Observation], names: Sequence[str], held: Held) -> list[Shot]:
    """Return the curve over single tests; a suite's mean tells a calibration little."""
    without = [dict(zip(names, theta.tolist(), strict=True)) for theta in held.thetas]
    fold = {int(i): k for k, (_, test) in enumerate(held.splits) for i in test}
    single = [
        i
        for i, o in enumerate(observations)
        if not o.is_suite and (o.phase == "decode" or o.workloads[0].n_prompt >= MIN_PROMPT)
    ]
    if not single:
        return []
    rows, effects = [observations[i] for i in single], [without[fold[i]] for i in single]
    return [shot for host in HOSTS for shot in error_curve(rows, effects, host=host)]


def evaluate_phase(
    observations: Sequence[Observation],
    progress: Progress,
    n_folds: int = N_FOLDS,
    before: float = 2026.0,
    store: Store | None = None,
) -> PhaseEvaluation:
    """Return the scores of every split of one phase, ours and the baselines'.

    Fits are taken from `store` as far as they are there, and put there one by one.
    """
    phase = observations[0].phase
    d = design(observations)
    stage = ""

    def say(text: str) -> None:
        progress(f"{phase}, {stage}: {text}")

    fitter = Fitter(d, prior_of(d.names, BELIEFS[phase]), store or Store(None), say)
    start = fitter.everything()
    scores: list[SplitScore] = []
    held: dict[str, Held] = {}
    years = by_time([o.run.year for o in observations], before)
    named = splits_of(observations, n_folds) | {f"rows from {before:g} on left out": years}
    for stage, splits in named.items():
        held[stage] = fitter.left_out(start, splits)
        rates = _baseline_rates(observations, splits)
        scores += _split_scores(stage, observations, held[stage].residual, rates)
    chips_out = held[CHIP_OUT]
    stage = "calibration"
    say("a few rows given back")
    measured = np.exp(d.log_rate)
    return PhaseEvaluation(
        scores=scores,
        floor=noise_floor(observations),
        breakdown=breakdown(observations, chips_out.residual),
        coverage=coverage(left_out_of(observations, {k: h.residual for k, h in held.items()})),
        shots=_shots(observations, d.names, chips_out),
        paper=paper_scores(observations, chips_out.splits, chips_out.residual),
        ladder=ladder(observations),
        points=np.column_stack([measured, measured * np.exp(-chips_out.residual)]),
    )
