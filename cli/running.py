"""How a model is run, here or elsewhere, and with what such a run is predicted."""

import platform

from tokcast.cli.options import backend_of, flash_attention, runtime_of
from tokcast.fits.calibrated import Applied, apply
from tokcast.fits.released import released
from tokcast.predictor.host import Host
from tokcast.predictor.spec import ModelSpec
from tokcast.predictor.terms import Run


def run_of(
    spec: ModelSpec,
    host: Host,
    runtime: str | None,
    backend: str | None,
    *,
    flash: bool | None,
    is_here: bool,
) -> Run:
    """Return how a model is run: with the newest builds measured, on this machine or another.

    Raises InputError for a runtime or backend that doesn't exist or doesn't suit.
    """
    runtime = runtime_of(runtime, spec.format)
    backend = backend_of(backend, runtime, host)
    text = {None: "auto", True: "on", False: "off"}[flash]
    return run_with(runtime, backend, text, is_here)


def applied(host: Host, run: Run, *, is_here: bool) -> Applied:
    """Return what to predict with: this machine's calibration, where it is this machine."""
    return apply(host, run, released()) if is_here else Applied(host, released())


def is_here(host: str | None, *facts: object) -> bool:
    """Return whether no other host was named and none of this machine's facts replaced."""
    return not host and not any(facts)


def run_with(runtime: str, backend: str, flash_attn: str, is_here: bool) -> Run:
    """Return a run of today; `is_here` on this machine, whose system is known."""
    return Run(
        runtime=runtime,
        backend=backend,
        stack=backend,
        year=released().newest,
        flash_attention=None if flash_attn == "auto" else flash_attention(flash_attn),
        system=platform.system() if is_here else "",
    )
