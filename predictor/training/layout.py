"""How a model is spread over devices, and what part of them that leaves at work.

Efficiency is speedup over one device divided by the number of devices. What is lost: a pipeline's
filling and draining, (m + p - 1) / m for m micro-batches in p stages (Huang et al. 2019,
https://arxiv.org/abs/1811.06965), and communication in rings, where each of n devices sends
(n - 1) / n of the bytes to gather or to reduce and scatter, twice that to reduce for all (Patarasuk
and Yuan 2009, https://doi.org/10.1016/j.jpdc.2008.09.002). Fully sharded training gathers every
weight forward and backward and scatters its gradient (Rajbhandari et al. 2020,
https://arxiv.org/abs/1910.02054); tensor parallelism sums a block's activations twice forward
and twice backward (Shoeybi et al. 2019, https://arxiv.org/abs/1909.08053).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tokcast.predictor.errors import InputError
from tokcast.predictor.training.shape import TrainShape
from tokcast.predictor.training.work import Step

KINDS = ("dp", "fsdp", "tp", "pp")
MAX_DEVICES = 65536


@dataclass(frozen=True, slots=True)
class Link:
    """What two devices send each other in one direction, in bytes/s, and a message's seconds.

    `overlaps`: gradients and weights travel while the device computes.
    """

    bytes_per_s: float
    latency_s: float
    overlaps: bool = True


@dataclass(frozen=True, slots=True)
class Layout:
    """Degrees of data (`dp`, sharded: `fsdp`), tensor and pipeline parallelism; 1 for none.

    `splits_head`: tensor parallelism divides the output head's vocabulary too, as Megatron does;
    otherwise every device of it computes the whole head.
    """

    dp: int = 1
    fsdp: int = 1
    tp: int = 1
    pp: int = 1
    splits_head: bool = True

    @property
    def n_devices(self) -> int:
        """Return the devices at work."""
        return self.dp * self.fsdp * self.tp * self.pp

    @property
    def n_shards(self) -> int:
        """Return over how many devices the weights and their state are divided."""
        return self.fsdp * self.tp * self.pp

    @property
    def n_split(self) -> int:
        """Return over how many devices a micro-batch's activations are divided."""
        return self.dp * self.fsdp * self.tp

    @property
    def is_modelled(self) -> bool:
        """Return whether it shares the work otherwise than published runs, which piped it."""
        return self.dp * self.fsdp * self.tp > 1

    def __str__(self) -> str:
        """Return the degrees above 1, as `parse` reads them."""
        degrees = [f"{k}{getattr(self, k)}" for k in KINDS if getattr(self, k) > 1]
        return "+".join(degrees) or "none"


def of_degrees(degrees: Mapping[str, int]) -> Layout:
    """Return the layout of degrees by KINDS; 1 for one that is not there."""
    dp, fsdp, tp, pp = (degrees.get(kind, 1) for kind in KINDS)
    return Layout(dp, fsdp, tp, pp)


def parse(strategy: str, n_devices: int) -> Layout:
    """Return the layout of `none`, `fsdp`, `tp`, `dp`, `pp` or degrees such as `tp2+pp4`.

    A name without a degree takes all devices. Raises InputError for anything else, or where the
    degrees do not multiply to the number of devices.
    """
    if not 1 <= n_devices <= MAX_DEVICES:
        raise InputError(f"--devices {n_devices}: expected a number from 1 to {MAX_DEVICES}")
    if strategy == "none":
        if n_devices > 1:
            raise InputError(
                f"--strategy none with {n_devices} devices: expected how they share the work,"
                " fsdp, tp, dp, pp or such as tp2+pp4"
            )
        return Layout()
    degrees: dict[str, int] = {}
    for part in strategy.split("+"):
        match = re.fullmatch(r"(dp|fsdp|tp|pp)(\d{1,5})?", part)
        if match is None or match[1] in degrees or match[2] == "0":
            raise InputError(
                f"--strategy {strategy!r}: expected none, fsdp, tp, dp, pp or such as tp2+pp4"
            )
        degrees[match[1]] = int(match[2] or n_devices)
    layout = of_degrees(degrees)
    if layout.n_devices != n_devices:
        raise InputError(
            f"--strategy {strategy} takes {layout.n_devices} devices: expected {n_devices},"
            " the number of --devices"
        )
    return layout


@dataclass(frozen=True, slots=True)
class Traffic:
    """What each device sends in a step, in bytes and messages; `is_weights`: may overlap."""

    n_bytes: float
    n_messages: float
    is_weights: bool

    def seconds(self, link: Link) -> float:
        """Return the time on the link."""
        return self.n_bytes / link.bytes_per_s + self.n_messages * link.latency_s


def traffic(shape: TrainShape, step: Step, layout: Layout) -> Iterator[Traffic]:
    """Yield what each device sends for every kind of parallelism above 1."""
    here = shape.n_params * step.value_bytes / (layout.tp * layout.pp)
    blocks = shape.n_layers / layout.pp
    # Of one device, in a step: its sequences' activations at a block's border.
    border = step.n_tokens / (layout.dp * layout.fsdp) * shape.width * step.value_bytes
    n = layout.fsdp
    if n > 1:
        passes = 3.0 * step.n_micro
        yield Traffic(passes * here * (n - 1) / n, passes * blocks * (n - 1), True)
    n = layout.dp
    if n > 1:
        yield Traffic(2.0 * here * (n - 1) / n, 2.0 * blocks * (n - 1), True)
    n = layout.tp
    if n > 1:
        sums = (6.0 if step.recomputes else 4.0) * blocks
        yield Traffic(sums * 2.0 * border * (n - 1) / n, sums * 2.0 * step.n_micro * (n - 1), False)
    if layout.pp > 1:
        yield Traffic(2.0 * border, 2.0 * step.n_micro, False)


def filling(step: Step, layout: Layout) -> float:
    """Return by how much a pipeline's filling and draining lengthen a step."""
    return (step.n_micro + layout.pp - 1) / step.n_micro


def busy_seconds(alone_s: float, shape: TrainShape, step: Step, layout: Layout) -> float:
    """Return the time of a step whose sending takes none; `alone_s` is that of one device."""
    head = 0.0 if layout.splits_head else shape.n_vocab * shape.width / shape.n_multiplied
    return alone_s / layout.n_devices * filling(step, layout) * (1.0 + (layout.tp - 1) * head)


def efficiency(alone_s: float, shape: TrainShape, step: Step, layout: Layout, link: Link) -> float:
    """Return speedup over one device by the number of devices, above 0 and at most 1.

    `alone_s` is what the step takes on one device.
    """
    busy = busy_seconds(alone_s, shape, step, layout)
    sent = list(traffic(shape, step, layout))
    blocking = sum(t.seconds(link) for t in sent if not (t.is_weights and link.overlaps))
    hidden = sum(t.seconds(link) for t in sent if t.is_weights and link.overlaps)
    return alone_s / layout.n_devices / (max(busy, hidden) + blocking)
