"""A stored calibration put to use: the host as measured, and its own effects in the release.

Light enough for every prediction: no estimator, only what the calibration wrote down.
"""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tokcast.measurements.store_file import newest_calibrations
from tokcast.predictor.coefficients import Coefficients, interval_class
from tokcast.predictor.host import Host
from tokcast.predictor.terms import Run

if TYPE_CHECKING:
    from tokcast.predictor.energy import OwnPower

_FACTS = ("bytes_per_s", "fp32_flops_per_s", "int8_ops_per_s", "matrix_fp16_flops_per_s")


@dataclass(frozen=True, slots=True)
class Applied:
    """The host and coefficients to predict with; `calibration` is None without one for them."""

    host: Host
    coefficients: Coefficients
    calibration: Mapping[str, Any] | None = None
    note: str = ""

    @property
    def is_calibrated(self) -> bool:
        """Return whether measurements of this host are in it."""
        return self.calibration is not None

    @property
    def own_power(self) -> "OwnPower | None":
        """Return what this machine's meter read, None without one."""
        found = self.calibration.get("energy") if self.calibration is not None else None
        if found is None:
            return None
        from tokcast.predictor.energy import OwnPower

        ends = {level: (low, high) for level, (low, high) in found["intervals"].items()}
        return OwnPower(found["reference_watts"], ends, found["source"])

    @property
    def summary(self) -> str:
        """Return in words when and from how many models the calibration was made, or nothing."""
        if self.calibration is None:
            return ""
        n = max(p["n_models"] for p in self.calibration["phases"].values() if p["is_used"])
        return f"{self.calibration['created'][:10]}, from {n} models measured here"


def run_here(runtime: str, backend: str, released: Coefficients) -> Run:
    """Return how a prediction for this machine takes a model to be run, where nothing else is said.

    A calibration is fitted under the same, so that its effects add up with the release's.
    """
    return Run(
        runtime=runtime,
        backend=backend,
        stack=backend,
        year=released.newest,
        system=platform.system(),
    )


def fingerprint(host: Host) -> dict[str, Any]:
    """Return what tells this machine's chip from another of the same name."""
    memory = None if host.memory_bytes is None else round(host.memory_bytes / 2**30)
    return {"name": host.name, "n_cores": host.n_cores, "memory_gib": memory}


def with_facts(host: Host, facts: Mapping[str, float]) -> Host:
    """Return the host with the peaks that were measured in place of the published ones."""
    known = {name: value for name, value in facts.items() if name in _FACTS}
    source = {**host.source, **dict.fromkeys(known, "measured here by tokcast calibrate")}
    return replace(host, **known, source=source)  # type: ignore[arg-type]


def _fits(c: Mapping[str, Any], host: Host, run: Run) -> bool:
    same_run = (c["runtime"], c["backend"]) == (run.runtime, run.backend)
    return same_run and c["fingerprint"] == fingerprint(host)


def merge(released: Coefficients, calibration: Mapping[str, Any]) -> Coefficients:
    """Return the release with a calibration's effects and its own left-out intervals."""
    intervals = dict(released.intervals)
    deepest = dict(released.deepest)
    backend = calibration["backend"]
    for phase, levels in calibration["intervals"].items():
        ends = {k: (v[0], v[1]) for k, v in levels.items()}
        for is_new_model in (False, True):
            intervals[f"{phase}/{interval_class('same host', is_new_model)}/{backend}"] = ends
        key = f"{phase}/{backend}"
        deepest[key] = max(deepest.get(key, 0), calibration["deepest"][phase])
    return replace(
        released,
        effects={**released.effects, **calibration["effects"]},
        intervals=intervals,
        deepest=deepest,
    )


def apply(
    host: Host,
    run: Run,
    released: Coefficients,
    calibrations: Sequence[Mapping[str, Any]] | None = None,
) -> Applied:
    """Return what to predict with on this machine's `host`: calibrated where it has been.

    `calibrations` are the stored ones, newest first. One that was made with another release is
    left aside, with a note.
    """
    stored = newest_calibrations() if calibrations is None else calibrations
    found = next((c for c in stored if _fits(c, host, run)), None)
    if found is None:
        return Applied(host, released)
    if found["coefficients"] != released.digest:
        note = (
            f"the calibration of {found['created'][:10]} belongs to other coefficients;"
            " tokcast calibrate --refit brings it up to date without measuring"
        )
        return Applied(host, released, None, note)
    return Applied(with_facts(host, found["facts"]), merge(released, found), found)
