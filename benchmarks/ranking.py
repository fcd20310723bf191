"""Is the faster of two models called right, on chips that the fit did not see?

    python benchmarks/ranking.py [--folds N]          (minutes; `make ranking`)

Every chip is predicted by a fit without its rows. Two (model, file type) pairs are compared where
both were measured on one chip with one runtime, backend, driver stack, number of threads and
workload, and differ by more than 10 %. The pick is the fastest predicted of such a group; a chip
is judged by its largest group.
"""

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import median

import numpy as np

from tokcast.fits.design import design
from tokcast.fits.heldout import Fitter
from tokcast.fits.kept import Store
from tokcast.fits.observations import Observation, observe
from tokcast.fits.priors import BELIEFS, prior_of
from tokcast.fits.splits import folds
from tokcast.measurements.schema import packaged

APART = 1.10
NEAR = 1.05
LEAST_IN_A_GROUP = 3
TARGETS = {"decode": 95.0, "prefill": 90.0}
PICK_TARGET = 90.0

Pair = tuple[str, str]
Group = dict[Pair, tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Ranking:
    """Counts over pairs and over chips."""

    n_pairs: int
    n_right: int
    by_host: dict[str, float]
    near: dict[str, bool]

    @property
    def pairs_right(self) -> float:
        """Return the share of pairs called right, percent."""
        return 100 * self.n_right / self.n_pairs

    @property
    def hosts_right(self) -> float:
        """Return the mean over chips of their pairs called right, percent."""
        return 100 * sum(self.by_host.values()) / len(self.by_host)

    @property
    def picks_near(self) -> float:
        """Return the share of chips whose pick is the best or near it, percent."""
        return 100 * sum(self.near.values()) / len(self.near)


def groups(
    observations: Sequence[Observation], log_predicted: np.ndarray
) -> dict[tuple[object, ...], Group]:
    """Return {what was alike: {(model, file type): (measured, predicted tokens/s)}}."""
    rows: dict[tuple[object, ...], dict[Pair, list[tuple[float, float]]]] = defaultdict(dict)
    for o, predicted in zip(observations, np.exp(log_predicted), strict=True):
        alike = (o.host.name, replace(o.run, year=None), o.workloads)
        pair = (o.model_id, o.file_type)
        rows[alike].setdefault(pair, []).append((o.tok_per_s, float(predicted)))
    return {
        alike: {
            pair: (median(m for m, _ in found), median(p for _, p in found))
            for pair, found in pairs.items()
        }
        for alike, pairs in rows.items()
    }


def judged(group: Group) -> Iterator[bool]:
    """Yield, for each two pairs clearly apart, whether the faster was called right."""
    for (first, p_first), (second, p_second) in combinations(group.values(), 2):
        if max(first, second) > APART * min(first, second):
            yield (first > second) == (p_first > p_second)


def rank(found: dict[tuple[object, ...], Group]) -> Ranking:
    """Return how often pairs and picks are right."""
    n_pairs = n_right = 0
    by_host: dict[str, list[bool]] = defaultdict(list)
    largest: dict[str, Group] = {}
    for (host, *_), group in found.items():
        name = str(host)
        verdicts = list(judged(group))
        n_pairs += len(verdicts)
        n_right += sum(verdicts)
        by_host[name] += verdicts
        if len(group) > len(largest.get(name, {})):
            largest[name] = group
    return Ranking(
        n_pairs,
        n_right,
        {name: sum(v) / len(v) for name, v in by_host.items() if v},
        {name: is_near(g) for name, g in largest.items() if len(g) >= LEAST_IN_A_GROUP},
    )


def is_near(group: Group) -> bool:
    """Return whether the fastest predicted is measured within 5 % of the fastest measured."""
    picked = max(group.values(), key=lambda each: each[1])[0]
    return max(measured for measured, _ in group.values()) <= NEAR * picked


def held_out(observations: Sequence[Observation], n_folds: int) -> np.ndarray:
    """Return log tokens/s predicted for each row by a fit without its chip."""
    d = design(observations)
    chips = [o.host.name for o in observations]

    def say(text: str) -> None:
        print(f"\r{observations[0].phase}: {text} ", end="", file=sys.stderr, flush=True)

    prior = prior_of(d.names, BELIEFS[observations[0].phase])
    fitter = Fitter(d, prior, Store(None), say)
    held = fitter.left_out(fitter.everything(), list(folds(chips, n_folds)))
    print("\r\x1b[K", end="", file=sys.stderr)
    return np.asarray(d.log_rate - held.residual)


def show(what: str, figure: str, target: float, value: float) -> bool:
    """Print a figure beside its target."""
    is_met = value >= target
    print(f"{what:<58} {figure:>14}   target >= {target:g} %   {'met' if is_met else 'MISSED'}")
    return is_met


def main() -> int:
    """Print the figures of both phases; exit code 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folds", type=int, default=10)
    n_folds = parser.parse_args().folds
    started = time.perf_counter()
    observations, _ = observe(packaged())
    ok = True
    for phase, target in TARGETS.items():
        rows = [o for o in observations if o.phase == phase]
        r = rank(groups(rows, held_out(rows, n_folds)))
        what = f"{phase}: pairs right ({r.n_pairs:,} on {len(r.by_host)} chips)"
        ok &= show(what, f"{r.pairs_right:.1f} %", target, r.pairs_right)
        print(f"  mean over chips {r.hosts_right:.1f} %")
        what = f"{phase}: pick within 5 % of the best ({len(r.near)} chips)"
        ok &= show(what, f"{r.picks_near:.1f} %", PICK_TARGET, r.picks_near)
    print(f"{time.perf_counter() - started:.0f} s, {n_folds} parts of the chips left out in turn")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
