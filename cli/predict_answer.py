"""What a prediction for one model on one host consists of."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tokcast.cli.fitting import Fit
from tokcast.cli.predict_request import Asked
from tokcast.predictor.host import Host
from tokcast.predictor.prediction import Evidence, Prediction
from tokcast.predictor.spec import ModelSpec
from tokcast.predictor.terms import Run

if TYPE_CHECKING:
    from tokcast.cli.placed_fit import PlacedFit
    from tokcast.cli.predict_energy import EnergyAnswer
    from tokcast.cli.tasks import TaskForecast
    from tokcast.predictor.placement.plan import Placement

_EVIDENCE: tuple[Evidence, ...] = ("spec sheet only", "same chip family", "same host")


@dataclass(frozen=True, slots=True)
class Forecast:
    """A prediction under the lengths it was asked for.

    The predicted workload of a generation of `n_gen` tokens from `n_depth` on is its middle
    token, as llama-bench's figure is the mean over them.
    """

    n_gen: int
    n_depth: int
    prediction: Prediction

    @property
    def label(self) -> str:
        """Return llama-bench's name of the test."""
        p = self.prediction
        name = f"pp{p.n_prompt}" if p.phase == "prefill" else f"tg{self.n_gen}"
        return f"{name} @ d{self.n_depth}" if self.n_depth else name


@dataclass(frozen=True, slots=True)
class Answer:
    """One model on one host."""

    spec: ModelSpec
    asked: Asked
    run: Run
    forecasts: tuple[Forecast, ...]
    fit: "Fit | PlacedFit"
    coefficients: str
    warnings: tuple[str, ...]
    calibration: str = ""
    tasks: "TaskForecast | None" = None
    energy: "EnergyAnswer | None" = None
    placement: "Placement | None" = None

    @property
    def host(self) -> Host:
        """Return where the model would run."""
        return self.asked.host

    @property
    def is_calibrated(self) -> bool:
        """Return whether measurements of this machine are in it."""
        return bool(self.calibration)

    @property
    def evidence(self) -> Evidence:
        """Return the weakest evidence behind a prediction of this answer."""
        return min((f.prediction.evidence for f in self.forecasts), key=_EVIDENCE.index)

    def first(self, phase: str) -> Forecast | None:
        """Return the forecast of a phase at the first depth asked for."""
        return next((f for f in self.forecasts if f.prediction.phase == phase), None)
