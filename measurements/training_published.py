"""Published energy of training: what each row trained, and in which steps.

Perseus (ml-energy/zeus at 38cb3f90c3): models, micro-batches and devices as its training code and
commands have them; weights in 32 bits with TF32 products (PyTorch 1.10, which used them unless
told otherwise), activations recomputed, PCIe cards of 80 GB. Zeus (75a8b93980): BERT base in 32
bits for an epoch of 88,524 (SQuAD 1.1 in windows of 384 tokens) or 1,600,000 (Sentiment140)
sequences. Their padded lengths are not printed: the fit gives each data set an effect of its own.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from tokcast.measurements.energy_rows import EnergyRow, packaged_energy
from tokcast.predictor.training.layout import Layout, of_degrees
from tokcast.predictor.training.shape import TrainShape
from tokcast.predictor.training.work import Step

Data = Literal["squad", "sentiment140", "text"]
# Sequences of an epoch, and the tokens of one as they are counted here.
_EPOCHS: dict[str, tuple[int, int]] = {"squad": (88_524, 384), "sentiment140": (1_600_000, 40)}
_CHIPS = {
    "NVIDIA A100 (form factor unknown)": "NVIDIA A100 PCIe 80GB",
    "NVIDIA V100 (form factor unknown)": "NVIDIA Tesla V100 PCIe 32GB",
    "NVIDIA P100 (form factor unknown)": "NVIDIA Tesla P100 PCIe 16GB",
}
_LENGTHS = {"bert-huge-uncased": 512}


def _gpt(name: str, width: int, n_layers: int, n_heads: int) -> TrainShape:
    head = width // n_heads
    return TrainShape(
        name, n_layers, width, n_heads, n_heads, head, 4 * width, 50257, n_positions=1024
    )


def _bert(name: str, width: int, n_layers: int, n_heads: int) -> TrainShape:
    head, inner = width // n_heads, 4 * width
    return TrainShape(
        name, n_layers, width, n_heads, n_heads, head, inner, 30522, 512, is_causal=False
    )


SHAPES = {
    s.name: s
    for s in (
        _bert("bert_base_uncased", 768, 12, 12),
        _bert("bert-huge-uncased", 2048, 24, 16),
        _gpt("gpt3-large", 1536, 24, 16),
        _gpt("gpt3-xl", 2048, 24, 16),
        _gpt("gpt3-2.7b", 2560, 32, 32),
        _gpt("gpt3-6.7b", 4096, 32, 32),
        TrainShape("bloom-3b", 30, 2560, 32, 32, 80, 10240, 250880),
    )
}


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """A published figure: `n_steps` of a step, its joules and seconds over all devices.

    `limit_watts` is a device's power limit, the mean over stages where they differ.
    """

    chip: str
    data: Data
    shape: TrainShape
    step: Step
    layout: Layout
    n_steps: float
    limit_watts: float | None
    joules: float
    device_seconds: float

    @property
    def configuration(self) -> str:
        """Return what is left out together: all power limits of a chip, model, data and batch."""
        parts = (self.chip, self.shape.name, self.data, str(self.step.n_batch), str(self.layout))
        return " / ".join(parts)


def runs(rows: Iterable[EnergyRow] | None = None) -> tuple[PublishedRun, ...]:
    """Return the training rows whose model is known here and whose power is a board's."""
    given = packaged_energy() if rows is None else rows
    return tuple(_usable(r for r in given if r.phase == "training"))


def _usable(rows: Iterable[EnergyRow]) -> Iterator[PublishedRun]:
    for row in rows:
        shape = SHAPES.get(row.model)
        if shape is None or row.kind != "gpu_board":
            continue
        figures = (row.energy_j, row.duration_s, row.batch, row.n_devices)
        if all(value is not None and value > 0 for value in figures):
            yield _run(row, shape)


def _run(row: EnergyRow, shape: TrainShape) -> PublishedRun:
    assert row.energy_j is not None
    assert row.duration_s is not None
    assert row.n_devices is not None
    assert row.batch is not None
    n_batch = int(row.batch)
    found = re.search(r"fine-tuning on (\w+)", row.notes)
    if found is not None:
        data: Data = "squad" if found[1] == "squad" else "sentiment140"
        n_sequences, length = _EPOCHS[data]
        step = Step(n_batch, length, precision="fp32", is_fused=False)
        n_steps = n_sequences / n_batch
    else:
        data, n_steps = "text", 1.0
        micro = re.search(r"num_microbatches=(\d+)", row.notes)
        n_micro = int(micro[1]) if micro else 1
        length = _LENGTHS.get(row.model, 1024)
        step = Step(n_batch, length, n_micro, "tf32", recomputes=True, is_fused=False)
    return PublishedRun(
        chip=_CHIPS.get(row.chip, row.chip),
        data=data,
        shape=shape,
        step=step,
        layout=_layout(row.strategy),
        n_steps=n_steps,
        limit_watts=_limit(row),
        joules=row.energy_j,
        device_seconds=row.duration_s * row.n_devices,
    )


def _layout(strategy: str) -> Layout:
    found = re.findall(r"(dp|tp|pp)(\d+)", strategy)
    return of_degrees({kind: int(n) for kind, n in found})


def _limit(row: EnergyRow) -> float | None:
    if row.power_limit_w is not None:
        return row.power_limit_w
    stages = re.search(r"power limits ([\d/]+)", row.notes)
    if stages is None:
        return None
    watts = [float(w) for w in stages[1].split("/")]
    return sum(watts) / len(watts)
