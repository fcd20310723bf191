"""What is assumed or uncertain about a prediction, in words."""

from tokcast.cli.fitting import memory_notes
from tokcast.predictor.host import Host
from tokcast.predictor.spec import ModelSpec
from tokcast.predictor.terms import Run


def all_host_notes(host: Host, notes: tuple[str, ...]) -> tuple[str, ...]:
    """Return what is uncertain or assumed about a host, the notes of its name first."""
    return (*notes, *memory_notes(host), *several_devices_notes(host))


def several_devices_notes(host: Host) -> tuple[str, ...]:
    """Return what is assumed of several devices."""
    if host.n_devices == 1:
        return ()
    return (
        f"memory is that of {host.n_devices} devices, speed that of one: split by layer, they"
        " take turns and read the same bytes",
    )


def context_notes(spec: ModelSpec, n_context: int) -> tuple[str, ...]:
    """Return that a context goes beyond what the model was trained for, where it does."""
    if not spec.context_length or n_context <= spec.context_length:
        return ()
    return (f"trained for a context of {spec.context_length}, but {n_context} asked for",)


def backend_notes(asked: str | None, run: Run, host: Host) -> tuple[str, ...]:
    """Return what is assumed of the backend, where none was asked for."""
    if asked is not None or host.vendor:
        return ()
    return (f"backend {run.backend} assumed; --backend says otherwise",)
