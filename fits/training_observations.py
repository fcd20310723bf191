"""Rows that training laws are fitted on: a device's features, and what was measured."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from tokcast.hosts.match import find
from tokcast.measurements.training_published import PublishedRun
from tokcast.measurements.training_runs import TrainPoint, TrainRun
from tokcast.predictor.host import Host
from tokcast.predictor.training.law import Device, device_of, features, processor_of
from tokcast.predictor.training.layout import Layout, Link, filling, traffic
from tokcast.predictor.training.shape import TrainShape
from tokcast.predictor.training.work import Step


@dataclass(frozen=True, slots=True)
class TrainObservation:
    """One measured figure and what explains it.

    `device_seconds` and `joules` are of one micro-batch, summed over devices; `joules` is None
    where nothing metered them. `group` is what is left out together, `family` what errs alike,
    `host` the chip.
    """

    shape: TrainShape
    step: Step
    layout: Layout
    device: Device
    group: str
    family: str
    host: str
    device_seconds: float
    joules: float | None
    extra: Mapping[str, float]

    def found(self, efficiency: float) -> dict[str, float]:
        """Return the features at a speedup, with those that only a fit has."""
        return features(self.shape, self.step, self.device, efficiency) | dict(self.extra)

    @property
    def pipeline_efficiency(self) -> float:
        """Return the efficiency of the pipeline alone: published rows do not state their links."""
        return 1.0 / filling(self.step, self.layout)


def of_published(runs: Sequence[PublishedRun]) -> list[TrainObservation]:
    """Return published rows at their chips' published peaks."""
    return [_published(run, find(run.chip)) for run in runs]


def _published(run: PublishedRun, host: Host) -> TrainObservation:
    n_passes = run.n_steps * run.step.n_micro
    # Lengths that the data set and padding to a batch's longest leave open.
    extra = {}
    if run.data != "text":
        extra[f"data|{run.data}"] = 1.0
        extra[f"data|{run.data}|batch"] = math.log(run.step.n_batch / 16)
    return TrainObservation(
        shape=run.shape,
        step=run.step,
        layout=run.layout,
        device=device_of(host, run.step.precision, run.limit_watts),
        group=run.configuration,
        family=f"{run.chip} / {run.shape.name} / {run.data}",
        host=run.chip,
        device_seconds=run.device_seconds / n_passes,
        joules=run.joules / n_passes,
        extra=extra,
    )


def of_sweep(runs: Sequence[TrainRun], host: Host) -> list[TrainObservation]:
    """Return a sweep's points, each process a device with its share of the processor.

    A point that was taken more than once has the median of its runs. Watts are left at 1: no
    meter was there, so joules are device-seconds by stated watts.
    """
    of_point: dict[TrainPoint, list[TrainRun]] = {}
    for run in runs:
        of_point.setdefault(run.point, []).append(run)
    return [_point(point, taken, host) for point, taken in of_point.items()]


def _point(point: TrainPoint, taken: Sequence[TrainRun], host: Host) -> TrainObservation:
    group = str(replace(point, n_devices=1, strategy="none"))
    return TrainObservation(
        shape=point.shape,
        step=point.step,
        layout=_layout(point),
        device=processor_of(host, taken[0].n_threads, 1.0),
        group=group,
        family=group,
        host=taken[0].cpu,
        device_seconds=median(run.seconds for run in taken) * point.n_devices,
        joules=None,
        extra={},
    )


def _layout(point: TrainPoint) -> Layout:
    """Return how the sweep's processes share a model; its tensor parallelism splits blocks only."""
    n = point.n_devices
    if point.strategy == "fsdp":
        return Layout(fsdp=n)
    return Layout(tp=n, splits_head=False) if point.strategy == "tp" else Layout()


def sent(row: TrainObservation) -> tuple[float, float]:
    """Return the bytes and messages that each device sends in a step."""
    loads = list(traffic(row.shape, row.step, row.layout))
    return sum(t.n_bytes for t in loads), sum(t.n_messages for t in loads)


def link_of(bytes_per_s: float, latency_s: float) -> Link:
    """Return the link between processes of one machine, whose sending takes their own cores."""
    return Link(bytes_per_s, latency_s, overlaps=False)
