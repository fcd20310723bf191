"""Fitting the laws of training: published boards, and this project's sweep on a processor."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.optimize import nnls

from tokcast.fits.estimate import Design, Estimate, Prior, fit
from tokcast.fits.training_observations import TrainObservation, link_of, sent
from tokcast.predictor.training.law import OWN, Law, Quantity
from tokcast.predictor.training.layout import Link, busy_seconds, efficiency

Floats = npt.NDArray[np.float64]

# Means and widths of the effects before any data. Size is 1 because twice the work costs twice;
# compute leads where matrices are large; efficiency is -1 where a lost second costs as a used one.
_PRIORS = {
    "level": (0.0, 1.0),
    "compute": (0.7, 0.05),
    "size": (1.0, 0.003),
    "efficiency": (-1.0, 0.2),
    "matrix": (0.7, 0.5),
}
# A step on a processor has overheads that do not grow with it: its size is left free.
_FREE = {"size": (1.0, 0.1)}
_OWN_WIDTH = {name: 0.25 if name == "level" else 1.0 for name in OWN}
# Residuals scatter about so much, in logs.
_SCALE = 0.04


@dataclass(frozen=True, slots=True)
class Fitted:
    """A law's estimate, and the link that its speedups were modelled with; None for boards."""

    estimate: Estimate
    link: Link | None

    def log_cost(self, row: TrainObservation) -> float:
        """Return the predicted log cost of a row that need not have been fitted."""
        effects = dict(zip(self.estimate.names, self.estimate.theta, strict=True))
        law = Law(effects, {}, {})
        if self.link is None:
            return law.log_cost(row.found(row.pipeline_efficiency))
        alone = math.exp(law.log_cost(row.found(1.0)))
        at = efficiency(alone, row.shape, row.step, row.layout, self.link)
        return law.log_cost(row.found(at))


def log_cost(row: TrainObservation, quantity: Quantity) -> float:
    """Return what was measured, as the law has it: device-seconds, or joules by rated watts."""
    if quantity == "seconds":
        return math.log(row.device_seconds)
    assert row.joules is not None
    return math.log(row.joules / row.device.rated_watts)


def fit_boards(rows: Sequence[TrainObservation], quantity: Quantity) -> Fitted:
    """Return the law of published rows; a pipeline's filling is their only known loss."""
    found = [row.found(row.pipeline_efficiency) for row in rows]
    measured = np.array([log_cost(row, quantity) for row in rows])
    return Fitted(_estimate(found, measured, _PRIORS), None)


def fit_sweep(rows: Sequence[TrainObservation], quantity: Quantity = "seconds") -> Fitted:
    """Return the law of a sweep: of one process first, then of what two lose by sending.

    Raises ValueError where no row is of one process.
    """
    priors = _PRIORS | _FREE
    alone = [row for row in rows if row.layout.n_devices == 1]
    if not alone:
        raise ValueError("no row of one process to fit")
    first = _estimate(
        [row.found(1.0) for row in alone],
        np.array([log_cost(row, quantity) for row in alone]),
        priors,
    )
    link = _link(rows, Fitted(first, None))
    model = Fitted(first, link)
    found = [row.found(_modelled(row, model)) for row in rows]
    measured = np.array([log_cost(row, quantity) for row in rows])
    return Fitted(_estimate(found, measured, priors), link)


def _modelled(row: TrainObservation, model: Fitted) -> float:
    assert model.link is not None
    alone = math.exp(Fitted(model.estimate, None).log_cost(row))
    return efficiency(alone, row.shape, row.step, row.layout, model.link)


def _link(rows: Sequence[TrainObservation], alone: Fitted) -> Link:
    """Return the seconds a byte and a message took beyond the work of each process.

    Without rows of several processes: a link that costs nothing.
    """
    spread = [row for row in rows if row.layout.n_devices > 1]
    if not spread:
        return link_of(math.inf, 0.0)
    loads = np.array([sent(row) for row in spread])
    seconds = np.array(
        [
            row.device_seconds / row.layout.n_devices
            - busy_seconds(math.exp(alone.log_cost(row)), row.shape, row.step, row.layout)
            for row in spread
        ]
    )
    # Relative to the time, so that a long step does not outweigh the short ones.
    scale = np.array([row.device_seconds for row in spread])
    (per_byte, per_message), _ = nnls(loads / scale[:, None], seconds / scale)
    return link_of(1.0 / per_byte if per_byte > 0 else math.inf, float(per_message))


def _estimate(
    found: Sequence[dict[str, float]], measured: Floats, priors: dict[str, tuple[float, float]]
) -> Estimate:
    # A limit below the rating that no row has is not an effect of theirs.
    names = tuple(
        dict.fromkeys(n for row in found for n, value in row.items() if value or n in priors)
    )
    values = np.array([[row.get(name, 0.0) for name in names] for row in found])
    n = len(found)
    design = Design(
        names=names,
        cells=sparse.csr_array(values),
        seconds=np.ones(n),
        cell=np.arange(n),
        group=np.arange(n),
        part=np.arange(n),
        average=sparse.csr_array(sparse.eye_array(n)),
        log_rate=-measured,
        weight=np.ones(n),
        noise=np.zeros(n, dtype=np.intp),
    )
    chosen = [_prior(name, priors) for name in names]
    prior = Prior(np.array([mean for mean, _ in chosen]), np.array([sd for _, sd in chosen]))
    start = Estimate(
        names, prior.mean, np.full(len(names), np.nan), prior, np.array([_SCALE]), 0, 0, False
    )
    return fit(design, prior, start, errors=True)


def _prior(name: str, priors: dict[str, tuple[float, float]]) -> tuple[float, float]:
    own, _, chip = name.partition("|")
    if own in _OWN_WIDTH and chip:
        return (0.0, _OWN_WIDTH[own])
    if own == "data":
        return (0.0, 0.2 if name.endswith("|batch") else 0.5)
    return priors.get(name, (0.0, 3.0))


FitRows = Callable[[Sequence[TrainObservation], Quantity], Fitted]


def left_out(
    rows: Sequence[TrainObservation],
    labels: Sequence[str],
    quantity: Quantity,
    fit_rows: FitRows,
    tell: Callable[[str], None] = lambda _: None,
) -> Floats:
    """Return log(measured / predicted) of every row, by a fit without the rows of its label."""
    residual = np.full(len(rows), np.nan)
    names = sorted(set(labels))
    for index, name in enumerate(names):
        tell(f"{quantity} without {index + 1} of {len(names)}")
        test = [i for i, label in enumerate(labels) if label == name]
        train = [row for row, label in zip(rows, labels, strict=True) if label != name]
        fitted = fit_rows(train, quantity)
        for i in test:
            residual[i] = log_cost(rows[i], quantity) - fitted.log_cost(rows[i])
    return residual
