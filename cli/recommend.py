"""Which file type of a model to take on a host."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tokcast.cli.fitting import Fit, fit
from tokcast.cli.running import run_of
from tokcast.cli.scene import Setting, scene_of
from tokcast.predictor import catalogue
from tokcast.predictor.errors import InputError
from tokcast.predictor.host import Host
from tokcast.predictor.prediction import Prediction
from tokcast.predictor.select.types import RULE, preference
from tokcast.predictor.spec import ModelSpec


@dataclass(frozen=True, slots=True)
class Option:
    """One file type: its size, speed and whether it fits."""

    file_type: str
    bits: float
    spec: ModelSpec
    decode: Prediction
    prefill: Prediction
    fit: Fit
    calibration: str = ""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """All options, smallest first, and the one to take; None where none will do."""

    options: tuple[Option, ...]
    best: Option | None
    why: str


# Types for models that were trained in them, or for experts alone: no choice for others.
_TRAINED = frozenset({"TQ1_0", "TQ2_0"})
_OF_EXPERTS = "MXFP4_MOE"


def file_types(like: str) -> tuple[str, ...]:
    """Return the file types that a runtime takes in place of one."""
    is_mlx = like.startswith("mlx-")
    return tuple(t for t in catalogue.file_types() if _is_choice(t, is_mlx))


def _is_choice(file_type: str, is_mlx: bool) -> bool:
    return file_type.startswith("mlx-") == is_mlx and file_type not in _TRAINED


def options_of(
    name: str,
    like: str,
    host: Host,
    setting: Setting,
    n_context: int,
    open_spec: Callable[[str], ModelSpec],
    *,
    is_here: bool,
) -> Iterator[Option]:
    """Yield each file type that the model can be had in, worked out.

    `is_here` where the host is this machine.
    """
    for file_type in file_types(like):
        try:
            spec = open_spec(f"{name}@{file_type}")
        except InputError:
            continue  # not every type suits every model's shapes
        if file_type == _OF_EXPERTS and not any(layer.n_expert for layer in spec.layers):
            continue
        flash = setting.flash_attention
        run = run_of(spec, host, None, None, flash=flash, is_here=is_here)
        scene = scene_of(spec, host, run, setting, is_here=is_here)
        room = fit(spec, host, n_context, setting.memory)
        yield Option(
            file_type,
            8 * spec.n_bytes / spec.n_params,
            spec,
            scene.predict("decode"),
            scene.predict("prefill"),
            room,
            scene.calibration,
        )


def recommend(options: Sequence[Option], at_least_tok_per_s: float | None) -> Recommendation:
    """Return the option to take by RULE; memory that is not known counts as enough."""
    ranked = tuple(sorted(options, key=lambda o: o.bits))
    fitting = [o for o in ranked if o.fit.fits is not False]
    wanted = at_least_tok_per_s or 0.0
    fast = [o for o in fitting if o.decode.tok_per_s >= wanted]
    if fast:
        best = min(fast, key=lambda o: preference(o.file_type, o.bits, o.spec.architecture))
        why = f"{best.file_type}: {best.bits:.2f} bits a weight; {RULE}"
        return Recommendation(ranked, best, why)
    if not fitting:
        return Recommendation(ranked, None, "no file type of this model fits this host")
    quickest = max(fitting, key=lambda o: o.decode.tok_per_s)
    return Recommendation(
        ranked,
        None,
        f"none that fits reaches {wanted:g} tok/s; {quickest.file_type} comes nearest with"
        f" {quickest.decode.tok_per_s:.3g}",
    )
