"""The words of predictions that every report of them uses."""

from collections.abc import Sequence

from tokcast.cli.names import short_name
from tokcast.cli.placed_report import machine_words
from tokcast.cli.predict_answer import Answer, Forecast
from tokcast.cli.render import rate
from tokcast.predictor.prediction import Prediction
from tokcast.predictor.work import Phase

DOING: dict[Phase, str] = {"decode": "generating", "prefill": "reading"}


def range_text(p: Prediction) -> str:
    """Return the ends of a prediction's interval, in tokens/s."""
    return f"{rate(p.low)} - {rate(p.high)}"


def speed_text(f: Forecast) -> str:
    """Return a forecast's speed and what it is the speed of."""
    p = f.prediction
    return f"{rate(p.tok_per_s)} tok/s {DOING[p.phase]} ({range_text(p)})"


def model_text(a: Answer) -> str:
    """Return a model's short name and file type."""
    return f"{short_name(a.spec.name)} {a.spec.file_type}".strip()


def device_text(a: Answer) -> str:
    """Return the chips that a model would run on."""
    if a.placement is not None:
        return machine_words(a.placement.devices)
    n = f"{a.host.n_devices}x " if a.host.n_devices > 1 else ""
    return f"{n}{a.host.name}"


def range_title(a: Answer) -> str:
    """Return the title of a column of ranges."""
    return f"{100 * a.forecasts[0].prediction.level:.0f} % range"


def source_notes(a: Answer) -> tuple[str, ...]:
    """Return where the model and the numbers behind its prediction come from."""
    n = max(f.prediction.n_observations for f in a.forecasts)
    if a.is_calibrated:
        return (
            f"Read from {a.spec.source}.",
            f"Evidence: calibrated on this machine ({a.calibration}); coefficients"
            f" {a.coefficients}.",
        )
    return (
        f"Read from {a.spec.source}.",
        f"Evidence: {a.evidence}; coefficients {a.coefficients} fitted on {n:,} published"
        f" {a.run.backend} configurations.",
    )


def noted(warnings: Sequence[str]) -> tuple[str, ...]:
    """Return warnings as sentences."""
    return tuple(f"Note: {w.rstrip('.')}." for w in warnings)


def energy_notes_of(a: Answer) -> tuple[str, ...]:
    """Return the sentences on an answer's energy, where it was asked for."""
    if a.energy is None:
        return ()
    from tokcast.cli.predict_energy import energy_notes

    return energy_notes(a.forecasts, a.energy)
