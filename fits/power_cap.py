"""The shape of speed over a power limit, from sweeps of it, and its error on sweeps left out."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from tokcast.fits.energy_observations import EnergyObservation, energy_observation
from tokcast.hosts.registry import chip
from tokcast.measurements.energy_rows import EnergyRow
from tokcast.predictor.power_cap import CapTerms, curve_of, nearest
from tokcast.predictor.work import Phase

# Fewer limits than these show no shape.
MIN_LIMITS = 5
# The lowest points of a sweep that a straight line through them needs.
MIN_LINE = 3


@dataclass(frozen=True, slots=True)
class Sweep:
    """One workload under several limits of a chip: watts set and drawn, and tokens/s, by limit.

    `bandwidth_share` is the share of the nameplate in use at the highest limit within the
    published power.
    """

    name: str
    chip: str
    phase: Phase
    limits_w: tuple[float, ...]
    watts: tuple[float, ...]
    tok_per_s: tuple[float, ...]
    bandwidth_share: float

    @property
    def best(self) -> int:
        """Return the place of the limit with the least measured energy a token."""
        return int(np.argmin(np.array(self.watts) / np.array(self.tok_per_s)))

    @property
    def is_censored(self) -> bool:
        """Return whether the least lies at the lowest limit tried: the knee may lie below."""
        return self.best == 0

    @property
    def usual(self) -> int:
        """Return the place of the highest limit within the published power."""
        tdp = chip(self.chip).tdp_w or self.limits_w[-1]
        return max(i for i, w in enumerate(self.limits_w) if w <= tdp or i == 0)


def sweeps(rows: Iterable[EnergyRow]) -> list[Sweep]:
    """Return the single-card sweeps of a limit, those with drafted tokens left out."""
    groups: dict[tuple[object, ...], list[EnergyRow]] = defaultdict(list)
    for r in rows:
        drafted = "draft" in r.notes or "MTP" in r.notes
        is_whole = r.power_limit_w and r.power_w and r.tok_s and r.n_devices == 1
        if is_whole and not drafted and r.phase in ("decode", "prefill"):
            groups[r.source, r.chip, r.model, r.phase, r.batch].append(r)
    made = {
        key: found
        for key, g in groups.items()
        if (found := _sweep(sorted(g, key=lambda r: r.power_limit_w or 0.0))) is not None
    }
    return [_queued(s, made.get((*key[:-1], 1.0))) for key, s in made.items()]


def _queued(s: Sweep, single: Sweep | None) -> Sweep:
    """Return a sweep of several requests with the bandwidth share of one, where they queued.

    Together no faster than one alone, they were not computed together: the card did the same
    work, with gaps.
    """
    if single is None or s.tok_per_s[s.usual] > single.tok_per_s[single.usual]:
        return s
    return replace(s, bandwidth_share=single.bandwidth_share)


def _sweep(rows: Sequence[EnergyRow]) -> Sweep | None:
    first = rows[0]
    limits = tuple(r.power_limit_w or 0.0 for r in rows)
    if len(set(limits)) < MIN_LIMITS:
        return None
    tdp = chip(first.chip).tdp_w or limits[-1]
    within = [r for r, limit in zip(rows, limits, strict=True) if limit <= tdp] or [first]
    found = energy_observation(within[-1])
    if not isinstance(found, EnergyObservation):
        return None
    batch = "" if first.batch in (None, 1.0) else f" x{first.batch:g}"
    phase: Phase = "decode" if first.phase == "decode" else "prefill"
    return Sweep(
        name=f"{first.model}{batch}, {phase}",
        chip=first.chip,
        phase=phase,
        limits_w=limits,
        watts=tuple(r.power_w or 0.0 for r in rows),
        tok_per_s=tuple(r.tok_s or 0.0 for r in rows),
        bandwidth_share=found.activity.n_bytes / found.activity.seconds / found.host.bytes_per_s,
    )


def base_watts(s: Sweep) -> float | None:
    """Return the power at which speed would be nothing: below the knee speed is straight in it.

    None where too few limits lie there.
    """
    n = s.best + 1
    if n < MIN_LINE:
        return None
    slope, start = np.polyfit(s.watts[:n], s.tok_per_s[:n], 1)
    return float(max(-start / slope, 0.0)) if slope > 0 else None


def cap_terms(found: Sequence[Sweep]) -> dict[str, CapTerms]:
    """Return the terms of each swept chip: medians over its sweeps.

    A chip all of whose sweeps have their least at the lowest limit tried has none: its knee was
    not seen.
    """
    by_chip: dict[str, list[Sweep]] = defaultdict(list)
    for s in found:
        if not s.is_censored:
            by_chip[s.chip].append(s)
    made = {}
    for name, listed in by_chip.items():
        host = chip(name)
        bases = [b for s in listed if (b := base_watts(s)) is not None]
        if not bases or host.tdp_w is None or host.launch_year is None:
            continue
        base = median(bases)
        made[name] = CapTerms(
            base=base / host.tdp_w,
            decode=_slope(listed, "decode", base, host.tdp_w),
            prefill=_slope(listed, "prefill", base, host.tdp_w),
            speed_at_knee=median(s.tok_per_s[s.best] / s.tok_per_s[s.usual] for s in listed),
            launch_year=host.launch_year,
        )
    return made


def _slope(listed: Sequence[Sweep], phase: Phase, base: float, tdp_w: float) -> float | None:
    shares = [
        (s.limits_w[s.best] - base) / tdp_w / (s.bandwidth_share if phase == "decode" else 1.0)
        for s in listed
        if s.phase == phase
    ]
    return median(shares) if shares else None


@dataclass(frozen=True, slots=True)
class CapScore:
    """A sweep left out: the best limit measured and predicted, and the error over the limits.

    `saved` is the share of the energy a token that the predicted limit really saves over the
    usual one; the errors of relative speed and energy are means over the limits, in percent.
    """

    sweep: Sweep
    terms_of: str
    measured_w: float
    predicted_w: float
    steps: float
    speed_mape: float
    energy_mape: float
    saved: float


def score_sweep(s: Sweep, known: Mapping[str, CapTerms]) -> CapScore | None:
    """Return how a sweep is predicted from terms that it had no part in."""
    host = chip(s.chip)
    name = nearest(host, s.phase, known)
    if name is None:
        return None
    curve = curve_of(host, known[name], s.phase, s.bandwidth_share, s.watts[s.usual])
    if curve is None:
        return None
    limits = np.array(s.limits_w)
    best = curve.best(limits[0], limits[-1])
    taken = int(np.argmin(np.abs(limits - best)))
    upto = s.usual + 1
    measured = np.array(s.tok_per_s[:upto]) / s.tok_per_s[s.usual]
    joules = np.array(s.watts[:upto]) / s.watts[s.usual] / measured
    speed = np.array([curve.speed(w) for w in limits[:upto]])
    energy = np.array([curve.energy(w) for w in limits[:upto]])
    step = float(np.median(np.diff(limits)))
    return CapScore(
        sweep=s,
        terms_of=name,
        measured_w=s.limits_w[s.best],
        predicted_w=best,
        steps=abs(best - s.limits_w[s.best]) / step,
        speed_mape=float(100 * np.mean(np.abs(speed / measured - 1))),
        energy_mape=float(100 * np.mean(np.abs(energy / joules - 1))),
        saved=float(1 - joules[min(taken, upto - 1)]),
    )


def score_caps(found: Sequence[Sweep]) -> list[CapScore]:
    """Return each sweep's score, predicted from the others."""
    scores = (score_sweep(s, cap_terms([o for o in found if o is not s])) for s in found)
    return [s for s in scores if s is not None]
