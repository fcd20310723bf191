"""Tokens per second of a placed model: its devices one after the other, and the hand-overs.

Where one device does everything this is the released prediction. Otherwise every part of the
model takes the released time of the device that computes it; weights in main memory are
computed by the processor in decode, copied to a card for a long micro-batch; each hand-over
costs its time. What such company costs is fitted on published runs of partly offloaded and of
divided models (`fits/offload.py`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import NormalDist

from tokcast.predictor.coefficients import Coefficients
from tokcast.predictor.ledger import Work
from tokcast.predictor.placement.company import Company, PlacedCoefficients, effects_of
from tokcast.predictor.placement.devices import Device
from tokcast.predictor.placement.gather import Times, company_of, gather, sole_device
from tokcast.predictor.placement.plan import Placement
from tokcast.predictor.placement.units import Amount, Timer, Use, link_bytes_per_s
from tokcast.predictor.prediction import Bound, ComponentTime, Evidence, Prediction
from tokcast.predictor.roofline import (
    GENERIC_LOG,
    Question,
    cap_of,
    ceiling_tok_per_s,
    evidence_of,
    predict,
    tokens_of,
)
from tokcast.predictor.spec import ModelSpec

Speed = Callable[[Placement], Prediction]
RANKS: tuple[Evidence, ...] = ("same host", "same chip family", "spec sheet only")
# How far a desktop's main memory may be from the 65 GB/s taken where it is not stated, in log
# units: four machines in five are taken to lie between dual DDR4-2666 (43) and DDR5-6400 (102).
ASSUMED_LOG = 0.34


def speed(
    placement: Placement, q: Question, coefficients: Coefficients, placed: PlacedCoefficients
) -> Prediction:
    """Return tokens/s of a placed model with an interval; `q.host` is not looked at.

    `compile_speed` does the same for many placements of one model.
    """
    return compile_speed(placement.spec, placement.devices, q, coefficients, placed)(placement)


def compile_speed(
    spec: ModelSpec,
    devices: tuple[Device, ...],
    q: Question,
    coefficients: Coefficients,
    placed: PlacedCoefficients,
) -> Speed:
    """Return what predicts any placement of a model over the same devices.

    Times of parts are kept, so that a further placement takes a fraction of a millisecond.
    """
    return _Speeds(Timer(spec, devices, q, coefficients), placed, {})


def use_scale(placed: PlacedCoefficients, use: Use, company: Company) -> float:
    """Return the fitted multiple of the time that goes to a use."""
    pairs = effects_of(use.role, use.component, company)
    return math.exp(sum(placed.effects.get(name, 0.0) * value for name, value in pairs))


@dataclass(frozen=True, slots=True)
class _Speeds:
    timer: Timer
    placed: PlacedCoefficients
    scales: dict[tuple[Use, Company], float]

    def __call__(self, placement: Placement) -> Prediction:
        """Return the prediction of one placement."""
        alone = sole_device(placement, self.timer)
        if alone is not None:
            return self._alone(placement, alone)
        times = gather(self.timer, placement)
        company = company_of(self.timer, times)
        for use, amount in times.items():
            scale = self._scale(use, company)
            times[use] = Amount(amount.seconds * scale, amount.n_bytes, amount.flops)
        return self._prediction(placement, times, company)

    def _alone(self, placement: Placement, device: int) -> Prediction:
        q, run = self.timer.question, self.timer.run(device)
        host = placement.devices[device].host
        return predict(placement.spec, replace(q, host=host, run=run), self.timer.coefficients)

    def _scale(self, use: Use, company: Company) -> float:
        found = self.scales.get((use, company))
        if found is None:
            found = self.scales[use, company] = use_scale(self.placed, use, company)
        return found

    def _prediction(self, placement: Placement, times: Times, company: Company) -> Prediction:
        q, devices = self.timer.question, placement.devices
        load = q.workload
        n_tokens = tokens_of(load)
        ceiling = n_tokens / least_seconds(times, devices)
        cap = self._cap(times, company, ceiling)
        rate = min(n_tokens / sum(amount.seconds for amount in times.values()), cap)
        low, high = self._interval(placement, times, company)
        n_seen = self.placed.n_observations.get(f"{load.phase}/{company.kind}", 0)
        return Prediction(
            phase=load.phase,
            n_prompt=load.n_prompt if load.phase == "prefill" else 0,
            n_depth=load.n_depth,
            tok_per_s=rate,
            low=rate * math.exp(low),
            high=min(rate * math.exp(high), cap),
            level=q.level,
            seconds=n_tokens / rate,
            bound=_largest(times),
            components=_components(times, devices),
            ceiling_tok_per_s=ceiling,
            evidence=evidence(self.timer.coefficients, q, devices, times),
            n_observations=n_seen,
            warnings=_warnings(company, n_seen, self.placed, q.run.backend),
        )

    def _cap(self, times: Times, company: Company, ceiling: float) -> float:
        """Return the ceiling where it is certain.

        Tokens of a prompt like the same experts more than chance has it, so that fewer are copied
        than are counted, and a processor's caches serve what its memory does not.
        """
        if company.kind == "cpu":
            return math.inf
        return max(cap_of(self.timer.devices[use.device].host, ceiling) for use in times)

    def _interval(
        self, placement: Placement, times: Times, company: Company
    ) -> tuple[float, float]:
        """Return the log interval: of placements left out or of whole models, the wider of both.

        A memory that nobody stated adds to it, by its part of the time; a backend with which no
        such placement was measured a factor of two.
        """
        q = self.timer.question
        low, high = self.placed.interval(q.workload.phase, company.kind, q.level)
        kind = evidence(self.timer.coefficients, q, placement.devices, times)
        base = self.timer.coefficients.interval(q.workload.phase, kind, q.run.backend, q.level)
        low, high = min(low, base[0]), max(high, base[1])
        if placement.devices[-1].is_assumed:
            total = sum(amount.seconds for amount in times.values())
            waits = sum(a.seconds for use, a in times.items() if use.role in ("cpu", "staging"))
            unknown = waits / total * ASSUMED_LOG * NormalDist().inv_cdf(0.5 + q.level / 2)
            low, high = -math.hypot(low, unknown), math.hypot(high, unknown)
        if self.placed.is_foreign(q.workload.phase, company.kind, q.run.backend):
            low, high = low - GENERIC_LOG, high + GENERIC_LOG
        if placement.spec.confidence == "generic":
            low, high = low - GENERIC_LOG, high + GENERIC_LOG
        return low, high


def least_seconds(times: Times, devices: tuple[Device, ...]) -> float:
    """Return the seconds that the nameplates allow, devices one after the other."""
    seconds = 0.0
    n_bytes, flops = [0.0] * len(devices), [0.0] * len(devices)
    for use, amount in times.items():
        if use.role == "link":
            seconds += amount.n_bytes / link_bytes_per_s(devices[use.device].host)
        else:
            n_bytes[use.device] += amount.n_bytes
            flops[use.device] += amount.flops
    for device, moved, done in zip(devices, n_bytes, flops, strict=True):
        if moved or done:
            work = Work("", "", moved, done, 0.0)
            seconds += 1 / ceiling_tok_per_s((work,), device.host, 1)
    return seconds


def _largest(times: Times) -> Bound:
    sums: dict[Bound, float] = {}
    for use, amount in times.items():
        sums[use.side] = sums.get(use.side, 0.0) + amount.seconds
    return max(sums, key=sums.__getitem__)


def _components(times: Times, devices: tuple[Device, ...]) -> tuple[ComponentTime, ...]:
    """Return each component's time on each device, named after both."""
    found: dict[tuple[str, str, int], tuple[Amount, dict[Bound, float]]] = {}
    for use, amount in times.items():
        key = (use.component, use.type, use.device)
        if key not in found:
            found[key] = (Amount(), {})
        total, sides = found[key]
        total.add(amount)
        sides[use.side] = sides.get(use.side, 0.0) + amount.seconds
    return tuple(
        ComponentTime(
            component=f"{component}, {devices[device].name}",
            type=type_name,
            bytes=total.n_bytes,
            flops=total.flops,
            seconds=total.seconds,
            bound=max(sides, key=sides.__getitem__),
        )
        for (component, type_name, device), (total, sides) in found.items()
    )


def evidence(
    coefficients: Coefficients, q: Question, devices: tuple[Device, ...], times: Times
) -> Evidence:
    """Return how close the measurements are to the least known card.

    A machine's processor and memory are nobody's but its own: never the same host beside them.
    """
    used = {use.device for use in times}
    found = {
        evidence_of(coefficients, replace(q, host=devices[i].host))
        for i in used
        if devices[i].kind == "gpu"
    }
    if any(use.role in ("cpu", "streamed") for use in times):
        found.add("same chip family")
    return max(found, key=RANKS.index, default="spec sheet only")


def _warnings(
    company: Company, n_seen: int, placed: PlacedCoefficients, backend: str
) -> tuple[str, ...]:
    what = {"cpu": "partly offloaded models", "cards": "divided models", "rows": "shared rows"}
    told = f"no {company.phase} measurements of {what[company.kind]}"
    if not n_seen:
        return (f"{told} are behind this",)
    if placed.is_foreign(company.phase, company.kind, backend):
        return (f"{told} with {backend} are behind this; the range is twice as wide",)
    return ()
