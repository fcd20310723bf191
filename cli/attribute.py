"""`tokcast attribute`: what each request of a shared pass has of its time."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tokcast.cli.render import check_format, render
from tokcast.fits import batch_fits
from tokcast.measurements import batches as store
from tokcast.measurements.batches import Conditions, MeasuredBatch
from tokcast.predictor.attribution import BatchTimes, Shares, phase_of
from tokcast.predictor.batch import BatchShape, batch_shape
from tokcast.predictor.errors import InputError
from tokcast.predictor.model import model_spec
from tokcast.predictor.sources import open_model


@dataclass(frozen=True, slots=True)
class Request:
    """What was typed, as text."""

    file: str | None
    model: str | None
    fit: str | None
    batch: str | None
    is_held_out: bool
    save: str | None
    offline: bool


@dataclass(frozen=True, slots=True)
class Attributed:
    """A batch, its predicted seconds, and the shares of the seconds measured or predicted."""

    batch: MeasuredBatch
    predicted_s: float
    shares: Shares

    @property
    def error(self) -> float | None:
        """Return by how much of the measured seconds the prediction is off, None without."""
        measured = self.batch.used_seconds
        return None if measured is None else self.predicted_s / measured - 1


@dataclass(frozen=True, slots=True)
class Source:
    """Functions to divide by, and where they come from."""

    times: BatchTimes
    words: str


def batches_of(request: Request) -> tuple[MeasuredBatch, ...]:
    """Return the batches asked about, of the model given where a file names none."""
    found = store.packaged() if request.file is None else store.read(Path(request.file))
    if request.model is not None:
        found = tuple(
            replace(b, conditions=replace(b.conditions, model=request.model)) for b in found
        )
    nameless = next((b for b in found if not b.conditions.model), None)
    if nameless is not None:
        raise InputError(
            f"{request.file}, line {nameless.line}: names no model; expected --model, or a column"
            " model"
        )
    return found


@dataclass(slots=True)
class Shapes:
    """Models' figures, each read once."""

    offline: bool
    _found: dict[tuple[str, str, str], BatchShape] = field(default_factory=dict)

    def of(self, c: Conditions) -> BatchShape:
        """Return the figures of a batch's model; raises InputError as `open_model` does."""
        key = (c.model, c.type_k, c.type_v)
        if key not in self._found:
            spec = model_spec(open_model(c.model, offline=self.offline or None))
            self._found[key] = batch_shape(spec, c.type_k, c.type_v)
        return self._found[key]


def by_conditions(
    batches: Sequence[MeasuredBatch],
) -> dict[Conditions, tuple[MeasuredBatch, ...]]:
    """Return batches by what they ran on and how; functions are fitted for each by itself."""
    found: dict[Conditions, list[MeasuredBatch]] = {}
    for b in batches:
        found.setdefault(b.conditions, []).append(b)
    return {c: tuple(of) for c, of in found.items()}


def source_of(
    conditions: Conditions, batches: Sequence[MeasuredBatch], shape: BatchShape, fit: str | None
) -> Source:
    """Return the functions for batches of one kind of run.

    Those of a file given, else fitted to the batches themselves where enough are measured, else
    packaged ones, which were fitted to the packaged batches. Raises InputError without any.
    """
    if fit is None and (own := _own(batches, shape)) is not None:
        n = sum(bool(b.clean_seconds) for b in batches)
        return Source(own, f"fitted to {n} of these batches")
    fits = batch_fits.packaged() if fit is None else batch_fits.read(Path(fit))
    found = batch_fits.best_for(fits, conditions)
    if found is None:
        known = ", ".join(sorted({f.conditions.model for f in fits})) or "none"
        raise InputError(
            f"no fitted batch times of {conditions.model} on {conditions.host or 'any host'};"
            f" expected one of: {known}; tokcast measure batch measures others"
        )
    c = found.conditions
    return Source(
        found.times(shape),
        f"fitted to {found.n_batches} batches on {c.host} ({c.backend}, {c.n_threads} threads)",
    )


def _own(batches: Sequence[MeasuredBatch], shape: BatchShape) -> BatchTimes | None:
    """Return functions fitted to batches, None where a phase that is asked about lacks enough."""
    if not batches:
        return None
    from tokcast.fits.batch_times import FEWEST, fit_times

    measured = [phase_of(b.requests) for b in batches if b.clean_seconds]
    if any(measured.count(phase_of(b.requests)) < FEWEST for b in batches):
        return None
    return fit_times(batches, shape)


def attribute(request: Request) -> tuple[tuple[Attributed, ...], tuple[str, ...]]:
    """Return every batch's shares, and where the functions come from; raises InputError."""
    shapes = Shapes(request.offline)
    found, words = [], []
    for conditions, batches in by_conditions(_chosen(request)).items():
        if request.batch is not None and all(b.batch != request.batch for b in batches):
            continue
        shape = shapes.of(conditions)
        for b in batches:
            _check(request.file, b, shape)
        own = () if request.file is None else batches
        source = source_of(conditions, own, shape, request.fit)
        words.append(f"{conditions.model}: {source.words}.")
        for b in batches:
            predicted = source.times.seconds(b.requests, b.n_held)
            shares = source.times.shares(b.requests, b.n_held, b.used_seconds)
            found.append(Attributed(b, predicted, shares))
    return tuple(found), tuple(words)


def _chosen(request: Request) -> tuple[MeasuredBatch, ...]:
    batches = batches_of(request)
    if request.batch is not None and all(b.batch != request.batch for b in batches):
        names = ", ".join(b.batch for b in batches[:8])
        raise InputError(f"--batch {request.batch!r}: expected one of {names}, ...")
    return batches


def _check(file: str | None, b: MeasuredBatch, shape: BatchShape) -> None:
    try:
        shape.extent(b.requests, b.n_held)
    except InputError as error:
        raise InputError(f"{file or store.PACKAGED}, line {b.line}: {error}") from None


def run(request: Request, output: str) -> int:
    """Print shares, or with --held-out the errors on rounds left out; save fits where asked."""
    check_format(output)
    if request.is_held_out or request.save is not None:
        from tokcast.cli.attribute_scores import run as run_scores

        return run_scores(request, output)
    from tokcast.cli.attribute_report import report

    found, words = attribute(request)
    print(render(report(found, words, request.batch), output))
    return 0
